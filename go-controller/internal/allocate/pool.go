package allocate

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// firstPod is the number of the first address that pods get in a node's subnet.
const firstPod = subnet.FirstPodHost

// pool is the pods' addresses in one subnet, by their number in it.
type pool struct {
	subnet   netip.Prefix
	used     map[uint64]cluster.Name
	first    uint64
	next     uint64         // the number to try first
	last     uint64         // the last number that is granted
	excluded []netip.Prefix // what is never granted
	reserved []netip.Prefix // what is granted only to pods that ask for it
	router   netip.Addr     // the address of the network's router; zero where it is no number of the pool
	without  uint64         // how many numbers are in excluded or reserved, or the router's
	aside    uint64         // how many of those in reserved are used
	host     func(ip netip.Prefix) (uint64, error)
}

// newPool is a node's subnet. It grants the numbers from firstPod to the one before cluster.HealthSource. Older
// versions granted that one to pods, too, which may keep it.
func newPool(s netip.Prefix) *pool {
	p := &pool{subnet: s, used: map[uint64]cluster.Name{}, first: firstPod, next: firstPod}
	p.host = func(ip netip.Prefix) (uint64, error) { return subnet.PodHost(s, ip) }
	if last, ok := subnet.LastHost(s); ok {
		p.last = last - 1
	}
	return p
}

// newSharedPool is a subnet of a network in which every address is for pods, but for the router's and those excluded.
func newSharedPool(s netip.Prefix, network *cluster.Network) *pool {
	p := &pool{subnet: s, used: map[uint64]cluster.Name{}, first: 1, next: 1}
	p.last = min(ipnet.Size(s)-1, ipnet.MaxNumber)
	if s.Addr().Is4() && p.last > 0 {
		p.last-- // the broadcast address
	}
	outside := func(e netip.Prefix) bool { return !e.Overlaps(s) }
	p.excluded = slices.DeleteFunc(slices.Clone(network.Excluded), outside)
	p.reserved = slices.DeleteFunc(slices.Clone(network.Reserved), outside)
	p.router, _ = network.Router(s)
	p.without = countPassed(p)
	p.host = p.sharedHost
	return p
}

// countPassed is how many numbers are granted to nobody, or only to those that ask for them. The ranges don't overlap
// each other.
func countPassed(p *pool) (n uint64) {
	ranges := slices.Concat(p.excluded, p.reserved)
	if p.router.IsValid() && !slices.ContainsFunc(ranges, contains(p.router)) {
		ranges = append(ranges, ipnet.Single(p.router))
	}
	for _, e := range ranges {
		from, to := p.ends(e)
		if from, to = max(from, p.first), min(to, p.last); from <= to {
			n += to - from + 1
		}
	}
	return n
}

func contains(a netip.Addr) func(netip.Prefix) bool {
	return func(p netip.Prefix) bool { return p.Contains(a) }
}

// ends is the first and the last number of an excluded range.
func (p *pool) ends(e netip.Prefix) (from, to uint64) {
	to = p.last
	if n, ok := ipnet.Index(p.subnet, e.Masked().Addr()); ok {
		from = n
	} else if p.subnet.Contains(e.Masked().Addr()) {
		from = p.last + 1 // beyond what is granted
	}
	if n, ok := ipnet.Index(p.subnet, ipnet.Last(e)); ok {
		to = n
	}
	return from, to
}

// sharedHost is the number of an address in a subnet that all pods share.
func (p *pool) sharedHost(ip netip.Prefix) (uint64, error) {
	n, ok := ipnet.Index(p.subnet, ip.Addr())
	if !ok || ip.Bits() != p.subnet.Bits() {
		return 0, fmt.Errorf("%s is not in the network's subnet %s", ip, p.subnet)
	}
	if n < p.first || n > p.last {
		return 0, fmt.Errorf("%s is not one for pods in the network's subnet %s", ip, p.subnet)
	}
	if ip.Addr() == p.router {
		return 0, fmt.Errorf("%s is the address of the network's router", ip)
	}
	if i := slices.IndexFunc(p.excluded, contains(ip.Addr())); i >= 0 {
		return 0, fmt.Errorf("%s is in %s, which the network excludes", ip, p.excluded[i])
	}
	return n, nil
}

// passed is the range that an address is in which pods get only if they ask for it, or not at all.
func (p *pool) passed(a netip.Addr) (e netip.Prefix, is bool) {
	for _, ranges := range [][]netip.Prefix{p.excluded, p.reserved} {
		if i := slices.IndexFunc(ranges, contains(a)); i >= 0 {
			return ranges[i], true
		}
	}
	return ipnet.Single(a), a == p.router
}

// check is the number of an address that a pod claims. The error is why the pod can't have it.
func (p *pool) check(ip netip.Prefix) (uint64, error) {
	n, err := p.host(ip)
	if err != nil {
		return 0, err
	}
	if other, taken := p.used[n]; taken {
		return 0, takenError{ip.String(), ofAddress, holder(other)}
	}
	return n, nil
}

// take grants the next free number to a pod; ok is false when none is free that may be given.
func (p *pool) take(pod cluster.Name, freed *freedSet) (n uint64, ok bool) {
	if p.full() {
		return 0, false
	}
	// So many numbers can't all be in use or freed lately, unless there are fewer. A range is passed in one try.
	tries := min(uint64(len(p.used)+freed.size()), p.last-p.first) + 1 +
		2*uint64(len(p.excluded)+len(p.reserved)+1)
	for n = p.next; tries > 0; tries-- {
		if n > p.last || n < p.first {
			n = p.first
		}
		if e, is := p.passed(p.addr(n)); is {
			_, to := p.ends(e)
			n = to + 1
			continue
		}
		if _, taken := p.used[n]; !taken && !freed.has(p.addr(n)) {
			p.hold(n, pod)
			p.next = n + 1
			return n, true
		}
		n++
	}
	return 0, false
}

func (p *pool) addr(n uint64) netip.Addr {
	a, _ := ipnet.Nth(p.subnet, n)
	return a
}

// full is true when no number is left to grant.
func (p *pool) full() bool {
	taken := uint64(len(p.used)) - p.aside
	if _, kept := p.used[p.last+1]; kept {
		taken--
	}
	return p.last < p.first || taken+p.without > p.last-p.first
}

// hold records that a pod, or an exit, has a number.
func (p *pool) hold(n uint64, by cluster.Name) {
	if _, held := p.used[n]; !held && slices.ContainsFunc(p.reserved, contains(p.addr(n))) {
		p.aside++
	}
	p.used[n] = by
}

func (p *pool) release(n uint64) {
	if _, held := p.used[n]; held && slices.ContainsFunc(p.reserved, contains(p.addr(n))) {
		p.aside--
	}
	delete(p.used, n)
}
