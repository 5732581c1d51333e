package allocate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// firstJoin is the number of the first address on the join switch that gateway routers get. The one before is the
// cluster router's.
const firstJoin = 2

// joinPool is the addresses of gateway routers on the join switch. A node has the same number in each family's subnet.
type joinPool struct {
	subnets []netip.Prefix    // of the families that pods have, IPv4 first
	holder  map[uint64]string // nodes by number
	number  map[string]uint64
	waiting map[string]bool // gateways for which no number was left
	freed   *freedSet
}

func newJoinPool(subnets []netip.Prefix, freed *freedSet) *joinPool {
	return &joinPool{
		subnets: subnets, holder: map[uint64]string{}, number: map[string]uint64{}, waiting: map[string]bool{},
		freed: freed,
	}
}

// last is the highest number that every subnet has an address for.
func (p *joinPool) last() uint64 {
	last := uint64(ipnet.MaxNumber)
	for _, s := range p.subnets {
		n := ipnet.Size(s) - 1
		if s.Addr().Is4() {
			n-- // the broadcast address
		}
		last = min(last, n)
	}
	return last
}

// addrs is the addresses of a number.
func (p *joinPool) addrs(n uint64) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(p.subnets))
	for _, s := range p.subnets {
		a, _ := ipnet.Nth(s, n)
		out = append(out, netip.PrefixFrom(a, s.Bits()))
	}
	return out
}

// claim grants a node the very addresses that it claims.
func (p *joinPool) claim(node string, addrs []netip.Prefix) error {
	if len(addrs) == 0 || len(p.subnets) == 0 {
		return fmt.Errorf("%v: want one address in each of the join subnets %v", addrs, p.subnets)
	}
	n, ok := ipnet.Index(p.subnets[0], addrs[0].Addr())
	if !ok || n < firstJoin || n > p.last() || !slices.Equal(p.addrs(n), addrs) {
		return fmt.Errorf("%v: want the same number, %d to %d, of each of the join subnets %v",
			addrs, firstJoin, p.last(), p.subnets)
	}
	if other, taken := p.holder[n]; taken {
		return fmt.Errorf("%v: held by the gateway router of Node %s", addrs, other)
	}
	p.hold(node, n)
	return nil
}

func (p *joinPool) hold(node string, n uint64) {
	p.holder[n], p.number[node] = node, n
	delete(p.waiting, node)
}

// take grants a node the next free addresses.
func (p *joinPool) take(node string) bool {
	for n := uint64(firstJoin); n <= p.last() && len(p.subnets) > 0; n++ {
		if _, taken := p.holder[n]; !taken && !p.freed.has(p.addrs(n)[0].Addr()) {
			p.hold(node, n)
			return true
		}
	}
	return false
}

func (p *joinPool) release(node string) {
	delete(p.holder, p.number[node])
	delete(p.number, node)
	delete(p.waiting, node)
}

// wantsJoin is true when a node has a router on the network's join switch: that of a gateway, or of a primary network's
// exit.
func (u *update) wantsJoin(n *cluster.Node) bool {
	if u.network.Primary {
		return u.hasPrimaryPods(n.Name, u.network.Name)
	}
	return n.Gateway != nil
}

// releaseJoins takes back the addresses on the join switch of nodes that are no gateway any more.
func (u *update) releaseJoins() {
	for _, name := range sortedKeys(u.nodes) {
		n := u.s.Nodes[name]
		if n != nil && u.wantsJoin(n) {
			continue
		}
		if number, held := u.join.number[name]; held {
			u.Changes = append(u.Changes, u.s.GrantJoin(u.network.Name, name, nil))
			for _, a := range u.join.addrs(number) {
				u.freed.add(ipnet.Single(a.Addr()))
			}
		}
		u.join.release(name)
		if n == nil {
			continue
		}
		if claimed, ok, err := u.claimedJoin(n); ok || err != nil {
			u.freeUnneeded(claimed, u.join.subnets)
			u.patched[name] = true
		}
	}
}

// allocateJoins grants gateway nodes their addresses on the join switch: what they claim, the oldest node first, then
// what is free.
func (u *update) allocateJoins() {
	var wanting []*cluster.Node
	for _, n := range u.sortedNodes() {
		if u.wantsJoin(n) && !u.confirmJoin(n) {
			wanting = append(wanting, n)
		}
	}
	for _, n := range wanting {
		if u.join.take(n.Name) {
			u.grantJoin(n)
			u.patched[n.Name] = true
			continue
		}
		if !u.join.waiting[n.Name] {
			u.problem(n, n.UID, ReasonJoinExhausted, fmt.Sprintf("no address for the node's gateway router is free in the "+
				"join subnets %v: it waits for one; widen --join-subnet or remove gateways; "+
				"one that another gateway had is free after a minute", u.join.subnets))
		}
		u.join.waiting[n.Name] = true
	}
}

// confirmJoin compares what a gateway node claims with what it holds. It is false when the node holds nothing yet and
// its claim, if any, is refused.
func (u *update) confirmJoin(n *cluster.Node) bool {
	number, held := u.join.number[n.Name]
	claimed, ok, err := u.claimedJoin(n)
	switch {
	case !ok:
	case !held:
		if err = u.join.claim(n.Name, claimed); err == nil {
			u.grantJoin(n)
			return true
		}
	case slices.Equal(claimed, u.join.addrs(number)):
		return true
	default:
		err = fmt.Errorf("%v is not what the gateway router holds", claimed)
	}
	if ok {
		err = fmt.Errorf("annotation %s: %w", annotation.GatewayJoinAddrs, err)
	}
	if err != nil {
		u.problem(n, n.UID, ReasonJoinRefused, err.Error()+": it is written anew")
	}
	if held {
		u.patched[n.Name] = true
	}
	return held
}

// mayClaim is true when an annotation of a node may name the network.
func (b *book) mayClaim(n *cluster.Node) bool {
	return strings.Contains(n.JoinAnnotated, string(b.network.Name))
}

// claimedJoin is the addresses on the join switch that a node claims; ok is false when it claims none.
func (u *update) claimedJoin(n *cluster.Node) (addrs []netip.Prefix, ok bool, err error) {
	return u.read.Joins(n.JoinAnnotated).In(u.network.Name)
}

func (u *update) grantJoin(n *cluster.Node) {
	u.Changes = append(u.Changes, u.s.GrantJoin(u.network.Name, n.Name, u.join.addrs(u.join.number[n.Name])))
}
