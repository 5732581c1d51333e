package service

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// replies leads what the service's endpoints answer to clients from outside back
// to their node, whose kernel has let these in and knows what they asked for:
// with externalTrafficPolicy Local it keeps the client's address, and the way to
// that would be a gateway's. It is one row for each node with endpoints and each
// family that has a gateway: without one all that leaves goes by way of its node.
// Clients within the cluster come before, by the policy of the whole cluster
// (names.PolicyInside).
//
// All endpoints count, also those that are sent no new connections: they have
// old ones.
func (t Translator) replies(s *cluster.State, o nb.Owner, svc *cluster.Service, eps []*cluster.EndpointSlice) ([]nb.Row, error) {
	if !svc.LocalFromOutside() {
		return nil, nil
	}
	var rows []nb.Row
	for _, at := range replyPlaces(s, svc, eps) {
		via, ok := ipnet.Nth(at.subnet, 2) // its management port
		if !ok {
			return nil, fmt.Errorf("subnet %s of node %s has no address number 2: too small", at.subnet, at.node)
		}
		role := names.FamilyRole(names.NodeRole(names.RoleReply, at.node), names.FamilyOf(at.subnet.Addr().Is4()))
		rows = append(rows, t.Schema.NewRow(nb.Key{Table: nbdb.LogicalRouterPolicyTable, Owner: o, Role: role}, &nbdb.LogicalRouterPolicy{
			UUID:     names.RowUUID(nbdb.LogicalRouterPolicyTable, o.Kind, o.Name, role, svc.UID),
			Priority: names.PolicyReply, Match: at.match(), Action: nbdb.LogicalRouterPolicyActionReroute, Nexthops: []string{via.String()},
		}, nb.Slot{In: nb.Ref{Table: nbdb.LogicalRouterTable, UUID: s.ClusterRouter(nbdb.LogicalRouterTable)}, Column: "policies"}))
	}
	return rows, nil
}

// replyPlace is the endpoints of a service that are in a node's subnet.
type replyPlace struct {
	node   string
	subnet netip.Prefix
	from   map[source][]netip.Addr
}

// source is the protocol and port that an answer comes from.
type source struct {
	protocol cluster.Protocol
	port     uint16
}

// replyPlaces finds them, sorted by node and subnet. Endpoints on a node's own
// addresses need nothing.
func replyPlaces(s *cluster.State, svc *cluster.Service, eps []*cluster.EndpointSlice) []replyPlace {
	type place struct {
		node   string
		subnet netip.Prefix
	}
	places := map[place]replyPlace{}
	for _, e := range eps {
		for _, ep := range e.Endpoints {
			i := slices.IndexFunc(s.NodeSubnets[ep.Node], func(p netip.Prefix) bool { return p.Contains(ep.Addr) })
			if i < 0 || !index.GatewaysOf(s).Any(ep.Addr.Is4()) {
				continue
			}
			at := place{ep.Node, s.NodeSubnets[ep.Node][i]}
			if places[at].from == nil {
				places[at] = replyPlace{at.node, at.subnet, map[source][]netip.Addr{}}
			}
			for _, port := range svc.Ports {
				for _, number := range cluster.Numbers(port, e) {
					k := source{port.Protocol, number}
					places[at].from[k] = append(places[at].from[k], ep.Addr)
				}
			}
		}
	}
	maps.DeleteFunc(places, func(_ place, p replyPlace) bool { return len(p.from) == 0 })
	return slices.SortedFunc(maps.Values(places), func(a, b replyPlace) int {
		return cmp.Or(cmp.Compare(a.node, b.node), a.subnet.Compare(b.subnet))
	})
}

// match is "(ip4.src == {10.0.0.5, 10.0.0.6} && tcp.src == 8080) || ..."
// (ovn-sb(5), Logical_Flow match).
func (p replyPlace) match() string {
	ip := "ip6.src"
	if p.subnet.Addr().Is4() {
		ip = "ip4.src"
	}
	var parts []string
	for _, k := range slices.SortedFunc(maps.Keys(p.from), func(a, b source) int {
		return cmp.Or(cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.port, b.port))
	}) {
		addrs := slices.SortedFunc(slices.Values(p.from[k]), netip.Addr.Compare)
		var texts []string
		for _, a := range slices.Compact(addrs) {
			texts = append(texts, a.String())
		}
		parts = append(parts, fmt.Sprintf("(%s == {%s} && %s.src == %d)", ip, strings.Join(texts, ", "), strings.ToLower(string(k.protocol)), k.port))
	}
	return strings.Join(parts, " || ")
}

// repliers are the services whose replies a change of a node can lead another
// way: all, when the cluster gets its first gateway of a family or loses its
// last; those with endpoints there, when the node gets subnets or loses them.
func repliers(s *cluster.State, c cluster.Change) []cluster.Name {
	switch {
	case c.Concerns(index.GatewayExists):
		return index.ServicesOf(s).LocalFromOutside()
	case c.Granted:
		return index.ServicesOf(s).LocalFromOutsideOn(s, c.Ref.Name.Name)
	}
	return nil
}
