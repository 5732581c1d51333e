package allocate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// podLease is a pod's addresses, one for each of the pools, and what it asked for.
type podLease struct {
	uid, node string
	numbers   []uint64
	asked     cluster.Asked
	claim     cluster.Name // the IPAMClaim that keeps the addresses; zero for none
}

// releasePods takes back the addresses of pods that are gone, finished, made anew, on another node or one that is gone,
// or not attached any more.
func (u *update) releasePods() {
	for n := range u.pods {
		u.partStrangers(n)
		lease := u.book.pods[n]
		if lease == nil && len(u.waitingPods) == 0 {
			continue
		}
		p, wanted := u.port(n)
		for node := range u.waitingPods {
			if !wanted || p.pod.Node != node {
				u.stopWaiting(node, n)
			}
		}
		if lease != nil && (!wanted || p.pod.UID != lease.uid || p.pod.Node != lease.node || u.lease(lease.node) == nil) {
			u.releasePod(n)
		}
	}
}

func (u *update) releasePod(n cluster.PodPort) {
	lease := u.book.pods[n]
	if lease == nil {
		return
	}
	delete(u.book.pods, n)
	heir, moves := u.part(n)
	u.releaseAsked(n, lease, heir)
	switch held := u.claims[lease.claim]; {
	case held != nil && held.pod != n: // the machine's other pod came first
	case held != nil:
		held.pod = heir
		u.claimed[lease.claim] = true
	case moves:
		u.leave(lease.numbers, heir)
	default:
		if node := cmp.Or(u.shared, u.book.nodes[lease.node]); node != nil {
			node.release(lease.numbers, u.freed)
		}
	}
	u.Changes = append(u.Changes, u.s.GrantPod(u.network.Name, n, nil))
}

// claimPods grants pods the addresses that they claim, the oldest pod first. It has the annotations written again of
// pods that hold something else, as confirmNode does.
func (u *update) claimPods() {
	for _, p := range u.sortedPods(false) {
		claimed, ok, others, err := annotation.PodNetworkAmong(p.pod.Annotated, p.key)
		if err != nil {
			u.refuse(p, err.Error())
		}
		if u.book.pods[p.PodPort] == nil {
			had := ok || claimed.MAC != ipnet.MAC{} // what waits may have had something
			if !had {
				continue
			}
			p = u.asRecorded(p, claimed)
			first := u.first(p, claimed.IPs)
			numbers, err := u.claim(p, claimed, first)
			if err != nil && ok {
				u.refuse(p, fmt.Sprintf("annotation %s: %v", annotation.PodNetworks, err))
			}
			if err != nil {
				continue
			}
			u.grantPod(p, numbers, first)
		}
		u.relock(p)
		held := u.held(p.PodPort)
		same := ok && cluster.SamePodNetwork(held, claimed)
		claimed.MTU, claimed.Physical = held.MTU, held.Physical         // the network may have had others
		locked := len(claimed.Gateways) == 0 || len(held.Gateways) == 0 // its namespace was, or is, in a primary network
		if locked {
			claimed.Gateways = held.Gateways
		}
		if !u.network.Hosts || locked {
			claimed.Routes = held.Routes // these lead to the network's subnets
		}
		if ok && !cluster.SamePodNetwork(held, claimed) {
			want := map[string]annotation.PodNetwork{p.key: held}
			u.refuse(p, fmt.Sprintf("annotation %s: want %s", annotation.PodNetworks, annotation.MarshalAttachments(want)))
		}
		// patchPods compares what the other entries say.
		more := p.Interface == "" && (others+len(p.pod.Attachments) > 0 || u.s.Locked(p.Pod))
		if !same || !p.pod.ClassicOK || more { // see confirmNode
			u.patchedPods = append(u.patchedPods, p.pod)
		}
	}
}

// relock gives a pod the other form of its attachment to the cluster's own network if its namespace has become one of a
// primary network, or is one no more, or if the pod opens ports, or does so no more.
func (u *update) relock(p port) {
	lease := u.book.pods[p.PodPort]
	held := u.held(p.PodPort)
	if !u.network.Hosts || lease == nil ||
		(len(held.Gateways) == 0) == u.s.Locked(p.Pod) && len(held.Routes) == len(u.waysBack(p)) {
		return
	}
	net := u.attachment(p, lease.numbers)
	u.Changes = append(u.Changes, u.s.GrantPod(u.network.Name, p.PodPort, &net))
}

func (u *update) refuse(p port, message string) {
	u.problem(p.pod, p.pod.UID, ReasonAddressRefused, message+": it is written anew")
}

// held is what a pod holds in this network.
func (u *update) held(p cluster.PodPort) annotation.PodNetwork {
	return u.s.In(u.network.Name).PodNetworks[p]
}

// allocatePods grants addresses to pods that have none.
func (u *update) allocatePods() {
	for _, p := range u.sortedPods(true) {
		first := u.first(p, nil)
		numbers, err := u.take(p, first)
		if err != nil {
			u.fail(claimName(p.Pod, p.asked), err)
			u.wait(p, u.reasonOf(err), u.describe(p, err))
			continue
		}
		u.grantPod(p, numbers, first)
		u.patchedPods = append(u.patchedPods, p.pod)
	}
}

// wait records that a pod waits for an address, and why, and reports that once.
func (u *update) wait(p port, reason, message string) {
	node := p.pod.Node
	if u.waitingPods[node] == nil {
		u.waitingPods[node] = map[cluster.PodPort]waiting{}
	}
	if now := (waiting{p.pod.UID, message}); u.waitingPods[node][p.PodPort] != now {
		u.problem(p.pod, p.pod.UID, reason, message)
		u.waitingPods[node][p.PodPort] = now
	}
	if p.pod.Annotated != "" { // after a restart the claim would be believed
		u.patchedPods = append(u.patchedPods, p.pod)
	}
}

// stopWaiting records that a pod no longer waits for an address on a node.
func (u *update) stopWaiting(node string, n cluster.PodPort) {
	delete(u.waitingPods[node], n)
	if len(u.waitingPods[node]) == 0 {
		delete(u.waitingPods, node)
	}
}

// grantPod grants a pod addresses, together with the interface first unless that is zero.
func (u *update) grantPod(p port, numbers []uint64, first cluster.PodPort) {
	if first != (cluster.PodPort{}) {
		u.Changes = append(u.Changes, u.s.GrantMove(u.network.Name, first, p.PodPort, true)...)
	}
	u.book.pods[p.PodPort] = &podLease{uid: p.pod.UID, node: p.pod.Node, numbers: numbers, asked: p.asked,
		claim: u.claimOf(p.PodPort, p.asked)}
	u.holdAsked(p)
	u.stopWaiting(p.pod.Node, p.PodPort)
	net := u.attachment(p, numbers)
	u.Changes = append(u.Changes, u.s.GrantPod(u.network.Name, p.PodPort, &net))
}

// claim grants a pod the very addresses ips, one in each pool.
func (l *nodeLease) claim(pod cluster.Name, ips []netip.Prefix) ([]uint64, error) {
	if len(ips) != len(l.subnets) {
		return nil, fmt.Errorf("%v: want one address in each of the node's subnets %v", ips, l.subnets)
	}
	numbers := make([]uint64, len(ips))
	for i, ip := range ips {
		n, err := l.pools[i].check(ip)
		if err != nil {
			return nil, err
		}
		numbers[i] = n
	}
	for i, n := range numbers {
		l.pools[i].hold(n, pod)
	}
	return numbers, nil
}

// fullError says which subnet has no address left.
type fullError struct{ subnet netip.Prefix }

// Error implements error.
func (e fullError) Error() string { return "no address is free in subnet " + e.subnet.String() }

// takenError says who has an address, or a MAC, already.
type takenError struct{ what, kind, holder string }

// Error implements error.
func (e takenError) Error() string { return e.what + " is already the " + e.kind + " of " + e.holder }

// take grants a pod an address of each pool: the one that it asks for, or the next free one. With an error nothing is
// granted.
func (l *nodeLease) take(p port, freed *freedSet) (numbers []uint64, err error) {
	for _, asked := range p.asked.IPs() {
		inside := func(s netip.Prefix) bool { return s.Contains(asked.Addr()) }
		if len(l.pools) > 0 && !slices.ContainsFunc(l.subnets, inside) {
			return nil, fmt.Errorf("%s is in none of the subnets %v", asked.Addr(), l.subnets)
		}
	}
	for i, pool := range l.pools {
		n, err := pool.grant(p, freed)
		if err != nil {
			for j := range i {
				l.pools[j].release(numbers[j])
			}
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
