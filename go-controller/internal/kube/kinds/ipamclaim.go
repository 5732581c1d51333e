package kinds

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// reasonClaim is the reason of Problems with IPAMClaims.
const reasonClaim = "InvalidIPAMClaim"

// IPAMClaim is the row of IPAMClaims, which an API server has once its administrator installs the kind.
func IPAMClaim() Kind {
	version := schema.GroupVersion{Group: "k8s.cni.cncf.io", Version: "v1alpha1"}
	return dynamicRow(Kind{
		Kind: cluster.KindIPAMClaim, Resource: version.WithResource("ipamclaims"), Namespaced: true,
		ValidName: subdomain, Optional: true, WatchedBy: []Daemon{Master}, JudgedBy: []Daemon{Master},
	}, decodeClaim)
}

// claimObject is what is read of an IPAMClaim. In older versions of the API the pod is a text.
type claimObject struct {
	Spec struct {
		Network    string   `json:"network"`
		IPRequests []string `json:"ipRequests"`
	} `json:"spec"`
	Status struct {
		IPs      []string        `json:"ips"`
		OwnerPod json.RawMessage `json:"ownerPod"`
	} `json:"status"`
}

func decodeClaim(u *unstructured.Unstructured) (*cluster.IPAMClaim, []cluster.Problem) {
	out := &cluster.IPAMClaim{Name: NameOf(u), UID: string(u.GetUID()), Created: u.GetCreationTimestamp().Unix()}
	for _, c := range observedOf(u, cluster.TypeIPsAllocated).Own {
		out.Own = c
	}
	if status, ok := u.Object["status"]; ok && status != nil {
		if text, err := json.Marshal(status); err == nil {
			out.Status = string(text)
		}
	}
	if err := readClaim(out, u); err != nil {
		out.Invalid = fmt.Sprintf("%.300s", strings.ToValidUTF8(err.Error(), "?"))
		f := findingsOf(cluster.KindIPAMClaim, u)
		f.bad(reasonClaim, "%s: pods that refer to the claim do not start", out.Invalid)
		return out, f.problems
	}
	return out, nil
}

func readClaim(into *cluster.IPAMClaim, u *unstructured.Unstructured) error {
	var c claimObject
	text, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return fmt.Errorf("reading the claim: %w", err)
	}
	into.Network = c.Spec.Network
	if c.Spec.Network == "" {
		return fmt.Errorf("spec.network: none, want the name of a network as pods of the namespace ask for it")
	}
	if into.Asked, err = claimed("spec.ipRequests", c.Spec.IPRequests); err != nil {
		return err
	}
	if into.IPs, err = claimed("status.ips", c.Status.IPs); err != nil {
		return err
	}
	var owner struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(c.Status.OwnerPod, &owner) == nil {
		into.Pod = owner.Name
	}
	return nil
}

// claimed reads addresses with the length of their subnets, at most one of each family. IPv4 is first in the result.
func claimed(field string, texts []string) (out []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Addr().Is4In6() || p.Bits() == 0 {
			return nil, fmt.Errorf("%s: %.64q, want an address with the length of its subnet such as 10.99.0.7/24", field, text)
		}
		if slices.ContainsFunc(out, func(o netip.Prefix) bool { return o.Addr().Is4() == p.Addr().Is4() }) {
			return nil, fmt.Errorf("%s: %s and %s are of one address family, want one of each at most", field, out[0], p)
		}
		out = append(out, p)
	}
	ipnet.Sort(out)
	return out, nil
}
