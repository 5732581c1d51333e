package index

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Refusal is a part of what a node says of itself that has no effect.
type Refusal struct {
	Field, Value string
	Why          string // and what would be right
}

// verdict is what a gateway node's claims are worth.
type verdict struct {
	gateway *annotation.L3Gateway // without what is refused; nil when the node is no gateway
	own     []netip.Addr          // of the addresses that the Node reports, those that it may have
	refused []Refusal
}

// equal is true when two verdicts have the same effect.
func (v verdict) equal(w verdict) bool {
	return v.gateway.Equal(w.gateway) && slices.Equal(v.own, w.own) && slices.Equal(v.refused, w.refused)
}

// addrs is the external addresses that the gateway may have.
func (v verdict) addrs() []netip.Addr {
	if v.gateway == nil {
		return nil
	}
	return ipnet.Addrs(v.gateway.IPs)
}

// judge checks the claims of one node.
type judge struct {
	*Gateways
	s *cluster.State
	n *cluster.Node
}

// judge checks what a node claims as a gateway; n may be nil.
func (g *Gateways) judge(s *cluster.State, n *cluster.Node) (v verdict) {
	if n == nil || n.Gateway == nil {
		return v
	}
	if s.Config.Claims.Unchecked {
		return verdict{gateway: n.Gateway, own: n.Addrs}
	}
	j := judge{g, s, n}
	for _, a := range n.Addrs {
		if why := j.address(a); why != "" {
			v.refused = append(v.refused, Refusal{"status.addresses", a.String(), why})
		} else if g.reports.holder(a) == n {
			v.own = append(v.own, a)
		}
	}
	left := *n.Gateway
	refuse := func(field, value, why string) bool {
		if why != "" {
			v.refused = append(v.refused, Refusal{"annotation " + annotation.L3GatewayConfig + ": " + field, value, why})
		}
		return why != ""
	}
	left.IPs = slices.DeleteFunc(slices.Clone(left.IPs), func(p netip.Prefix) bool {
		why := j.address(p.Addr())
		if why != "" && !j.used(p.Addr().Is4()) { // a family without pods: left out, and nobody's loss
			return true
		}
		return refuse("ip-addresses", p.String(), why)
	})
	left.NextHops = slices.DeleteFunc(slices.Clone(left.NextHops), func(a netip.Addr) bool {
		return !has(left.IPs, a.Is4()) || refuse("next-hops", a.String(), j.nextHop(a, left.IPs))
	})
	left.Rampout = slices.DeleteFunc(slices.Clone(left.Rampout), func(p netip.Prefix) bool {
		return refuse("rampout-ip-subnets", p.String(), j.pin(p))
	})
	if len(left.IPs) > 0 {
		v.gateway = &left
	}
	return v
}

// has is true when a list has an address of a family.
func has(list []netip.Prefix, is4 bool) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Addr().Is4() == is4 })
}

// used is true when pods have addresses of a family.
func (j judge) used(is4 bool) bool {
	if is4 {
		return j.s.Config.HasIPv4()
	}
	return j.s.Config.HasIPv6()
}

// inside says in which range of the cluster an address is, "" for none.
func (j judge) inside(a netip.Addr) string {
	for _, c := range j.s.Config.Subnets {
		if c.CIDR.Contains(a) {
			return fmt.Sprintf("it is in the pods' range %s", c.CIDR)
		}
	}
	for _, p := range j.s.ServiceRanges() {
		if p.Contains(a) {
			return fmt.Sprintf("it is in the range %s of ClusterIPs", p)
		}
	}
	for _, p := range j.s.Config.JoinSubnets {
		if p.Contains(a) {
			return fmt.Sprintf("it is in the join subnet %s", p)
		}
	}
	return ""
}

// named is true when a node's gateway names an address. Which of several such gateways has it, Holder says.
func named(n *cluster.Node, a netip.Addr) bool { return slices.Contains(gatewayAddrs(n), a) }

// address is why an address can't be the node's, "" when it can. The node reports it, or its gateway names it.
func (j judge) address(a netip.Addr) string {
	if !a.IsGlobalUnicast() || a.Is4In6() {
		return "other hosts can't reach it: want an address of the node's NIC"
	}
	if in := j.inside(a); in != "" {
		return in + ": want an address outside of the cluster's ranges"
	}
	own, h := slices.Contains(j.n.Reported(), a), j.reports.holder(a)
	_, control := j.n.Labels.Get(labelControlPlane)
	switch {
	case h != nil && h != j.n && (!own || !named(h, a)):
		return fmt.Sprintf("it is an address of Node %s: want one that no other Node reports", h.Name)
	case j.s.Config.Claims.ListsGateway(a), j.n.ByHand:
		return ""
	case !own:
		return fmt.Sprintf("want an address that the Node reports %v, or one in --gateway-cidrs %v of the master",
			j.n.Reported(), j.s.Config.Claims.GatewayCIDRs)
	case !control && slices.Contains(apiServerAddrs(j.s), a):
		return fmt.Sprintf("it is an endpoint of Service default/kubernetes: want a Node with the label %s, "+
			"or the address in --gateway-cidrs of the master", labelControlPlane)
	}
	return ""
}

// nextHop is why the gateway can't have a next hop, "" when it can.
func (j judge) nextHop(a netip.Addr, ips []netip.Prefix) string {
	if in := j.inside(a); in != "" {
		return in + ": want a router outside of the cluster"
	}
	if a.IsLinkLocalUnicast() {
		return ""
	}
	onLink := func(p netip.Prefix) bool { // an address without a network reaches its router on the link
		return p.Addr() != a && (p.Contains(a) || p.IsSingleIP() && p.Addr().Is4() == a.Is4())
	}
	if !a.IsGlobalUnicast() || !slices.ContainsFunc(ips, onLink) {
		return fmt.Sprintf("it is not on the network of the gateway's addresses %v", ips)
	}
	return ""
}

// pin is why pods of a range can't be pinned to the gateway, "" when they can.
func (j judge) pin(p netip.Prefix) string {
	within := func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) }
	pods := slices.ContainsFunc(j.s.Config.Subnets, func(c config.ClusterSubnet) bool { return within(c.CIDR) })
	switch {
	case !pods:
		return fmt.Sprintf("it is not in the pods' ranges %v", j.s.Config.Subnets)
	case j.n.ByHand, slices.ContainsFunc(j.s.NodeSubnets[j.n.Name], within),
		slices.ContainsFunc(j.s.Config.Claims.PinCIDRs, within):
		return ""
	}
	return fmt.Sprintf("it is neither in the node's own subnets %v nor in --gateway-pin-cidrs %v of the master",
		j.s.NodeSubnets[j.n.Name], j.s.Config.Claims.PinCIDRs)
}

// labelControlPlane marks the Nodes of API servers. A kubelet can't set it on its own Node (Kubernetes, admission
// plugin NodeRestriction).
const labelControlPlane = "node-role.kubernetes.io/control-plane"

// apiServers is the slice that the API server itself keeps: the addresses at which it is reached.
func apiServers() cluster.Ref {
	return cluster.Ref{Kind: cluster.KindEndpointSlice, Name: cluster.Name{Namespace: "default", Name: "kubernetes"}}
}

// apiServerAddrs lists the addresses of the API servers.
func apiServerAddrs(s *cluster.State) (out []netip.Addr) {
	if slice := s.Slices[apiServers().Name]; slice != nil {
		for _, e := range slice.Endpoints {
			out = append(out, e.Addr)
		}
	}
	return out
}
