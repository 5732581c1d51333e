package allocate

import (
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// firstPod is the number of the first address that pods get.
const firstPod = subnet.FirstPodHost

// pool is the pods' addresses in one subnet, by their number in it.
type pool struct {
	subnet netip.Prefix
	used   map[uint64]cluster.Name
	next   uint64 // the number to try first
	last   uint64 // the last number that is granted; last+1 is the HealthSource, which a pod may keep
}

// newPool grants the numbers from firstPod to the one before cluster.HealthSource. Older versions granted that one to
// pods, too.
func newPool(s netip.Prefix) *pool {
	p := &pool{subnet: s, used: map[uint64]cluster.Name{}, next: firstPod}
	if last, ok := subnet.LastHost(s); ok {
		p.last = last - 1
	}
	return p
}

// check is the number of an address that a pod claims. The error is why the pod can't have it.
func (p *pool) check(ip netip.Prefix) (uint64, error) {
	n, err := subnet.PodHost(p.subnet, ip)
	if err != nil {
		return 0, err
	}
	if other, taken := p.used[n]; taken {
		return 0, fmt.Errorf("%s is already the address of Pod %s", ip, other)
	}
	return n, nil
}

// take grants the next free number to a pod; ok is false when none is free that may be given.
func (p *pool) take(pod cluster.Name, freed *freedSet) (n uint64, ok bool) {
	if p.full() {
		return 0, false
	}
	// So many numbers can't all be in use or freed lately, unless there are fewer.
	tries := min(uint64(len(p.used)+freed.size()), p.last-firstPod) + 1
	for n = p.next; tries > 0; tries-- {
		if n > p.last || n < firstPod {
			n = firstPod
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
	return p.last < firstPod || taken > p.last-firstPod
}

func (p *pool) release(n uint64) { delete(p.used, n) }
