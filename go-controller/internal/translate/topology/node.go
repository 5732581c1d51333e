package topology

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Node translates nodes.
type Node struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Node) Kind() names.Kind { return names.KindNode }

// Owners implements translate.Translator.
func (Node) Owners(s *cluster.State) []nb.Owner {
	return nb.Owners(names.KindNode, s.Nodes, func(n string) string { return n })
}

// Depends implements translate.Translator. Ranges of ClusterIPs are in an ACL of
// each node.
func (Node) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds:    []cluster.Kind{cluster.KindNode, cluster.KindServiceCIDR},
		Subjects: []cluster.Subject{index.GatewayExists, index.ZoneInUse},
	}
}

// Affected implements translate.Translator. With the first gateway of the
// cluster, or without its last, all nodes' pods leave another way. With the first
// zone, or without the last, the nodes in no zone come to a group or leave it.
func (t Node) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	if c.Ref.Kind == cluster.KindServiceCIDR {
		return t.Owners(s)
	}
	out := []nb.Owner{{Kind: names.KindNode, Name: c.Ref.Name.Name}}
	if c.Concerns(index.GatewayExists) {
		return append(t.Owners(s), out...)
	}
	if slices.Contains(c.About(index.ZoneInUse), cluster.Name{}) {
		for _, n := range index.ZonesOf(s).Nodes("") {
			out = append(out, nb.Owner{Kind: names.KindNode, Name: n.Name})
		}
	}
	return out
}

// Rows implements translate.Translator. A node wants nothing until it has
// subnets.
func (t Node) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	n, subnets := s.Nodes[o.Name], s.NodeSubnets[o.Name]
	if n == nil || len(subnets) == 0 {
		return translate.Rows{}, nil
	}
	var first, second []netip.Prefix
	for _, p := range subnets {
		a, err := nth(p, 1)
		if err != nil {
			return translate.Rows{}, err
		}
		b, err := nth(p, 2)
		if err != nil {
			return translate.Rows{}, err
		}
		first, second = append(first, a), append(second, b)
	}
	r := nodeRows{schema: t.Schema, owner: o, node: n, state: s}
	rows := []nb.Row{r.nodeSwitch(subnets, first), r.routerPort(first), r.switchPort(first), r.management(second), r.hairpin(second)}
	rows = append(rows, r.unserved()...)
	for i, p := range subnets {
		if !index.GatewaysOf(s).Any(p.Addr().Is4()) {
			rows = append(rows, r.egress(p, second[i].Addr()))
		}
	}
	return translate.Rows{Rows: rows}, nil
}

type nodeRows struct {
	schema *nb.Schema
	owner  nb.Owner
	node   *cluster.Node
	state  *cluster.State
}

func (r nodeRows) key(table, role string) nb.Key {
	return nb.Key{Table: table, Owner: r.owner, Role: role}
}

func (r nodeRows) uuid(table, role string) string {
	return names.NodeRow(table, r.node.Name, role, r.node.UID)
}

func (r nodeRows) inSwitch() nb.Slot {
	return nb.Slot{In: nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: r.uuid(nbdb.LogicalSwitchTable, names.RoleSwitch)}, Column: "ports"}
}

func (r nodeRows) nodeSwitch(subnets, first []netip.Prefix) nb.Row {
	ls := &nbdb.LogicalSwitch{
		UUID: r.uuid(nbdb.LogicalSwitchTable, names.RoleSwitch), Name: names.NodeSwitch(r.node.Name),
		LoadBalancerGroup: []string{names.ClusterRow(nbdb.LoadBalancerGroupTable, names.RoleLBGroup)},
		OtherConfig:       map[string]string{}, ExternalIDs: map[string]string{},
	}
	if index.ZonesOf(r.state).Has(r.node.Zone) {
		ls.LoadBalancerGroup = append(ls.LoadBalancerGroup, names.ZoneRow(nbdb.LoadBalancerGroupTable, r.node.Zone, names.RoleLBGroup))
	}
	for i, p := range subnets {
		switch {
		case p.Addr().Is4():
			ls.OtherConfig["subnet"] = p.String()
			ls.ExternalIDs[names.KeyGatewayIP] = first[i].String()
		case len(subnets) == 1:
			ls.OtherConfig["ipv6_prefix"] = p.Addr().String()
			ls.ExternalIDs[names.KeyGatewayIP] = first[i].String()
		default:
			ls.OtherConfig["ipv6_prefix"] = p.Addr().String()
			ls.ExternalIDs[names.KeyGatewayIPv6] = first[i].String()
		}
	}
	if r.node.ByHand {
		ls.ExternalIDs[names.ByHandKey] = r.node.ByHandRecord()
	}
	return r.schema.NewRow(r.key(nbdb.LogicalSwitchTable, names.RoleSwitch), ls)
}

func (r nodeRows) routerPort(first []netip.Prefix) nb.Row {
	return r.schema.NewRow(r.key(nbdb.LogicalRouterPortTable, names.RoleRouterToNode), &nbdb.LogicalRouterPort{
		UUID: r.uuid(nbdb.LogicalRouterPortTable, names.RoleRouterToNode), Name: names.RouterToSwitch(r.node.Name),
		MAC: ipnet.MACFor(ipnet.Addrs(first)).String(), Networks: texts(first),
	}, nb.Slot{In: routerRef(r.state), Column: "ports"})
}

func (r nodeRows) switchPort(first []netip.Prefix) nb.Row {
	return r.schema.NewRow(r.key(nbdb.LogicalSwitchPortTable, names.RoleNodeToRouter), &nbdb.LogicalSwitchPort{
		UUID: r.uuid(nbdb.LogicalSwitchPortTable, names.RoleNodeToRouter), Name: names.SwitchToRouter(r.node.Name),
		Type: "router", Addresses: []string{ipnet.MACFor(ipnet.Addrs(first)).String()},
		Options: map[string]string{"router-port": names.RouterToSwitch(r.node.Name)},
	}, r.inSwitch())
}

// management has no port security: the node sends through it what it forwards
// for others.
func (r nodeRows) management(second []netip.Prefix) nb.Row {
	address := ipnet.MACFor(ipnet.Addrs(second)).String()
	for _, p := range second {
		address += " " + p.Addr().String()
	}
	return r.schema.NewRow(r.key(nbdb.LogicalSwitchPortTable, names.RoleManagement), &nbdb.LogicalSwitchPort{
		UUID: r.uuid(nbdb.LogicalSwitchPortTable, names.RoleManagement), Name: names.ManagementPort(r.node.Name),
		Addresses: []string{address},
	}, r.inSwitch())
}

// egress sends what the node's pods address to no one in the cluster to the
// node itself, through the management port. A connected subnet is a better
// match than this route as long as node subnets are of one size: OVN prefers
// the longer prefix, and of equal ones the destination (ovn-nb(5),
// Logical_Router_Static_Route policy).
func (r nodeRows) egress(subnet netip.Prefix, via netip.Addr) nb.Row {
	role := names.FamilyRole(names.RoleEgress, names.FamilyOf(subnet.Addr().Is4()))
	policy := nbdb.LogicalRouterStaticRoutePolicySrcIP
	return r.schema.NewRow(r.key(nbdb.LogicalRouterStaticRouteTable, role), &nbdb.LogicalRouterStaticRoute{
		UUID: r.uuid(nbdb.LogicalRouterStaticRouteTable, role), IPPrefix: subnet.String(), Nexthop: via.String(), Policy: &policy,
	}, nb.Slot{In: routerRef(r.state), Column: "static_routes"})
}

// nth is the n-th address of a subnet with the subnet's length.
func nth(p netip.Prefix, n uint64) (netip.Prefix, error) {
	a, ok := ipnet.Nth(p, n)
	if !ok {
		return netip.Prefix{}, fmt.Errorf("subnet %s has no address number %d: too small", p, n)
	}
	return netip.PrefixFrom(a, p.Bits()), nil
}

func texts(ps []netip.Prefix) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.String()
	}
	slices.Sort(out)
	return out
}
