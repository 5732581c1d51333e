package nbrecord

import (
	"errors"
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
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// Router records an existing cluster router in the State: its UUID if somebody else made it, and its name unless the
// configuration asks for one. It fails when there are several. It also records whether the database has tiers of ACLs:
// it fails when tenants need them, because without them nothing would keep tenants apart.
func Router(s *cluster.State, session *ovsdb.Session) error {
	s.WithoutTiers = session.View().Lacks(nbdb.ACLTable, "tier")
	if s.WithoutTiers && s.Config.Multitenant {
		return errors.New("--multitenant: the Northbound database has no tiers of ACLs, which keep tenants apart: " +
			"update OVN to 23.06 or later, with its database schema, or leave --multitenant out")
	}
	uuid, err := session.ClusterRouter()
	if err != nil {
		return err
	}
	own := s.Networks[names.Own]
	own.RouterUUID = uuid
	ours := names.IsUUIDOf(names.ClusterRow(nbdb.LogicalRouterTable, names.RoleRouter), uuid)
	if ours {
		own.RouterUUID = ""
	}
	r, ok := session.View().Row(nb.Ref{Table: nbdb.LogicalRouterTable, UUID: uuid}).(*nbdb.LogicalRouter)
	if ok && (!ours || !s.Config.RouterNamed) {
		s.Config.RouterName = r.Name
	}
	return nil
}

// Nodes lists the nodes that were set up by hand, by name, and what is wrong with their records.
func Nodes(session *ovsdb.Session) ([]*cluster.Node, []cluster.Problem) {
	records := session.ByHand()
	var nodes []*cluster.Node
	var problems []cluster.Problem
	for _, name := range slices.Sorted(maps.Keys(records)) {
		n, bad := cluster.ParseByHand(name, records[name])
		ls, ok := session.ByHandSwitch(name).(*nbdb.LogicalSwitch)
		if _, err := annotation.ParseNodeSubnets(n.Annotated); ok && err != nil {
			n.Annotated = annotation.MarshalNodeSubnets(SwitchSubnets(ls)) // the record is damaged: the switch still has them
		}
		nodes, problems = append(nodes, n), append(problems, bad...)
	}
	return nodes, problems
}

// switches lists the subnets of all nodes' switches. Only a master writes those.
func switches(session *ovsdb.Session) map[string][]netip.Prefix {
	view, out := session.Glance(), map[string][]netip.Prefix{}
	for _, o := range session.Owners() {
		if o.Kind != names.KindNode {
			continue
		}
		for _, ref := range view.Owned(o) {
			if ls, ok := view.Row(ref).(*nbdb.LogicalSwitch); ok {
				out[o.Name] = SwitchSubnets(ls)
			}
		}
	}
	return out
}

// SwitchSubnets is the subnets of a node's switch, whose row has the router's addresses in them.
func SwitchSubnets(ls *nbdb.LogicalSwitch) []netip.Prefix {
	out := ipnet.Prefixes([]string{ls.ExternalIDs[names.KeyGatewayIP], ls.ExternalIDs[names.KeyGatewayIPv6]})
	for i, p := range out {
		out[i] = p.Masked()
	}
	return out
}

// DownGateways lists the gateways that a master had found down when it last wrote, sorted: their routers exist, the
// cluster router's routes to them do not, and nothing that is known now explains that. When this applies to all
// gateways, the list is empty. It leaves out gateways that were set up by hand: they have no Lease.
func DownGateways(s *cluster.State, view nb.View) []string {
	var down []string
	gateways := index.GatewaysOf(s).List()
	for _, name := range gateways {
		router, routes := false, false
		for _, ref := range view.Owned(nb.Owner{Kind: names.KindGateway, Name: name}) {
			switch m := view.Row(ref).(type) {
			case *nbdb.LogicalRouter:
				router = true
			case *nbdb.LogicalRouterStaticRoute:
				role := m.ExternalIDs[names.RoleKey]
				routes = routes || role == names.FamilyRole(names.RoleLeave, names.IPv4) ||
					role == names.FamilyRole(names.RoleLeave, names.IPv6)
			}
		}
		if n := s.Nodes[name]; router && !routes && n.Outage() == "" && !n.ByHand {
			down = append(down, name)
		}
	}
	if len(down) == len(gateways) {
		return nil
	}
	return down
}
