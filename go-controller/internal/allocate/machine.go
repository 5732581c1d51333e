package allocate

import (
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// A virtual machine that moves to another node while it runs has two pods for a while. The second one gets what the
// first one has: the addresses of the IPAMClaim that both refer to, or in a network without subnets the MAC and the
// addresses that both ask for. Whichever pod goes first leaves it to the other. Such a pair is recorded in
// cluster.Grants.

// movesWith is the interface of the other pod of a pair; ok is false if there is none.
func (u *update) movesWith(n cluster.PodPort) (other cluster.PodPort, ok bool) {
	other, ok = u.s.In(u.network.Name).Moves[n]
	return other, ok
}

// first is the interface whose addresses and MAC an interface may share; zero for none. ips are the addresses that the
// pod's annotation has, if any.
func (u *update) first(p port, ips []netip.Prefix) (out cluster.PodPort) {
	if u.shared == nil {
		return out
	}
	switch held := u.claims[claimName(p.Pod, p.asked)]; {
	case u.bare():
		out = u.macs[p.asked.MAC]
	case held != nil:
		out = held.pod
	case len(ips) > 0: // after a restart: claims get what pods have
		for _, pool := range u.shared.pools {
			if number, in := ipnet.Index(pool.subnet, ips[0].Addr()); in {
				out = cluster.PodPort{Pod: pool.used[number], Interface: p.Interface}
			}
		}
	}
	if !u.joins(out, p) {
		return cluster.PodPort{}
	}
	return out
}

// joins is true if both interfaces are of pods of one virtual machine that ask for the same, and neither of them is in
// another pair.
func (u *update) joins(other cluster.PodPort, p port) bool {
	lease, pod := u.book.pods[other], u.s.Pods[other.Pod]
	if lease == nil || pod == nil || other.Interface != p.Interface || !pod.SameMachine(p.pod) {
		return false
	}
	if with, moves := u.movesWith(other); moves && with != p.PodPort {
		return false
	}
	if with, moves := u.movesWith(p.PodPort); moves && with != other {
		return false
	}
	if lease.asked.MAC != p.asked.MAC {
		return false
	}
	if u.bare() { // the MAC of a pod that asks for none is its own
		return p.asked.MAC != ipnet.MAC{} && slices.Equal(lease.asked.IPs(), p.asked.IPs())
	}
	return p.asked.Claim != "" && p.asked.Claim == lease.asked.Claim
}

// part records that an interface has nothing any more. What it shared is the heir's; moves is false if there is none.
func (u *update) part(n cluster.PodPort) (heir cluster.PodPort, moves bool) {
	if heir, moves = u.movesWith(n); moves {
		u.Changes = append(u.Changes, u.s.GrantMove(u.network.Name, n, heir, false)...)
	}
	return heir, moves
}

// partStrangers takes what a pair shares from the younger of two pods that are of one virtual machine no more, as after
// a restart.
func (u *update) partStrangers(n cluster.PodPort) {
	other, moves := u.movesWith(n)
	if !moves {
		return
	}
	a, b := u.s.Pods[n.Pod], u.s.Pods[other.Pod]
	if a == nil || b == nil || a.SameMachine(b) {
		return
	}
	younger := n
	if a.CompareAge(b) < 0 {
		younger = other
	}
	u.releasePod(younger)
	u.pods[younger] = true
}

// leave has an interface hold the addresses that it had together with another one.
func (u *update) leave(numbers []uint64, heir cluster.PodPort) {
	for i, number := range numbers {
		u.shared.pools[i].hold(number, heir.Pod)
	}
}

// record notes that an interface has what it asked for, unless it shares that with one that was first.
func record[K comparable](held map[K]cluster.PodPort, what K, n cluster.PodPort) {
	if _, taken := held[what]; !taken {
		held[what] = n
	}
}

// pass takes from an interface what it asked for, and gives it to the heir, if any.
func pass[K comparable](held map[K]cluster.PodPort, what K, n, heir cluster.PodPort) {
	switch {
	case held[what] != n:
	case heir == cluster.PodPort{}:
		delete(held, what)
	default:
		held[what] = heir
	}
}
