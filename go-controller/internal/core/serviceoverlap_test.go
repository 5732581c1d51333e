package core_test

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// A network that overlaps a ServiceCIDR is served, and an Event says so, whatever comes first. In a primary network,
// packets to the network's own addresses are not taken for those to a Service without endpoints.
func TestNetworksAndServiceCIDRs(t *testing.T) {
	const why = "subnets: 10.77.1.0/24 overlaps 10.77.0.0/16 of ServiceCIDR more: "
	shop := cluster.Name{Namespace: "shop", Name: "blue"}
	for what, network := range map[string]func(*cluster.Network) cluster.Object{
		"a definition": func(n *cluster.Network) cluster.Object {
			return &cluster.NetworkDefinition{Name: shop, UID: "u", Network: n}
		},
		"a UserDefinedNetwork": func(n *cluster.Network) cluster.Object {
			n.UserDefined = true
			return &cluster.UserNetwork{Name: shop, UID: "u", Network: n}
		},
		"a ClusterUserDefinedNetwork": func(n *cluster.Network) cluster.Object {
			n.UserDefined = true
			return &cluster.UserNetwork{Name: cluster.Name{Name: "blue"}, UID: "u", Network: n}
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			n := &cluster.Network{Topology: cluster.Layer2, Primary: true,
				Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.1.0/24"), NodeLength: 24}}}
			o := network(n)
			n.Name = names.Defined(o.Ref().Name.Namespace, o.Ref().Name.Name)
			cidr := func(ranges ...string) *cluster.ServiceCIDR {
				c := &cluster.ServiceCIDR{Name: "more"}
				for _, r := range ranges {
					c.CIDRs = append(c.CIDRs, netip.MustParsePrefix(r))
				}
				return c
			}
			for i, step := range []struct {
				what     string
				put      bool
				object   cluster.Object
				overlaps bool
			}{
				{"the network comes", true, o, false},
				{"a range that overlaps it", true, cidr("10.77.0.0/16"), true},
				{"the network goes", false, o, false},
				{"it comes again", true, o, true},
				{"another range", true, cidr("10.78.0.0/16"), false},
				{"both", true, cidr("10.78.0.0/16", "10.77.0.0/16"), true},
				{"the ranges go", false, cidr(), false},
			} {
				if step.put {
					w.put(step.object)
				} else {
					w.drop(step.object)
				}
				if is, want := w.State.Networks[n.Name] != nil, w.State.Object(o.Ref()) != nil; is != want {
					t.Fatalf("%d: %s: the network is there: %v, want %v", i, step.what, is, want)
				}
				told := slices.ContainsFunc(w.reports, func(p cluster.Problem) bool {
					return p.Ref == o.Ref() && p.Reason == "NetworkOverlapsServices" && strings.HasPrefix(p.Message, why)
				})
				if told != step.overlaps {
					t.Errorf("%d: %s: reports %v, want one about the overlap: %v", i, step.what, w.reports, step.overlaps)
				}
				if !step.overlaps {
					continue
				}
				own, other := w.unserved("10.77.1.5"), w.unserved("10.77.2.5")
				if own != 1 || other != 2 {
					t.Errorf("%d: %s: %d ACLs drop packets to the network and %d to the rest of the range, want that of the "+
						"cluster's own network, and for the rest another one", i, step.what, own, other)
				}
			}
		})
	}
}

// unserved counts the ACLs that drop packets to an address as those to a Service without endpoints.
func (w *world) unserved(address string) (n int) {
	w.t.Helper()
	for _, row := range w.db.Rows(nbdb.ACLTable) {
		acl, ok := row.(*nbdb.ACL)
		if !ok {
			w.t.Fatalf("a row of table ACL is %T", row)
		}
		if acl.Priority != names.ACLUnserved {
			continue
		}
		for _, p := range regexp.MustCompile(`[0-9a-f.:]+/\d+`).FindAllString(acl.Match, -1) {
			if netip.MustParsePrefix(p).Contains(netip.MustParseAddr(address)) {
				n++
			}
		}
	}
	return n
}
