package policytest

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

var update = flag.Bool("update", false, "write the sets anew")

// packetSets is where the tests with real packets read their random sets. They can't import this package.
const packetSets = "../../../../test/e2e/policy/testdata/random.jsonl"

// set is labels and policies, for a cluster with namespaces x, y and z of two pods each.
type set struct {
	Namespaces      map[string]map[string]string     `json:"namespaces"`
	Pods            map[string]map[string]string     `json:"pods"`
	Policies        []*networkingv1.NetworkPolicy    `json:"policies"`
	ClusterPolicies []*v1alpha2.ClusterNetworkPolicy `json:"clusterPolicies"`
}

// newSet is a random set. Nobody serves names in DNS to the cluster, so that no rule has any.
func newSet(d Dice) set {
	s := set{Namespaces: map[string]map[string]string{}, Pods: map[string]map[string]string{}}
	for _, namespace := range []string{"x", "y", "z"} {
		s.Namespaces[namespace] = d.labels(map[string]string{})
		for _, pod := range []string{"p0", "p1"} {
			s.Pods[namespace+"/"+pod] = d.labels(map[string]string{})
		}
	}
	for i := range 1 + d.IntN(6) {
		p := d.Policy(i)
		p.UID = ""
		for _, r := range p.Spec.Ingress {
			maskBlocks(r.From)
		}
		for _, r := range p.Spec.Egress {
			maskBlocks(r.To)
		}
		s.Policies = append(s.Policies, p)
	}
	for i := range d.IntN(4) {
		p := d.ClusterPolicy(i)
		p.UID = ""
		p.Spec.Egress = slices.DeleteFunc(p.Spec.Egress, func(r v1alpha2.ClusterNetworkPolicyEgressRule) bool {
			return slices.ContainsFunc(r.To, func(p v1alpha2.ClusterNetworkPolicyEgressPeer) bool {
				return p.DomainNames != nil
			})
		})
		for _, r := range p.Spec.Egress {
			for _, peer := range r.To {
				for i, network := range peer.Networks {
					peer.Networks[i] = v1alpha2.CIDR(masked(string(network)))
				}
			}
		}
		s.ClusterPolicies = append(s.ClusterPolicies, p)
	}
	return s
}

// maskBlocks takes bits behind the prefix away: a new API server refuses them.
func maskBlocks(peers []networkingv1.NetworkPolicyPeer) {
	for _, peer := range peers {
		if block := peer.IPBlock; block != nil {
			block.CIDR = masked(block.CIDR)
			for i := range block.Except {
				block.Except[i] = masked(block.Except[i])
			}
		}
	}
}

func masked(cidr string) string { return netip.MustParsePrefix(cidr).Masked().String() }

// The sets that are asked about with real packets are random. Addresses of pods, nodes and outside are those of that
// cluster.
func TestPacketSets(t *testing.T) {
	addresses := strings.NewReplacer("10.128.", "10.244.", "fd01:0:0:1::", "fd00:10:244:1::", "fd01::", "fd00:10:244::",
		"172.18.0.10/31", "172.30.0.1/32", "2001:db8:18::a/127", "fd00:30::1/128", "192.0.2.", "203.0.113.",
		"2001:db8:2::1/128", "2001:db8:30::a/128", "2001:db8:2::", "2001:db8:30::", "2001:db8:2:8000::", "2001:db8:30:8000::")
	var want bytes.Buffer
	for seed := range uint64(60) {
		text, err := json.Marshal(newSet(NewDice(seed, 61)))
		if err != nil {
			t.Fatal(err)
		}
		want.WriteString(addresses.Replace(string(text)) + "\n")
	}
	if *update {
		if err := os.WriteFile(packetSets, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(packetSets); err != nil || !bytes.Equal(have, want.Bytes()) {
		t.Errorf("%s has other sets (%v): write them anew with -update", packetSets, err)
	}
}
