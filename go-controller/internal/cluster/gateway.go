package cluster

import "net/netip"

// GrantJoin records the addresses of a node's gateway router on the join
// switch; none takes them back.
func (s *State) GrantJoin(node string, addrs []netip.Prefix) Change {
	if len(addrs) == 0 {
		delete(s.JoinAddrs, node)
	} else {
		s.JoinAddrs[node] = addrs
	}
	egress := s.regate(node)
	c := s.granted(Ref{KindNode, Name{Name: node}})
	c.Egress = egress
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

// Leaves tells whether packets of a family can leave the cluster through the
// node: it is a gateway that has a next hop and a place on the join switch.
func (s *State) Leaves(node string, is4 bool) bool {
	n := s.Nodes[node]
	if n == nil || n.Gateway == nil {
		return false
	}
	_, hop := n.Gateway.NextHop(is4)
	_, joined := s.JoinAddr(node, is4)
	return hop && joined
}

// HasGateway tells whether packets of a family can leave the cluster through
// any node's gateway.
func (s *State) HasGateway(is4 bool) bool { return len(s.gateways[is4]) > 0 }

// regate brings the index of gateways up to date with a node, and tells whether
// HasGateway of a family changed.
func (s *State) regate(node string) (changed bool) {
	for _, is4 := range []bool{true, false} {
		was := s.HasGateway(is4)
		if s.Leaves(node, is4) {
			s.gateways[is4][Name{Name: node}] = struct{}{}
		} else {
			delete(s.gateways[is4], Name{Name: node})
		}
		changed = changed || s.HasGateway(is4) != was
	}
	return changed
}
