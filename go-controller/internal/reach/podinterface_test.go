package reach_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/reach"
)

// A MultiNetworkPolicy about a primary network is among what decides there, beside NetworkPolicies. The interface in
// that network is not listed a second time among the others.
func TestPodOfPrimaryNetwork(t *testing.T) {
	own := []names.Network{names.Defined("red", "own")}
	policy := &cluster.MultiNetworkPolicy{NetworkPolicy: cluster.NetworkPolicy{UID: "m",
		Name: cluster.Name{Namespace: "red", Name: "m"}, Egress: cluster.PolicyRules{Isolates: true,
			Rules: []cluster.PolicyRule{{AnyPort: true, Peers: []cluster.PolicyPeer{
				{Addresses: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}}}}}}},
		Named: own, Networks: own}
	got, err := reach.OfPod(tenants(t, "", policy).Core, cluster.Name{Namespace: "red", Name: "b"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var policies []string
	for _, p := range got.Policies {
		policies = append(policies, p.Name)
	}
	if want := []string{"np/red/closed", "multinetworkpolicy/red/m"}; !slices.Equal(policies, want) {
		t.Errorf("policies %q, want %q", policies, want)
	}
	if want := []string{"by eth0: to nobody", "by ovn-udn1: to 203.0.113.0/24, all ports: multinetworkpolicy/red/m " +
		"spec.egress[0]"}; !slices.Equal(got.Out, want) {
		t.Errorf("open out %q, want %q", got.Out, want)
	}
	if len(got.Interfaces) > 0 {
		t.Errorf("interfaces %+v, want none besides eth0 and that of the primary network", got.Interfaces)
	}
}
