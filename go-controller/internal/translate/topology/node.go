package topology

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Node translates nodes. Each becomes a logical switch in each network, with a port to the distributed router. In the
// network that nodes themselves are in, the switch has a management port, too.
type Node struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Node) Kind() names.Kind { return names.KindNode }

// Owners implements translate.Translator.
func (Node) Owners(s *cluster.State) []nb.Owner {
	var out []nb.Owner
	for n := range s.Nodes {
		out = append(out, inNetworks(s, n)...)
	}
	return out
}

// inNetworks lists the owners of a node's rows in every network that has a switch for each node.
func inNetworks(s *cluster.State, node string) (out []nb.Owner) {
	for name, n := range s.Networks {
		if n.Topology == cluster.Layer3 {
			out = append(out, nb.Owner{Kind: names.KindNode, Name: name.Owner(node)})
		}
	}
	return out
}

// inPrimaries lists the owners of nodes' rows in primary networks, if a service that exits have was changed.
func inPrimaries(s *cluster.State, c cluster.Change) (out []nb.Owner) {
	if !cluster.IsExitService(c.Ref.Name) {
		return nil
	}
	for _, n := range s.PrimaryNetworks() {
		for node := range s.In(n.Name).NodeSubnets {
			out = append(out, nb.Owner{Kind: names.KindNode, Name: n.Name.Owner(node)})
		}
	}
	return out
}

// Depends implements translate.Translator. An ACL of each node has the ranges of ClusterIPs. In a primary network they
// lack those of the services that exits have.
func (Node) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds:    []cluster.Kind{cluster.KindNode, cluster.KindServiceCIDR, cluster.KindService},
		Subjects: []cluster.Subject{index.GatewayExists, index.ZoneInUse, index.NodeChassis, index.MulticastUsed},
	}
}

// Affected implements translate.Translator. The first gateway of the cluster, or the loss of the last, changes how the
// pods of all nodes leave the cluster. The first namespace with multicast has all switches look for listeners. With the
// first zone the nodes in no zone get a group; with the last they lose it.
func (t Node) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	switch {
	case c.Ref.Kind == cluster.KindServiceCIDR:
		return t.Owners(s)
	case c.Ref.Kind == cluster.KindService:
		return inPrimaries(s, c)
	case c.Ref.Kind == cluster.KindNode && c.Granted:
		out = []nb.Owner{{Kind: names.KindNode, Name: c.Network.Owner(c.Ref.Name.Name)}}
	case c.Ref.Kind == cluster.KindNode:
		out = inNetworks(s, c.Ref.Name.Name)
	}
	if c.Concerns(index.GatewayExists) || c.Concerns(index.MulticastUsed) {
		return append(t.Owners(s), out...)
	}
	for _, n := range c.About(index.NodeChassis) {
		if n != c.Ref.Name {
			out = append(out, inNetworks(s, n.Name)...)
		}
	}
	if slices.Contains(c.About(index.ZoneInUse), cluster.Name{}) {
		for _, n := range index.ZonesOf(s).Nodes("") {
			out = append(out, inNetworks(s, n.Name)...)
		}
	}
	return out
}

// Rows implements translate.Translator. A node wants nothing until it has subnets.
func (t Node) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	id, name := names.NetworkOf(o.Name)
	n, subnets, network := s.Nodes[name], s.In(id).NodeSubnets[name], s.Networks[id]
	var out translate.Rows
	if network != nil && network.Hosts {
		out.Reports = lostChassis(s, n)
	}
	if n == nil || len(subnets) == 0 {
		return out, nil
	}
	router, err := nths(subnets, subnet.RouterHost)
	if err != nil {
		return out, err
	}
	r := nodeRows{Maker: translate.Maker{Schema: t.Schema, Owner: o, UID: n.UID}, node: n, state: s, network: network}
	sw := network.Name.NodeSwitch(name)
	port, peer := translate.Link{Port: names.RouterToSwitch(sw), Addrs: router, Peer: names.SwitchToRouter(sw)}.Models()
	out.Rows = []nb.Row{
		r.nodeSwitch(sw, subnets, router),
		r.Row(names.RoleRouterToNode, port, inRouter(network, "ports")),
		r.Row(names.RoleNodeToRouter, peer, r.routerSlots()...),
	}
	if !network.Hosts {
		out.Rows = append(out.Rows, spoofGuard(r.Maker, r.inSwitch("acls")))
		if network.Primary {
			out.Rows = append(out.Rows, noBackend(r.Maker, s, network, r.inSwitch("acls"))...)
		}
		return out, nil
	}
	management, err := nths(subnets, subnet.ManagementHost)
	if err != nil {
		return out, err
	}
	out.Rows = append(out.Rows, r.management(management), r.hairpin(management))
	for i, p := range subnets {
		if !index.GatewaysOf(s).Any(p.Addr().Is4()) {
			out.Rows = append(out.Rows, r.egress(p, management[i].Addr()))
		}
	}
	return out, nil
}

// ReasonChassisInUse is the reason of the report that another node has the chassis of this one.
const ReasonChassisInUse = "NodeChassisInUse"

// lostChassis reports that another node has the chassis that a node names; n may be nil.
func lostChassis(s *cluster.State, n *cluster.Node) []cluster.Problem {
	if n == nil || n.ChassisID == "" {
		return nil
	}
	h := index.ChassisOf(s).Holder(n.ChassisID)
	if h == nil || h == n {
		return nil
	}
	return []cluster.Problem{{Ref: n.Ref(), UID: n.UID, Reason: ReasonChassisInUse, Message: fmt.Sprintf(
		"annotation %s: %q is the chassis of Node %s: it is not used: give this machine an external_ids:system-id of its "+
			"own, or delete Node %[3]s if its machine is gone", annotation.NodeChassisID, n.ChassisID, h.Name)}}
}

// nodeRows makes the rows of one node.
type nodeRows struct {
	translate.Maker
	node    *cluster.Node
	state   *cluster.State
	network *cluster.Network
}

func (r nodeRows) inSwitch(column string) nb.Slot {
	return r.In(nbdb.LogicalSwitchTable, names.RoleSwitch, column)
}

// routerSlots lists the port to the router in the switch, and in the group whose ACLs hold on all nodes' switches.
func (r nodeRows) routerSlots() []nb.Slot {
	out := []nb.Slot{r.inSwitch("ports")}
	if r.network.Hosts {
		out = append(out, translate.OnAllNodes("ports"))
	}
	return out
}

func (r nodeRows) nodeSwitch(name string, subnets, router []netip.Prefix) nb.Row {
	ls := &nbdb.LogicalSwitch{Name: name, OtherConfig: map[string]string{}, ExternalIDs: map[string]string{}}
	if r.network.Balances() {
		ls.LoadBalancerGroup = []string{r.network.LBGroupRow(nbdb.LoadBalancerGroupTable)}
	}
	if r.network.Services && index.ZonesOf(r.state).Has(r.node.Zone) {
		group := names.ZoneRow(nbdb.LoadBalancerGroupTable, r.node.Zone, names.RoleLBGroup)
		ls.LoadBalancerGroup = append(ls.LoadBalancerGroup, group)
	}
	for i, p := range subnets {
		key := names.KeyGatewayIP
		if p.Addr().Is4() {
			ls.OtherConfig["subnet"] = p.String()
		} else {
			ls.OtherConfig["ipv6_prefix"] = p.Addr().String()
			if len(subnets) > 1 {
				key = names.KeyGatewayIPv6
			}
		}
		ls.ExternalIDs[key] = router[i].String()
	}
	if r.network.Hosts && index.MulticastIn(r.state).Any() {
		maps.Copy(ls.OtherConfig, snooping(router))
	}
	if r.node.ByHand && r.network.Hosts {
		ls.ExternalIDs[names.ByHandKey] = r.node.ByHandRecord()
	}
	return r.Row(names.RoleSwitch, ls)
}

// management is the port through which the node itself reaches pods. It has no port security: the node also forwards
// packets of others through it.
func (r nodeRows) management(addrs []netip.Prefix) nb.Row {
	address := ipnet.MACFor(ipnet.Addrs(addrs)).String()
	for _, p := range addrs {
		address += " " + p.Addr().String()
	}
	return r.Row(names.RoleManagement, &nbdb.LogicalSwitchPort{
		Name: names.ManagementPort(r.node.Name), Addresses: []string{address},
	}, r.inSwitch("ports"))
}

// egress sends what the node's pods send out of the cluster to the node itself, through the management port. A
// connected subnet is a better match than this route as long as node subnets are of one size: OVN prefers the longer
// prefix, and of equal ones the destination (ovn-nb(5), Logical_Router_Static_Route policy).
func (r nodeRows) egress(subnet netip.Prefix, via netip.Addr) nb.Row {
	policy := nbdb.LogicalRouterStaticRoutePolicySrcIP
	return r.Row(familyRole(names.RoleEgress, subnet.Addr().Is4()), &nbdb.LogicalRouterStaticRoute{
		IPPrefix: subnet.String(), Nexthop: via.String(), Policy: &policy,
	}, inRouter(r.network, "static_routes"))
}

// nths lists the n-th address of each subnet, with the subnet's length.
func nths(subnets []netip.Prefix, n uint64) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, p := range subnets {
		a, ok := ipnet.Nth(p, n)
		if !ok {
			return nil, fmt.Errorf("subnet %s has no address number %d: too small", p, n)
		}
		out = append(out, netip.PrefixFrom(a, p.Bits()))
	}
	return out, nil
}
