package core_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// A network that overlaps an older ServiceCIDR is refused for as long as that is there, whatever comes first. A younger
// one does not take the network from its pods.
func TestNetworksAndServiceCIDRs(t *testing.T) {
	subnet := []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.1.0/24"), NodeLength: 24}}
	const created, why = 100, "subnets: 10.77.1.0/24 overlaps 10.77.0.0/16 of ServiceCIDR more"
	services := func(created int64, ranges ...string) *cluster.ServiceCIDR {
		c := &cluster.ServiceCIDR{Name: "more", Created: created}
		for _, r := range ranges {
			c.CIDRs = append(c.CIDRs, netip.MustParsePrefix(r))
		}
		return c
	}
	for what, network := range map[string]func(*cluster.Network) cluster.Object{
		"a definition": func(n *cluster.Network) cluster.Object {
			return &cluster.NetworkDefinition{Name: cluster.Name{Namespace: "shop", Name: "blue"}, Created: created, Network: n}
		},
		"a UserDefinedNetwork": func(n *cluster.Network) cluster.Object {
			return &cluster.UserNetwork{Name: cluster.Name{Namespace: "shop", Name: "blue"}, UID: "u", Created: created,
				Network: n}
		},
		"a ClusterUserDefinedNetwork": func(n *cluster.Network) cluster.Object {
			return &cluster.UserNetwork{Name: cluster.Name{Name: "blue"}, UID: "u", Created: created, Network: n}
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			n := &cluster.Network{Topology: cluster.Layer2, Subnets: subnet}
			o := network(n)
			n.Name = names.Defined(o.Ref().Name.Namespace, o.Ref().Name.Name)
			cidr := services(0).Ref()
			for i, step := range []struct {
				what    string
				ref     cluster.Ref
				seen    cluster.Object
				refused bool
			}{
				{"the network comes", o.Ref(), o, false},
				{"an older range that overlaps it", cidr, services(99, "10.77.0.0/16"), true},
				{"the network goes", o.Ref(), nil, true},
				{"it comes again", o.Ref(), o, true},
				{"another range", cidr, services(99, "10.78.0.0/16"), false},
				{"both, one as old as the network", cidr, services(100, "10.78.0.0/16", "10.77.0.0/16"), true},
				{"the ranges go", cidr, nil, false},
				{"a younger range", cidr, services(101, "10.77.0.0/16"), false},
				{"the network goes", o.Ref(), nil, true},
				{"it comes again, with the same time", o.Ref(), o, false},
			} {
				changes := w.Step([]cluster.Event{{Ref: step.ref, New: step.seen}}).Changes
				is := w.State.Networks[n.Name] == nil
				if is != step.refused {
					t.Fatalf("%d: %s: the network is refused: %v, want %v", i, step.what, is, step.refused)
				}
				said := fmt.Sprint(w.State.Object(o.Ref()))
				if w.State.Object(o.Ref()) != nil && strings.Contains(said, why) != step.refused {
					t.Errorf("%d: %s: %s", i, step.what, said)
				}
				told := slices.ContainsFunc(changes, func(c cluster.Change) bool { return c.Ref == o.Ref() })
				if !told && i != 7 { // in step 7 nothing changes for the network
					t.Errorf("%d: %s: nobody is told that the network has changed", i, step.what)
				}
			}
		})
	}
}
