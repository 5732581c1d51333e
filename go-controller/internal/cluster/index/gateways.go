package index

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Subjects of topics about gateways.
const (
	// GatewayExists: an address family gained its first gateway or lost its last; the key is the family.
	GatewayExists cluster.Subject = "gateway exists"
	// GatewayInService: an address family gained its first working gateway or lost its last; the key is the family.
	GatewayInService cluster.Subject = "gateway in service"
	// GatewayAddress: another gateway than the one that changed claims an address that has another holder now; the key is
	// the node of that other gateway.
	GatewayAddress cluster.Subject = "gateway address"
)

// Gateways answers which nodes packets can leave the cluster through.
type Gateways struct {
	claims    claims[netip.Addr, cluster.Node] // of external addresses
	usable    cluster.NameSets[bool]           // by family, the nodes for which Usable is true
	inService cluster.NameSets[bool]           // those of them that are in service
	old       *cluster.Node                    // the node that changes, as it was
}

func newGateways() *Gateways {
	return &Gateways{
		claims: newClaims(func(_ netip.Addr, a, b *cluster.Node) int { return a.CompareAge(b) }),
		usable: cluster.NameSets[bool]{}, inService: cluster.NameSets[bool]{},
	}
}

// GatewaysOf is the index of a State.
func GatewaysOf(s *cluster.State) *Gateways { return of(s, newGateways) }

// Kinds implements cluster.Index.
func (*Gateways) Kinds() []cluster.Kind { return []cluster.Kind{cluster.KindNode} }

// Before implements cluster.Index.
func (g *Gateways) Before(s *cluster.State, r cluster.Ref) { g.old = s.Nodes[r.Name.Name] }

// After implements cluster.Index.
func (g *Gateways) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	now := s.Nodes[r.Name.Name]
	var others []cluster.Name
	if g.old != now {
		others = sortedNames(g.claims.replace(g.old, now, gatewayAddrs(g.old), gatewayAddrs(now)))
	}
	g.old = nil
	out := topics(GatewayAddress, others...)
	for _, is4 := range families() {
		existed, served := g.Any(is4), len(g.inService[is4]) > 0
		for _, n := range append(slices.Clone(others), r.Name) {
			usable := g.Usable(s, n.Name, is4)
			g.usable.Put(is4, n, usable)
			g.inService.Put(is4, n, usable && s.Nodes[n.Name].Outage() == "")
		}
		if g.Any(is4) != existed {
			out = append(out, cluster.Topic{Subject: GatewayExists, Key: family(is4)})
		}
		if len(g.inService[is4]) > 0 != served {
			out = append(out, cluster.Topic{Subject: GatewayInService, Key: family(is4)})
		}
	}
	return out
}

// gatewayAddrs is the addresses that a node claims as a gateway; n may be nil.
func gatewayAddrs(n *cluster.Node) []netip.Addr {
	if n == nil || n.Gateway == nil {
		return nil
	}
	return ipnet.Addrs(n.Gateway.IPs)
}

// Holder is the gateway that has an external address: the first by Node.CompareAge of those that claim it. It is nil
// when no gateway claims the address.
func (g *Gateways) Holder(a netip.Addr) *cluster.Node { return g.claims.holder(a) }

// Of is the gateway configuration of a node: its annotation, without the families whose address another gateway has. It
// is nil when the node is no gateway, or no family is left.
func (g *Gateways) Of(s *cluster.State, node string) *annotation.L3Gateway {
	n := s.Nodes[node]
	if n == nil || n.Gateway == nil {
		return nil
	}
	lost := map[bool]bool{}
	for _, p := range n.Gateway.IPs {
		if g.Holder(p.Addr()) != n {
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

// Usable is true when packets of a family can leave the cluster through the node: it is a gateway with a next hop and
// an address on the join switch.
func (g *Gateways) Usable(s *cluster.State, node string, is4 bool) bool {
	c := g.Of(s, node)
	if c == nil {
		return false
	}
	_, hop := c.NextHop(is4)
	_, joined := s.JoinAddr(node, is4)
	return hop && joined
}

// Chosen is true when packets of a family are to leave through the node: it is usable and in service. When no gateway
// of the family is in service, all usable ones are chosen: the verdict may be wrong, and there is no alternative.
func (g *Gateways) Chosen(s *cluster.State, node string, is4 bool) bool {
	return g.Usable(s, node, is4) && (len(g.inService[is4]) == 0 || s.Nodes[node].Outage() == "")
}

// Any is true when packets of a family can leave through any node.
func (g *Gateways) Any(is4 bool) bool { return len(g.usable[is4]) > 0 }

// List lists the nodes through which packets of any family can leave, sorted.
func (g *Gateways) List() []string {
	all := cluster.NameSet{}
	for _, is4 := range families() {
		maps.Copy(all, g.usable[is4])
	}
	var out []string
	for _, n := range all.Sorted() {
		out = append(out, n.Name)
	}
	return out
}

// Count counts the usable gateways of a family, and those in service.
func (g *Gateways) Count(is4 bool) (inService, all int) {
	return len(g.inService[is4]), len(g.usable[is4])
}
