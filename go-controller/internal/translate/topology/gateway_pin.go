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

// pins is the policies by which pods leave through the gateways that their
// subnet is pinned to, whatever the routes say: their own node's gateway too
// has only a route. Of two subnets that contain a pod the smaller counts. One that several gateways name is a row of the first of
// them by name, and pods leave through all of these that are in service;
// through any gateway, when none of these is.
func (r gatewayRows) pins() []nb.Row {
	var rows []nb.Row
	for _, subnet := range r.gateway.Rampout {
		of := pinning(r.state, subnet)
		if len(of) == 0 || of[0] != r.node.Name {
			continue
		}
		is4 := subnet.Addr().Is4()
		var hops []string
		var own []netip.Addr
		for _, name := range of {
			if ip, ok := ipnet.FirstOf(ipnet.Addrs(r.gateways.Of(r.state, name).IPs), is4); ok {
				own = append(own, ip)
			}
			if via, ok := r.state.JoinAddr(name, is4); ok && r.gateways.Chosen(r.state, name, is4) {
				hops = append(hops, via.String())
			}
		}
		if len(hops) == 0 {
			continue
		}
		role := names.PrefixRole(names.RoleRampout, subnet)
		rows = append(rows, r.schema.NewRow(r.key(nbdb.LogicalRouterPolicyTable, role), &nbdb.LogicalRouterPolicy{
			UUID: r.uuid(nbdb.LogicalRouterPolicyTable, role), Priority: names.PolicyPin + subnet.Bits(), Match: r.pinned(subnet, own),
			Action: nbdb.LogicalRouterPolicyActionReroute, Nexthops: hops,
		}, nb.Slot{In: routerRef(r.state), Column: "policies"}))
	}
	return rows
}

// pinned matches what leaves the cluster from a subnet. What is for pods and
// services is not its concern (names.PolicyInside); gateway routers, and the
// nodes whose addresses they share, would keep what is for them.
func (r gatewayRows) pinned(subnet netip.Prefix, own []netip.Addr) string {
	var inside []string
	for _, p := range r.state.Config.JoinSubnets {
		if p.Addr().Is4() == subnet.Addr().Is4() {
			inside = append(inside, p.String())
		}
	}
	for _, ip := range own {
		inside = append(inside, ip.String())
	}
	field := "ip6"
	if subnet.Addr().Is4() {
		field = "ip4"
	}
	return fmt.Sprintf("%[1]s.src == %[2]s && %[1]s.dst != {%[3]s}", field, subnet, strings.Join(inside, ", "))
}

// pinning lists the gateways that a subnet is pinned to and through which
// packets of its family can leave, sorted.
func pinning(s *cluster.State, subnet netip.Prefix) []string {
	var out []string
	for name, n := range s.Nodes {
		if n.Gateway != nil && slices.Contains(n.Gateway.Rampout, subnet) && index.GatewaysOf(s).Usable(s, name, subnet.Addr().Is4()) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// pinningToo lists the other gateways that have a pin in common with what a
// node and its rivals were or are: whose row such a pin is, and what it says,
// depends on all.
func pinningToo(s *cluster.State, c cluster.Change) []nb.Owner {
	var pins []netip.Prefix
	changed := []cluster.Object{c.Old, c.New}
	for _, rival := range c.About(index.GatewayAddress) {
		changed = append(changed, s.Object(cluster.Ref{Kind: cluster.KindNode, Name: rival}))
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
