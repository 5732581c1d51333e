package allocate

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// subnetPool grants node subnets out of the cluster subnets.
type subnetPool struct {
	ranges []config.ClusterSubnet
	held   map[netip.Prefix]string // the node that holds a subnet
	odd    map[netip.Prefix]bool   // held subnets whose length is not the node length of their cluster subnet
	next   []uint64                // by cluster subnet: the number to try first
	freed  *freedSet
}

func newSubnetPool(ranges []config.ClusterSubnet, freed *freedSet) *subnetPool {
	return &subnetPool{
		ranges: ranges, held: map[netip.Prefix]string{}, odd: map[netip.Prefix]bool{}, next: make([]uint64, len(ranges)),
		freed: freed,
	}
}

// families lists the address families that a node needs a subnet of, IPv4 first; true is IPv4.
func (p *subnetPool) families() []bool {
	return slices.DeleteFunc([]bool{true, false}, func(is4 bool) bool {
		return !slices.ContainsFunc(p.ranges, func(r config.ClusterSubnet) bool { return r.CIDR.Addr().Is4() == is4 })
	})
}

// claim grants a node the very subnets that it claims.
func (p *subnetPool) claim(node string, subnets []netip.Prefix) error {
	if err := p.check(subnets); err != nil {
		return err
	}
	for _, s := range subnets {
		p.hold(node, s)
	}
	return nil
}

// check is why a node that holds nothing can't have the subnets.
func (p *subnetPool) check(subnets []netip.Prefix) error {
	families := p.families()
	if len(subnets) != len(families) {
		return fmt.Errorf("%v: want one subnet of each of the %d address families of the cluster subnets %v",
			subnets, len(families), p.ranges)
	}
	for i, s := range subnets {
		if s.Addr().Is4() != families[i] {
			return fmt.Errorf("%s: its address family is not one of the cluster subnets %v", s, p.ranges)
		}
		if p.rangeOf(s) < 0 {
			return fmt.Errorf("%s is not in the cluster subnets %v", s, p.ranges)
		}
		if ipnet.Size(s) < firstPod+2 {
			return fmt.Errorf("%s has no room for pods", s)
		}
		if other, holder, taken := p.overlapping(s); taken {
			return fmt.Errorf("%s overlaps %s of Node %s", s, other, holder)
		}
	}
	return nil
}

func (p *subnetPool) hold(node string, s netip.Prefix) {
	p.held[s] = node
	if !p.regular(s) {
		p.odd[s] = true
	}
}

// rangeOf is the index of the cluster subnet that contains s, -1 for none.
func (p *subnetPool) rangeOf(s netip.Prefix) int {
	return slices.IndexFunc(p.ranges, func(r config.ClusterSubnet) bool {
		return r.CIDR.Bits() <= s.Bits() && r.CIDR.Contains(s.Addr())
	})
}

// regular is true when all subnets have the length that allocate grants.
func (p *subnetPool) regular(subnets ...netip.Prefix) bool {
	return !slices.ContainsFunc(subnets, func(s netip.Prefix) bool {
		i := p.rangeOf(s)
		return i < 0 || p.ranges[i].NodeLength != s.Bits()
	})
}

// overlapping is a held subnet that overlaps s, and its holder. Subnets of one length overlap only if they are equal,
// so that a regular one is only compared with the odd ones.
func (p *subnetPool) overlapping(s netip.Prefix) (other netip.Prefix, holder string, found bool) {
	if h, ok := p.held[s]; ok {
		return s, h, true
	}
	for o := range p.odd {
		if o.Overlaps(s) {
			return o, p.held[o], true
		}
	}
	if p.regular(s) {
		return netip.Prefix{}, "", false
	}
	for o, h := range p.held {
		if o.Overlaps(s) {
			return o, h, true
		}
	}
	return netip.Prefix{}, "", false
}

// allocate grants a node a free subnet of each family; ok is false when there is none in the ranges.
func (p *subnetPool) allocate(node string) (subnets []netip.Prefix, ok bool) {
	var out []netip.Prefix
	for _, is4 := range p.families() {
		s, ok := p.free(is4)
		if !ok {
			p.release(node, out)
			return nil, false
		}
		p.hold(node, s)
		out = append(out, s)
	}
	return out, true
}

// free is the next free subnet of a family. Each step skips a whole held subnet, so that the number of steps is bounded
// by the number of holders, however large their subnets. Subnets that were freed lately count as held.
func (p *subnetPool) free(is4 bool) (netip.Prefix, bool) {
	for i, r := range p.ranges {
		if r.CIDR.Addr().Is4() != is4 {
			continue
		}
		n := ipnet.Subnets(r.CIDR, r.NodeLength)
		for passed := uint64(0); passed < n; {
			k := (p.next[i] + passed) % n
			s, ok := ipnet.Subnet(r.CIDR, r.NodeLength, k)
			if !ok {
				break
			}
			other, _, taken := p.overlapping(s)
			if !taken {
				other, taken = p.freed.overlapping(s)
			}
			if !taken {
				p.next[i] = (k + 1) % n
				return s, true
			}
			size := max(ipnet.Subnets(other, r.NodeLength), 1)
			passed += size - k%size
		}
	}
	return netip.Prefix{}, false
}

func (p *subnetPool) release(node string, subnets []netip.Prefix) {
	for _, s := range subnets {
		if p.held[s] == node {
			delete(p.held, s)
			delete(p.odd, s)
		}
	}
}
