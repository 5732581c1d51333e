package topology

import (
	"fmt"
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

// pins are the policies by which pods leave through the gateways that their subnet is pinned to. A policy comes before
// all routes, also before the route through the gateway of the pods' own node. When two subnets contain a pod, the
// smaller counts. When several gateways name a subnet, the first of them by name has the row: pods leave through all of
// these gateways that are in service. When none of them is, pods leave as the routes say.
func (r gatewayRows) pins() []nb.Row {
	var rows []nb.Row
	for _, subnet := range r.gateway.Rampout {
		gateways := pinnedTo(r.state, subnet)
		if len(gateways) == 0 || gateways[0] != r.node.Name {
			continue
		}
		is4 := subnet.Addr().Is4()
		var hops []string
		var external []netip.Addr
		for _, name := range gateways {
			if ip, ok := ipnet.FirstOf(ipnet.Addrs(r.gateways.Of(r.state, name).IPs), is4); ok {
				external = append(external, ip)
			}
			if via, ok := r.state.JoinAddr(name, is4); ok && r.gateways.Chosen(r.state, name, is4) {
				hops = append(hops, via.String())
			}
		}
		if len(hops) == 0 {
			continue
		}
		rows = append(rows, r.Row(names.PrefixRole(names.RoleRampout, subnet), &nbdb.LogicalRouterPolicy{
			Priority: names.PolicyPin + subnet.Bits(), Match: r.pinMatch(subnet, external),
			Action: nbdb.LogicalRouterPolicyActionReroute, Nexthops: hops,
		}, inClusterRouter(r.state, "policies")))
	}
	return rows
}

// pinMatch matches packets from a subnet that leave the cluster. Policies of a higher priority take packets to pods and
// services (names.PolicyInside). Packets to gateway routers, and to the nodes whose addresses they share, stay.
func (r gatewayRows) pinMatch(subnet netip.Prefix, external []netip.Addr) string {
	var inside []string
	for _, p := range r.state.Config.JoinSubnets {
		if p.Addr().Is4() == subnet.Addr().Is4() {
			inside = append(inside, p.String())
		}
	}
	inside = append(inside, texts(external)...)
	return fmt.Sprintf("%[1]s.src == %[2]s && %[1]s.dst != {%[3]s}",
		ip(subnet.Addr().Is4()), subnet, strings.Join(inside, ", "))
}

// pinnedTo lists the gateways that a subnet is pinned to and that are usable for its family, sorted.
func pinnedTo(s *cluster.State, subnet netip.Prefix) []string {
	var out []string
	for name, n := range s.Nodes {
		if n.Gateway != nil && slices.Contains(n.Gateway.Rampout, subnet) && index.GatewaysOf(s).Pins(name, subnet) &&
			index.GatewaysOf(s).Usable(s, name, subnet.Addr().Is4()) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// othersWithPins lists the other gateways that share a pinned subnet with a node that changed, or with a gateway that
// gained or lost an address by that: all of these decide which of them has the row, and what it says.
func othersWithPins(s *cluster.State, c cluster.Change) []nb.Owner {
	var pins []netip.Prefix
	changed := []cluster.Object{c.Old, c.New}
	for _, other := range c.About(index.GatewayAddress) {
		changed = append(changed, s.Object(cluster.Ref{Kind: cluster.KindNode, Name: other}))
	}
	for _, o := range changed {
		if n, ok := o.(*cluster.Node); ok && n.Gateway != nil {
			pins = append(pins, n.Gateway.Rampout...)
		}
	}
	if len(pins) == 0 {
		return nil
	}
	var out []nb.Owner
	for name, n := range s.Nodes {
		shares := func(p netip.Prefix) bool { return slices.Contains(pins, p) }
		if n.Gateway != nil && name != c.Ref.Name.Name && slices.ContainsFunc(n.Gateway.Rampout, shares) {
			out = append(out, gatewayOwner(name))
		}
	}
	return out
}
