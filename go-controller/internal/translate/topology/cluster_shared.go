package topology

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// sharedSwitch is the switch of a network that has one for the pods of all nodes. A Localnet network's has a port
// through which each node's bridge joins it to the network outside. The guard against spoofing is for networks that
// give addresses: in others pods may be DHCP clients and servers.
func sharedSwitch(m translate.Maker, n *cluster.Network) []nb.Row {
	rows := []nb.Row{m.Row(names.RoleSwitch, &nbdb.LogicalSwitch{Name: n.Name.SharedSwitch()})}
	if len(n.Subnets) > 0 {
		rows = append(rows, spoofGuard(m, m.In(nbdb.LogicalSwitchTable, names.RoleSwitch, "acls")))
	}
	if n.Topology != cluster.Localnet {
		return rows
	}
	port := &nbdb.LogicalSwitchPort{Name: n.Name.Localnet(), Type: "localnet", Addresses: []string{"unknown"},
		Options: map[string]string{"network_name": n.Physical.Name}}
	if vlan := n.Physical.VLAN; vlan != 0 {
		port.Tag = &vlan
	}
	return append(rows, m.Row(names.RoleLocalnet, port, m.In(nbdb.LogicalSwitchTable, names.RoleSwitch, "ports")))
}
