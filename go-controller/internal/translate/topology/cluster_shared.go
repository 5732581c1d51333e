package topology

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// sharedSwitch is the switch of a network that has one for the pods of all nodes. A Localnet network's has a port
// through which each node's bridge joins it to the network outside. The guard against spoofing is for networks that
// give addresses: in others pods may be DHCP clients and servers.
func sharedSwitch(m translate.Maker, s *cluster.State, n *cluster.Network) ([]nb.Row, error) {
	ls := &nbdb.LogicalSwitch{Name: n.Name.SharedSwitch()}
	if n.Balances() {
		ls.LoadBalancerGroup = []string{n.LBGroupRow(nbdb.LoadBalancerGroupTable)}
	}
	rows := []nb.Row{m.Row(names.RoleSwitch, ls)}
	if len(n.Subnets) > 0 {
		rows = append(rows, spoofGuard(m, m.In(nbdb.LogicalSwitchTable, names.RoleSwitch, "acls")))
	}
	if n.Primary {
		routed, err := sharedRouter(m, s, n)
		dropped := noBackend(m, s, n, m.In(nbdb.LogicalSwitchTable, names.RoleSwitch, "acls"))
		return slices.Concat(rows, dropped, lbGroups(m, n), routed), err
	}
	if n.Topology != cluster.Localnet {
		return rows, nil
	}
	port := &nbdb.LogicalSwitchPort{Name: n.Name.Localnet(), Type: "localnet", Addresses: []string{"unknown"},
		Options: map[string]string{"network_name": n.Physical.Name}}
	if vlan := n.Physical.VLAN; vlan != 0 {
		port.Tag = &vlan
	}
	return append(rows, m.Row(names.RoleLocalnet, port, m.In(nbdb.LogicalSwitchTable, names.RoleSwitch, "ports"))), nil
}

// sharedRouter is the router of a primary network of one switch. Its port there has an address of each subnet, on every
// node alike. It sends what leaves the network to the exits of nodes, by way of the join switch.
func sharedRouter(m translate.Maker, s *cluster.State, n *cluster.Network) ([]nb.Row, error) {
	var addrs []netip.Prefix
	for _, c := range n.Subnets {
		a, ok := n.Router(c.CIDR)
		if !ok {
			return nil, fmt.Errorf("subnet %s has no address for the router: too small", c.CIDR)
		}
		addrs = append(addrs, netip.PrefixFrom(a, c.CIDR.Bits()))
	}
	name, sw := n.Name.Router(s.Config.RouterName), n.Name.SharedSwitch()
	join, err := joinRows(m, n, name)
	if err != nil {
		return nil, err
	}
	port, peer := translate.Link{Port: names.RouterToSwitch(sw), Addrs: addrs, Peer: names.SwitchToRouter(sw)}.Models()
	rows := []nb.Row{
		m.Row(names.RoleRouter, &nbdb.LogicalRouter{Name: name, Options: translate.RouterOptions()}),
		m.Row(names.RoleRouterToNode, port, inRouter(n, "ports")),
		m.Row(names.RoleNodeToRouter, peer, m.In(nbdb.LogicalSwitchTable, names.RoleSwitch, "ports")),
	}
	return slices.Concat(rows, join, leaving(m, n), policies(m, s, n)), nil
}
