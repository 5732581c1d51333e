package allocate

import (
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// A virtual machine that moves to another node while it runs has two pods for a while. The second one gets what the
// first one has: the addresses of their IPAMClaim, and the MAC that both ask for; in a network without subnets also the
// addresses that both ask for. Whichever pod goes first leaves it to the other.

// joins is true if an interface may have what another one has: both are of the only two pods of a virtual machine that
// have this interface in the network.
func (u *update) joins(other cluster.PodPort, p port) bool {
	if u.shared == nil || other.Interface != p.Interface {
		return false
	}
	var has []cluster.Name
	for _, n := range u.s.OtherPods(p.pod) {
		if u.book.pods[cluster.PodPort{Pod: n, Interface: p.Interface}] != nil {
			has = append(has, n)
		}
	}
	if len(has) != 1 || has[0] != other.Pod {
		return false
	}
	claim := u.book.pods[other].asked.Claim
	return claim == p.asked.Claim && (claim != "" || u.bare())
}

// joined gives an interface the addresses of its annotation if the machine's other pod has them.
func (u *update) joined(p port, ips []netip.Prefix) (numbers []uint64, ok bool) {
	for _, n := range u.s.OtherPods(p.pod) {
		other := cluster.PodPort{Pod: n, Interface: p.Interface}
		if u.joins(other, p) && slices.Equal(u.held(other).IPs, ips) {
			u.pair(other, p.PodPort)
			return u.book.pods[other].numbers, true
		}
	}
	return nil, false
}

// pair records that two interfaces have the same.
func (u *update) pair(a, b cluster.PodPort) { u.moving[a], u.moving[b] = b, a }

// part records that an interface is gone. The one that had the same, if any, is the one that has it now.
func (u *update) part(n cluster.PodPort) (heir cluster.PodPort, lease *podLease) {
	heir, moved := u.moving[n]
	if !moved {
		return cluster.PodPort{}, nil
	}
	delete(u.moving, n)
	delete(u.moving, heir)
	return heir, u.book.pods[heir]
}

// leave has an interface hold the addresses that it had together with another one.
func (u *update) leave(numbers []uint64, heir cluster.PodPort) {
	for i, number := range numbers {
		u.shared.pools[i].hold(number, heir.Pod)
	}
}

// record notes that an interface has what it asked for. A second one that asked for the same is paired with the first.
func record[K comparable](u *update, held map[K]cluster.PodPort, what K, p cluster.PodPort) {
	if other, taken := held[what]; taken && other != p {
		u.pair(other, p)
		return
	}
	held[what] = p
}
