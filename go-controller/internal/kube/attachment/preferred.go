package attachment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// What a pod must name to ask for addresses in its primary network: the network that Multus takes for the cluster's
// own. The large upstream project keeps its configuration in one of two namespaces.
const preferredName = "default"

func preferredNamespaces() []string { return []string{"ovn-kubernetes", "openshift-ovn-kubernetes"} }

// Preferred reads the annotation v1.multus-cni.io/default-network of a pod: an element of the list that
// k8s.v1.cni.cncf.io/networks is, or a list of one. claim is the older annotation k8s.ovn.org/primary-udn-ipamclaim,
// which counts if the other names no claim. What is wrong is the field Unserved of the result.
func Preferred(value, claim string) (out cluster.Asked) {
	r := request{Name: preferredName, Namespace: preferredNamespaces()[0]}
	var err error
	if value != "" {
		r, err = preferredOf(value)
	}
	if err == nil {
		r.Claim = cmp.Or(r.Claim, claim)
		err = r.preferred(&out)
	}
	if err != nil {
		return cluster.Asked{Unserved: fmt.Sprintf("%.300s", strings.ToValidUTF8(err.Error(), "?"))}
	}
	return out
}

func preferredOf(value string) (r request, err error) {
	if len(value) > mostBytes {
		return r, fmt.Errorf("the value has %d bytes, want at most %d", len(value), mostBytes)
	}
	read := short
	switch text := strings.TrimSpace(value); {
	case strings.HasPrefix(text, "["):
		read = list
	case strings.HasPrefix(text, "{"):
		read, value = list, "["+text+"]"
	}
	requests, err := read(value)
	switch {
	case err != nil:
		return r, err
	case len(requests) != 1:
		return r, fmt.Errorf("%d networks, want one", len(requests))
	}
	return requests[0], nil
}

// preferred reads what a pod asks for in its primary network.
func (r request) preferred(into *cluster.Asked) error {
	switch {
	case r.Name != preferredName || !slices.Contains(preferredNamespaces(), r.Namespace):
		return fmt.Errorf("network %.64q in namespace %.64q, want %s in %s: it stands for the primary network", r.Name,
			r.Namespace, preferredName, preferredNamespaces()[0])
	case r.Interface != "" && r.Interface != names.PrimaryInterface:
		return fmt.Errorf("interface %.64q: that of a primary network is %s, want none", r.Interface,
			names.PrimaryInterface)
	case len(r.others) > 0:
		return fmt.Errorf("field %.64q is not served in a primary network, want a request without it", r.others[0])
	}
	return r.asks(into)
}
