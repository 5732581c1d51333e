package cluster

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
)

// Gateway is what the node is as a gateway: what its annotation says, but for
// the families whose address another gateway has. It is nil when the node is
// none, or none is left.
func (s *State) Gateway(node string) *annotation.L3Gateway {
	n := s.Nodes[node]
	if n == nil || n.Gateway == nil {
		return nil
	}
	lost := map[bool]bool{}
	for _, p := range n.Gateway.IPs {
		if s.OutsideHolder(p.Addr()) != n {
			lost[p.Addr().Is4()] = true
		}
	}
	if len(lost) == 0 {
		return n.Gateway
	}
	left := *n.Gateway
	left.IPs = slices.DeleteFunc(slices.Clone(left.IPs), func(p netip.Prefix) bool { return lost[p.Addr().Is4()] })
	left.NextHops = slices.DeleteFunc(slices.Clone(left.NextHops), func(a netip.Addr) bool { return lost[a.Is4()] })
	if len(left.IPs) == 0 {
		return nil
	}
	return &left
}

// OutsideHolder is the gateway that has an address outside: of those that claim
// it the oldest Node, then the first by name; one that was set up by hand has no
// age and comes last. It is nil when none claims it.
func (s *State) OutsideHolder(a netip.Addr) *Node { return s.outside.holder(a) }

// compareGateways orders the gateways that claim an address, its holder first.
func compareGateways(_ netip.Addr, a, b *Node) int {
	byHand := func(n *Node) int {
		if n.ByHand {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(byHand(a), byHand(b)), cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name))
}

// reclaimOutside replaces a node's claims to addresses outside, either of which
// may be nil, and lists the other gateways that gained or lost one by it.
func (s *State) reclaimOutside(old, now *Node) []Name {
	claimed := func(n *Node) (out []netip.Addr) {
		if n != nil && n.Gateway != nil {
			for _, p := range n.Gateway.IPs {
				out = append(out, p.Addr())
			}
		}
		return out
	}
	return sortedNames(s.outside.replace(old, now, claimed(old), claimed(now)))
}

// GrantJoin records the addresses of a node's gateway router on the join
// switch; none takes them back.
func (s *State) GrantJoin(node string, addrs []netip.Prefix) Change {
	if len(addrs) == 0 {
		delete(s.JoinAddrs, node)
	} else {
		s.JoinAddrs[node] = addrs
	}
	egress, exits := s.regate(Name{Name: node})
	c := s.granted(Ref{KindNode, Name{Name: node}})
	c.Egress, c.Exits = egress, exits
	return c
}

// JoinAddr is the address of a family of a node's gateway router on the join
// switch; ok is false when the node is no gateway, or has not been granted one.
func (s *State) JoinAddr(node string, is4 bool) (a netip.Addr, ok bool) {
	for _, p := range s.JoinAddrs[node] {
		if p.Addr().Is4() == is4 {
			return p.Addr(), true
		}
	}
	return netip.Addr{}, false
}

// Outage is why the node's gateway is out of service, "" when it is not, or the
// node is no gateway. What the agent said last is of no account once the node
// is not heard of.
func (n *Node) Outage() string {
	switch {
	case n.Gateway == nil:
		return ""
	case n.Silent, n.Unheard:
		return "the node is not heard of: its agent and its kubelet renew their Leases no more, or its condition Ready is Unknown"
	default:
		return n.Gateway.Out
	}
}

// Leaves tells whether packets of a family can leave the cluster through the
// node: it is a gateway that has a next hop and a place on the join switch.
func (s *State) Leaves(node string, is4 bool) bool {
	g := s.Gateway(node)
	if g == nil {
		return false
	}
	_, hop := g.NextHop(is4)
	_, joined := s.JoinAddr(node, is4)
	return hop && joined
}

// Serves tells whether packets of a family are to leave through the node: they
// can, and it is in service. When no gateway of the family is, all are taken to
// be: what says so may be wrong, and there is no better way.
func (s *State) Serves(node string, is4 bool) bool {
	return s.Leaves(node, is4) && (len(s.working[is4]) == 0 || s.Nodes[node].Outage() == "")
}

// HasGateway tells whether packets of a family can leave the cluster through
// any node's gateway.
func (s *State) HasGateway(is4 bool) bool { return len(s.gateways[is4]) > 0 }

// Gateways lists the nodes through which packets of any family can leave, sorted.
func (s *State) Gateways() []string {
	all := maps.Clone(s.gateways[true])
	if all == nil {
		all = set{}
	}
	maps.Copy(all, s.gateways[false])
	var out []string
	for _, n := range sorted(all) {
		out = append(out, n.Name)
	}
	return out
}

// Working counts the gateways of a family that are in service, and all of it.
func (s *State) Working(is4 bool) (working, all int) {
	return len(s.working[is4]), len(s.gateways[is4])
}

// regate brings the indexes of gateways up to date with nodes. egress tells
// whether HasGateway of a family changed; exits, whether none of a family's is
// in service any more, or the first is.
func (s *State) regate(nodes ...Name) (egress, exits bool) {
	for _, is4 := range []bool{true, false} {
		had, worked := s.HasGateway(is4), len(s.working[is4]) > 0
		for _, n := range nodes {
			leaves := s.Leaves(n.Name, is4)
			mark(s.gateways, is4, n, leaves)
			mark(s.working, is4, n, leaves && s.Nodes[n.Name].Outage() == "")
		}
		egress = egress || s.HasGateway(is4) != had
		exits = exits || len(s.working[is4]) > 0 != worked
	}
	return egress, exits
}
