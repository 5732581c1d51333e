package attachment

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// PolicyFor reads the annotation k8s.v1.cni.cncf.io/policy-for of a MultiNetworkPolicy in a namespace: which networks
// the policy is about. What can't be one is left out, and refused says why.
func PolicyFor(namespace, value string) (networks []names.Network, refused []error) {
	if len(value) > mostBytes {
		return nil, []error{fmt.Errorf("the value has %d bytes, want at most %d: the policy has no effect", len(value),
			mostBytes)}
	}
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		in, name, ok := strings.Cut(item, "/")
		if !ok {
			in, name = namespace, item
		}
		switch {
		case len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsDNS1123Label(in)) > 0:
			refused = append(refused, fmt.Errorf("%.64q: want the name of a NetworkAttachmentDefinition, perhaps after its "+
				"namespace and a slash: it is left out", item))
		case in != namespace && in != common:
			refused = append(refused, fmt.Errorf("%.64q: pods of namespace %s can't be in that network, want one of "+
				"namespace %s or %s: it is left out", item, namespace, namespace, common))
		default:
			networks = append(networks, names.Defined(in, name))
		}
	}
	slices.Sort(networks)
	networks = slices.Compact(networks)
	switch {
	case len(networks) > annotation.MaxInterfaces:
		refused = append(refused, fmt.Errorf("%d networks, want at most %d: the policy has no effect in those from %s on",
			len(networks), annotation.MaxInterfaces, networks[annotation.MaxInterfaces]))
		networks = networks[:annotation.MaxInterfaces]
	case len(networks) == 0 && len(refused) == 0:
		refused = append(refused, fmt.Errorf("%.64q: names no network: the policy has no effect", value))
	}
	return networks, refused
}
