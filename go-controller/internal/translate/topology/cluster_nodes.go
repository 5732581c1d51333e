package topology

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// allNodes is the ACLs that are the same on all nodes' switches, and the port group that lists them: there is one row
// for all nodes, and a node that joins adds none.
func allNodes(m translate.Maker, s *cluster.State) []nb.Row {
	rows := []nb.Row{
		m.Row(names.RoleMcastRouters, &nbdb.PortGroup{Name: names.MulticastRouters}),
		spoofGuard(m, translate.OnAllNodes("acls")),
		translate.LinkLocal(m, translate.OnAllNodes("acls")),
	}
	rows = append(rows, noBackend(m, s, nil, translate.OnAllNodes("acls"))...)
	return append(rows, multicastRows(m)...)
}

// noBackend drops packets to a ClusterIP that got no backend, already at the node's switch. The cluster router would
// drop them, too (policies). But by then connection tracking has an entry with the ClusterIP as the destination: a UDP
// client that keeps its source port would never get a backend that is added later.
//
// The same holds in a primary network n, where the exit would drop them. What the exits' load balancers take passes,
// and so do the network's own ranges, which may overlap those of Services: the match has ranges without them. An ACL
// that allows them would have the switch track all connections, also in a network without services.
func noBackend(m translate.Maker, s *cluster.State, n *cluster.Network, in nb.Slot) []nb.Row {
	var passes []netip.Prefix
	if n != nil {
		passes = slices.Concat(s.ExitAddresses(), n.Ranges(), n.JoinSubnets)
	}
	var either []string
	for _, p := range s.ServiceRanges() {
		var rest []string
		for _, part := range ipnet.Minus(p, passes) {
			rest = append(rest, part.String())
		}
		if len(rest) > 0 {
			either = append(either, translate.OneOf(names.FamilyOf(p.Addr().Is4()), "dst", rest))
		}
	}
	if len(either) == 0 {
		return nil
	}
	return []nb.Row{m.Row(names.RoleUnserved, &nbdb.ACL{
		Priority: names.ACLUnserved, Direction: nbdb.ACLDirectionFromLport, Match: strings.Join(either, " || "),
		Action: nbdb.ACLActionDrop, Options: map[string]string{"apply-after-lb": "true"},
	}, in)}
}
