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
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// replies are policies of the cluster router that return the service's replies to clients outside the cluster to the
// endpoint's node. That node's kernel forwarded the connection and has its entry. With externalTrafficPolicy Local it
// keeps the client's address, so that a reply would otherwise leave through a gateway. There is one policy for each
// node with endpoints and each family that has a gateway. Without a gateway all packets leave through their node
// anyway. Replies to clients in the cluster match a policy of a higher priority (names.PolicyInside).
//
// All endpoints count, also those that get no new connections: they may have old ones.
// A Service whose node ports exceed the limit is not served from outside at all.
func (r serviceRows) replies(eps []*cluster.EndpointSlice) ([]nb.Row, error) {
	if !r.svc.LocalFromOutside() || !r.svc.ServesNodePorts(r.state.Config.Services) {
		return nil, nil
	}
	var rows []nb.Row
	for _, at := range replySources(r.state, r.svc, eps) {
		management, ok := subnet.Management(at.subnet)
		if !ok {
			return nil, fmt.Errorf("subnet %s of node %s has no address number 2: too small", at.subnet, at.node)
		}
		role := names.FamilyRole(names.NodeRole(names.RoleReply, at.node), names.FamilyOf(at.subnet.Addr().Is4()))
		rows = append(rows, r.Row(role, &nbdb.LogicalRouterPolicy{
			Priority: names.PolicyReply, Match: at.match(),
			Action: nbdb.LogicalRouterPolicyActionReroute, Nexthops: []string{management.String()},
		}, nb.Slot{In: nb.Ref{Table: nbdb.LogicalRouterTable, UUID: r.state.ClusterRouter(nbdb.LogicalRouterTable)},
			Column: "policies"}))
	}
	return rows, nil
}

// nodeSubnet is one subnet of a node.
type nodeSubnet struct {
	node   string
	subnet netip.Prefix
}

// replySource is the endpoints of a service that are in a node's subnet.
type replySource struct {
	nodeSubnet
	from map[source][]netip.Addr
}

// source is the protocol and port that a reply comes from.
type source struct {
	protocol cluster.Protocol
	port     uint16
}

// replySources lists them, sorted by node and subnet. Endpoints on a node's own addresses need no policy.
func replySources(s *cluster.State, svc *cluster.Service, eps []*cluster.EndpointSlice) []replySource {
	sources := map[nodeSubnet]replySource{}
	for _, e := range eps {
		for _, ep := range e.Endpoints {
			i := slices.IndexFunc(s.NodeSubnets[ep.Node], func(p netip.Prefix) bool { return p.Contains(ep.Addr) })
			if i < 0 || !index.GatewaysOf(s).Any(ep.Addr.Is4()) {
				continue
			}
			at := nodeSubnet{ep.Node, s.NodeSubnets[ep.Node][i]}
			if sources[at].from == nil {
				sources[at] = replySource{at, map[source][]netip.Addr{}}
			}
			for _, port := range svc.Ports {
				for _, number := range cluster.Numbers(port, e) {
					k := source{port.Protocol, number}
					sources[at].from[k] = append(sources[at].from[k], ep.Addr)
				}
			}
		}
	}
	maps.DeleteFunc(sources, func(_ nodeSubnet, r replySource) bool { return len(r.from) == 0 })
	return slices.SortedFunc(maps.Values(sources), func(a, b replySource) int {
		return cmp.Or(cmp.Compare(a.node, b.node), a.subnet.Compare(b.subnet))
	})
}

// match is "(ip4.src == {10.0.0.5, 10.0.0.6} && tcp.src == 8080) || ..." (ovn-sb(5), Logical_Flow match).
func (r replySource) match() string {
	ip := "ip6.src"
	if r.subnet.Addr().Is4() {
		ip = "ip4.src"
	}
	var parts []string
	for _, k := range slices.SortedFunc(maps.Keys(r.from), func(a, b source) int {
		return cmp.Or(cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.port, b.port))
	}) {
		addrs := slices.Compact(slices.SortedFunc(slices.Values(r.from[k]), netip.Addr.Compare))
		protocol := strings.ToLower(string(k.protocol))
		parts = append(parts, fmt.Sprintf("(%s == {%s} && %s.src == %d)", ip, joined(addrs, ", "), protocol, k.port))
	}
	return strings.Join(parts, " || ")
}

// withoutGateways lists the services whose replies may take another path because the cluster gained its first gateway
// of a family or lost its last.
func withoutGateways(s *cluster.State, c cluster.Change) []cluster.Name {
	if c.Concerns(index.GatewayExists) {
		return index.ServicesOf(s).LocalFromOutside()
	}
	return nil
}

// withOtherReplies lists the services whose replies may take another path because a node gained or lost subnets: those
// with endpoints on the node.
func withOtherReplies(s *cluster.State, c cluster.Change) []cluster.Name {
	if c.Granted && !c.Concerns(index.GatewayExists) {
		return index.ServicesOf(s).LocalFromOutsideOn(s, c.Ref.Name.Name)
	}
	return nil
}
