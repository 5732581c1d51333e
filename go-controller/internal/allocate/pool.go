package allocate

import (
	"fmt"
	"net/netip"

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
	without  uint64         // how many numbers that is
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

// newSharedPool is a subnet of which every address is for pods, but for those excluded.
func newSharedPool(s netip.Prefix, excluded []netip.Prefix) *pool {
	p := &pool{subnet: s, used: map[uint64]cluster.Name{}, first: 1, next: 1}
	p.last = min(ipnet.Size(s)-1, ipnet.MaxNumber)
	if s.Addr().Is4() && p.last > 0 {
		p.last-- // the broadcast address
	}
	for _, e := range excluded {
		if e.Overlaps(s) {
			p.excluded = append(p.excluded, e)
		}
	}
	p.without = countExcluded(p)
	p.host = p.sharedHost
	return p
}

// countExcluded is how many numbers that could be granted are excluded. Excluded ranges don't overlap each other.
func countExcluded(p *pool) (n uint64) {
	for _, e := range p.excluded {
		from, to := p.ends(e)
		if from, to = max(from, p.first), min(to, p.last); from <= to {
			n += to - from + 1
		}
	}
	return n
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
	if e, is := p.exclusion(ip.Addr()); is {
		return 0, fmt.Errorf("%s is in %s, which the network excludes", ip, e)
	}
	return n, nil
}

// exclusion is the excluded range that an address is in.
func (p *pool) exclusion(a netip.Addr) (e netip.Prefix, is bool) {
	for _, e := range p.excluded {
		if e.Contains(a) {
			return e, true
		}
	}
	return netip.Prefix{}, false
}

// check is the number of an address that a pod claims. The error is why the pod can't have it.
func (p *pool) check(ip netip.Prefix) (uint64, error) {
	n, err := p.host(ip)
	if err != nil {
		return 0, err
	}
	if other, taken := p.used[n]; taken {
		return 0, fmt.Errorf("%s is already the address of %s", ip, holder(other))
	}
	return n, nil
}

// take grants the next free number to a pod; ok is false when none is free that may be given.
func (p *pool) take(pod cluster.Name, freed *freedSet) (n uint64, ok bool) {
	if p.full() {
		return 0, false
	}
	// So many numbers can't all be in use or freed lately, unless there are fewer. An excluded range is passed in one try.
	tries := min(uint64(len(p.used)+freed.size()), p.last-p.first) + 1 + 2*uint64(len(p.excluded))
	for n = p.next; tries > 0; tries-- {
		if n > p.last || n < p.first {
			n = p.first
		}
		if e, is := p.exclusion(p.addr(n)); is {
			_, to := p.ends(e)
			n = to + 1
			continue
		}
		if _, taken := p.used[n]; !taken && !freed.has(p.addr(n)) {
			p.used[n] = pod
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
	taken := uint64(len(p.used))
	if _, kept := p.used[p.last+1]; kept {
		taken--
	}
	return p.last < p.first || taken+p.without > p.last-p.first
}

func (p *pool) release(n uint64) { delete(p.used, n) }
