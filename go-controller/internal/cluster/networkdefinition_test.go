package cluster_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// A definition makes a network unless that would take addresses of the cluster, or a network outside that the operator
// has not listed.
func TestNetworksThatAreAllowed(t *testing.T) {
	c := config.DefaultCluster() // 10.128.0.0/14, 10.96.0.0/16, 100.64.1.0/24 and fd98::/64
	c.PhysicalNetworks = []config.PhysicalNetwork{{Name: "lan", First: 100, Last: 199}, {Name: "physnet"}}
	s := cluster.NewState(c)
	for what, n := range map[string]struct {
		network cluster.Network
		refused string
	}{
		"free": {cluster.Network{Subnets: ranges("10.99.0.0/16")}, ""},
		"pods'": {cluster.Network{Subnets: ranges("10.99.0.0/16", "10.129.7.0/24")},
			"10.129.7.0/24 overlaps 10.128.0.0/14"},
		"Services'": {cluster.Network{Topology: cluster.Layer2, Subnets: ranges("10.0.0.0/8")}, "overlaps"},
		"gateway routers'": {cluster.Network{Topology: cluster.Layer2, Subnets: ranges("fd98::/64")},
			"fd98::/64 overlaps fd98::/64"},
		"a listed VLAN": {cluster.Network{Topology: cluster.Localnet,
			Physical: cluster.Physical{Name: "lan", VLAN: 150}}, ""},
		"another VLAN": {cluster.Network{Topology: cluster.Localnet,
			Physical: cluster.Physical{Name: "lan", VLAN: 7}}, "allows lan:100-199"},
		"no VLAN": {cluster.Network{Topology: cluster.Localnet, Physical: cluster.Physical{Name: "lan"}}, "VLAN 0"},
		"the gateways'": {cluster.Network{Topology: cluster.Localnet, Physical: cluster.Physical{Name: "physnet"}},
			"is that of the gateways"},
	} {
		t.Run(what, func(t *testing.T) {
			n.network.Name = names.Defined("shop", "blue")
			d := &cluster.NetworkDefinition{Name: name("shop", "blue"), Network: &n.network}
			apply(t, s, d)
			err := s.Allows(d.Network)
			if is := s.Networks[n.network.Name] != nil; is != (n.refused == "") || is != (err == nil) ||
				err != nil && !strings.Contains(err.Error(), n.refused) {
				t.Errorf("the network is there: %v, %v; want %q", is, err, n.refused)
			}
			if _, ok := s.Apply(cluster.Event{Ref: d.Ref()}); !ok || s.Networks[n.network.Name] != nil {
				t.Error("the network is still there without its definition")
			}
		})
	}
}

func ranges(list ...string) (out []config.ClusterSubnet) {
	for _, s := range list {
		out = append(out, config.ClusterSubnet{CIDR: netip.MustParsePrefix(s), NodeLength: 24})
	}
	return out
}
