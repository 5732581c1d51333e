package allocate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// firstJoin is the number of the first address on the join switch that gateway
// routers get; the one before is the cluster router's.
const firstJoin = 2

// joinPool is the addresses of gateway routers on the join switch. A node has
// the same number in the subnet of each family.
type joinPool struct {
	subnets []netip.Prefix    // of the families that pods have, IPv4 first
	holder  map[uint64]string // nodes by number
	number  map[string]uint64
	starved map[string]bool
}

func newJoinPool(c config.Cluster) *joinPool {
	p := &joinPool{holder: map[uint64]string{}, number: map[string]uint64{}, starved: map[string]bool{}}
	for _, s := range c.JoinSubnets {
		if s.Addr().Is4() && c.HasIPv4() || s.Addr().Is6() && c.HasIPv6() {
			p.subnets = append(p.subnets, s)
		}
	}
	ipnet.Sort(p.subnets)
	return p
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

// claim gives a node the very addresses that it says it has.
func (p *joinPool) claim(node string, addrs []netip.Prefix) error {
	if len(addrs) == 0 || len(p.subnets) == 0 {
		return fmt.Errorf("%v: want one address in each of the join subnets %v", addrs, p.subnets)
	}
	n, ok := ipnet.Index(p.subnets[0], addrs[0].Addr())
	if !ok || n < firstJoin || n > p.last() || !slices.Equal(p.addrs(n), addrs) {
		return fmt.Errorf("%v: want the same number, %d to %d, of each of the join subnets %v", addrs, firstJoin, p.last(), p.subnets)
	}
	if other, taken := p.holder[n]; taken {
		return fmt.Errorf("%v: held by the gateway router of Node %s", addrs, other)
	}
	p.hold(node, n)
	return nil
}

func (p *joinPool) hold(node string, n uint64) {
	p.holder[n], p.number[node] = node, n
	delete(p.starved, node)
}

// take gives a node the next free addresses.
func (p *joinPool) take(node string) bool {
	for n := uint64(firstJoin); n <= p.last() && len(p.subnets) > 0; n++ {
		if _, taken := p.holder[n]; !taken {
			p.hold(node, n)
			return true
		}
	}
	return false
}

func (p *joinPool) release(node string) {
	delete(p.holder, p.number[node])
	delete(p.number, node)
	delete(p.starved, node)
}

// joinNodes gives gateway nodes their addresses on the join switch: what they
// say they have, the oldest first, then what is free.
func (a *assignment) joinNodes() {
	for _, name := range sortedKeys(a.nodes) {
		n := a.s.Nodes[name]
		if n != nil && n.Gateway != nil {
			continue
		}
		if _, held := a.join.number[name]; held {
			a.Changes = append(a.Changes, a.s.GrantJoin(name, nil))
			for starved := range a.join.starved {
				a.nodes[starved] = true
			}
		}
		a.join.release(name)
		if n != nil && (len(n.JoinAnnotated) > 0 || n.JoinAs != "") {
			a.patched[name] = true
		}
	}
	nodes := slices.DeleteFunc(a.sortedNodes(), func(n *cluster.Node) bool { return n.Gateway == nil })
	var wanting []*cluster.Node
	for _, n := range nodes {
		if !a.confirmJoin(n) {
			wanting = append(wanting, n)
		}
	}
	for _, n := range wanting {
		if !a.join.take(n.Name) {
			if !a.join.starved[n.Name] {
				a.problem(n, n.UID, ReasonJoinExhausted, fmt.Sprintf("no address for the node's gateway router is free in the join subnets %v: it waits for one; widen --join-subnet or remove gateways", a.join.subnets))
			}
			a.join.starved[n.Name] = true
			continue
		}
		a.grantJoin(n)
		a.patched[n.Name] = true
	}
}

// confirmJoin compares what a gateway node says with what it holds; false when
// it holds nothing yet and what it says, if anything, can't be.
func (a *assignment) confirmJoin(n *cluster.Node) bool {
	number, held := a.join.number[n.Name]
	if held && n.JoinAs == "" && slices.Equal(n.JoinAnnotated, a.join.addrs(number)) {
		return true
	}
	why := n.JoinAs
	if why == "" && len(n.JoinAnnotated) > 0 {
		if held {
			why = fmt.Sprintf("%v is not what the gateway router holds", n.JoinAnnotated)
		} else if err := a.join.claim(n.Name, n.JoinAnnotated); err != nil {
			why = err.Error()
		} else {
			a.grantJoin(n)
			return true
		}
	}
	if why != "" {
		a.problem(n, n.UID, ReasonJoinRefused, cmp.Or(n.JoinAs, "annotation "+annotation.GatewayJoinAddrs+": "+why)+": it is written anew")
	}
	if held {
		a.patched[n.Name] = true
	}
	return held
}

func (a *assignment) grantJoin(n *cluster.Node) {
	a.Changes = append(a.Changes, a.s.GrantJoin(n.Name, a.join.addrs(a.join.number[n.Name])))
}
