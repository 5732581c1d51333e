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
	// GatewayAddress: a gateway whose Node did not change claims an address that has another holder now, or what it claims
	// is judged differently; the key is the node of that gateway.
	GatewayAddress cluster.Subject = "gateway address"
)

// Gateways answers which nodes packets can leave the cluster through. What a node says of itself counts only where it
// agrees with what the cluster says.
type Gateways struct {
	reports   claims[netip.Addr, cluster.Node] // of the addresses that Nodes report
	naming    cluster.NameSets[netip.Addr]     // the gateway nodes that name or report an address, theirs or not
	verdicts  map[string]verdict               // by gateway node
	claims    claims[netip.Addr, cluster.Node] // of the external addresses that gateways may have
	usable    cluster.NameSets[bool]           // by family, the nodes for which Usable is true
	inService cluster.NameSets[bool]           // those of them that are in service
	old       *cluster.Node                    // the node that changes, as it was
}

func newGateways() *Gateways {
	byAge := func(_ netip.Addr, a, b *cluster.Node) int { return a.CompareAge(b) }
	return &Gateways{
		reports: newClaims(byAge), naming: cluster.NameSets[netip.Addr]{}, verdicts: map[string]verdict{},
		claims: newClaims(byAge), usable: cluster.NameSets[bool]{}, inService: cluster.NameSets[bool]{},
	}
}

// GatewaysOf is the index of a State.
func GatewaysOf(s *cluster.State) *Gateways { return of(s, newGateways) }

// Kinds implements cluster.Index.
func (*Gateways) Kinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindNode, cluster.KindServiceCIDR, cluster.KindEndpointSlice}
}

// Before implements cluster.Index.
func (g *Gateways) Before(s *cluster.State, r cluster.Ref) {
	g.old = nil
	if r.Kind == cluster.KindNode {
		g.old = s.Nodes[r.Name.Name]
	}
}

// After implements cluster.Index.
func (g *Gateways) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	var others []*cluster.Node
	for _, n := range g.concerned(s, r).Sorted() {
		others = append(others, g.rejudge(s, n, r)...)
	}
	g.old = nil
	names := sortedNames(others)
	out := topics(GatewayAddress, names...)
	if r.Kind == cluster.KindNode {
		names = append(names, r.Name)
	}
	return append(out, g.count(s, names)...)
}

// concerned is the nodes whose claims are to be judged again after a change.
func (g *Gateways) concerned(s *cluster.State, r cluster.Ref) cluster.NameSet {
	all := cluster.NameSet{}
	switch {
	case r.Kind == cluster.KindNode:
		old, now := g.old, s.Nodes[r.Name.Name]
		all.Put(r.Name, true)
		if old == now {
			return all // only what was granted to the node changed
		}
		reported, reports := reported(old), reported(now)
		g.reports.replace(old, now, reported, reports)
		for _, a := range judged(old) {
			g.naming.Put(a, r.Name, false)
		}
		for _, a := range judged(now) {
			g.naming.Put(a, r.Name, true)
		}
		for _, a := range slices.Concat(reported, reports) {
			maps.Copy(all, g.naming[a])
		}
	case r.Kind == cluster.KindServiceCIDR, r == apiServers():
		for _, of := range g.naming {
			maps.Copy(all, of)
		}
	}
	return all
}

// rejudge judges the claims of a node again. It lists the nodes to which that may matter, except the one that changed.
func (g *Gateways) rejudge(s *cluster.State, name cluster.Name, changed cluster.Ref) []*cluster.Node {
	old, now := s.Nodes[name.Name], s.Nodes[name.Name]
	own := changed == (cluster.Ref{Kind: cluster.KindNode, Name: name})
	if own {
		old = g.old
	}
	was, is := g.verdicts[name.Name], g.judge(s, now)
	delete(g.verdicts, name.Name)
	if is.gateway != nil || len(is.refused) > 0 {
		g.verdicts[name.Name] = is
	}
	others := g.claims.replace(old, now, was.addrs(), is.addrs())
	if !own && !was.equal(is) {
		others = append(others, now)
	}
	return others
}

// count brings usable and inService up to date for nodes. It lists what changed for a whole family.
func (g *Gateways) count(s *cluster.State, nodes []cluster.Name) (out []cluster.Topic) {
	for _, is4 := range families() {
		existed, served := g.Any(is4), len(g.inService[is4]) > 0
		for _, n := range nodes {
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

// judged is the addresses that a node names as a gateway, or reports while it is one; n may be nil.
func judged(n *cluster.Node) []netip.Addr {
	if n == nil || n.Gateway == nil {
		return nil
	}
	return append(gatewayAddrs(n), n.Addrs...)
}

// reported is the addresses that a Node reports; n may be nil.
func reported(n *cluster.Node) []netip.Addr {
	if n == nil {
		return nil
	}
	return n.Reported()
}

// Holder is the gateway that has an external address: the first by Node.CompareAge of those that claim it. It is nil
// when no gateway claims the address.
func (g *Gateways) Holder(a netip.Addr) *cluster.Node { return g.claims.holder(a) }

// Of is the gateway configuration of a node: its annotation, without what is refused and without the families whose
// address another gateway has. It is nil when the node is no gateway, or no family is left.
func (g *Gateways) Of(s *cluster.State, node string) *annotation.L3Gateway {
	n, claim := s.Nodes[node], g.verdicts[node].gateway
	if n == nil || claim == nil {
		return nil
	}
	lost := map[bool]bool{}
	for _, p := range claim.IPs {
		if g.Holder(p.Addr()) != n {
			lost[p.Addr().Is4()] = true
		}
	}
	if len(lost) == 0 {
		return claim
	}
	left := *claim
	left.IPs = slices.DeleteFunc(slices.Clone(left.IPs), func(p netip.Prefix) bool { return lost[p.Addr().Is4()] })
	left.NextHops = slices.DeleteFunc(slices.Clone(left.NextHops), func(a netip.Addr) bool { return lost[a.Is4()] })
	if len(left.IPs) == 0 {
		return nil
	}
	return &left
}

// Admitted is true when a gateway may have an external address that it names, unless an older one names it too.
func (g *Gateways) Admitted(node string, a netip.Addr) bool {
	return slices.Contains(g.verdicts[node].addrs(), a)
}

// Pins is true when a gateway names a range of pods as pinned to it, and may do so.
func (g *Gateways) Pins(node string, pods netip.Prefix) bool {
	v := g.verdicts[node].gateway
	return v != nil && slices.Contains(v.Rampout, pods)
}

// Own is those of the InternalIPs that a gateway's Node reports that it may have.
func (g *Gateways) Own(node string) []netip.Addr { return g.verdicts[node].own }

// Refused is what a gateway node says of itself that has no effect.
func (g *Gateways) Refused(node string) []Refusal { return g.verdicts[node].refused }

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
