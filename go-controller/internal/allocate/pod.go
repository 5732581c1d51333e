package allocate

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// podLease is a pod's addresses, one for each of its node's pools.
type podLease struct {
	uid, node string
	numbers   []uint64
}

// releasePods takes back the addresses of pods that are gone, finished, made anew, on another node, or not attached any
// more.
func (u *update) releasePods() {
	for n := range u.pods {
		p, wanted := u.port(n)
		for node := range u.waitingPods {
			if !wanted || p.pod.Node != node {
				u.stopWaiting(node, n)
			}
		}
		lease := u.book.pods[n]
		if lease != nil && (!wanted || p.pod.UID != lease.uid || p.pod.Node != lease.node) {
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
	if node := u.book.nodes[lease.node]; node != nil {
		for i, number := range lease.numbers {
			node.pools[i].release(number)
			u.freed.add(ipnet.Single(node.pools[i].addr(number)))
		}
	}
	u.Changes = append(u.Changes, u.s.GrantPod(u.network.Name, n, nil))
}

// claimPods grants pods the addresses that they claim, the oldest pod first. It has the annotations written again of
// pods that hold something else, as confirmNode does.
func (u *update) claimPods() {
	for _, p := range u.sortedPods() {
		claimed, ok, err := annotation.PodNetworkIn(p.pod.Annotated, u.network.Name.Entry(p.Interface))
		if err != nil {
			u.refuse(p, err.Error())
		}
		if u.book.pods[p.PodPort] == nil {
			if !ok {
				continue
			}
			numbers, err := u.book.nodes[p.pod.Node].claim(p.Pod, claimed.IPs)
			if err != nil {
				u.refuse(p, fmt.Sprintf("annotation %s: %v", annotation.PodNetworks, err))
				continue
			}
			u.grantPod(p, numbers)
		}
		held := u.held(p.PodPort)
		same := ok && cluster.SamePodNetwork(held, claimed)
		if ok && !same {
			want := map[string]annotation.PodNetwork{u.network.Name.Entry(p.Interface): held}
			u.refuse(p, fmt.Sprintf("annotation %s: want %s", annotation.PodNetworks, annotation.MarshalAttachments(want)))
		}
		if !same || !p.pod.ClassicOK { // see confirmNode
			u.patchedPods = append(u.patchedPods, p.pod)
		}
	}
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
	for _, p := range u.sortedPods() {
		if u.book.pods[p.PodPort] != nil {
			continue
		}
		if numbers, full := u.book.nodes[p.pod.Node].take(p.Pod, u.freed); full.IsValid() {
			u.waitForAddress(p, full)
		} else {
			u.grantPod(p, numbers)
			u.patchedPods = append(u.patchedPods, p.pod)
		}
	}
}

// waitForAddress records that a pod waits for an address, and reports that once.
func (u *update) waitForAddress(p port, full netip.Prefix) {
	node := p.pod.Node
	if u.waitingPods[node] == nil {
		u.waitingPods[node] = map[cluster.PodPort]string{}
	}
	if uid, reported := u.waitingPods[node][p.PodPort]; !reported || uid != p.pod.UID {
		u.problem(p.pod, p.pod.UID, ReasonAddressGone,
			fmt.Sprintf("no address is free in subnet %s of node %s: the pod waits for one; "+
				"one that another pod had is free after a minute", full, node))
	}
	u.waitingPods[node][p.PodPort] = p.pod.UID
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

func (u *update) grantPod(p port, numbers []uint64) {
	u.book.pods[p.PodPort] = &podLease{uid: p.pod.UID, node: p.pod.Node, numbers: numbers}
	u.stopWaiting(p.pod.Node, p.PodPort)
	net := subnet.Attachment(u.book.nodes[p.pod.Node].subnets, numbers, p.Interface)
	u.Changes = append(u.Changes, u.s.GrantPod(u.network.Name, p.PodPort, &net))
}

// patchPods writes what pods hold in every network, one patch a pod.
func (u *update) patchPods() {
	slices.SortFunc(u.patchedPods, comparePods)
	for _, pod := range slices.Compact(u.patchedPods) {
		networks, classic := map[string]annotation.PodNetwork{}, ""
		for a := range pod.All() {
			held, ok := u.s.In(a.Network).PodNetworks[cluster.PodPort{Pod: pod.Name, Interface: a.Interface}]
			if ok {
				networks[a.Network.Entry(a.Interface)] = held
			}
			if ok && a.Interface == "" {
				classic = annotation.MarshalPodClassic(held)
			}
		}
		value := annotation.MarshalAttachments(networks)
		if value == pod.Annotated && (pod.ClassicOK || classic == "") {
			continue
		}
		p := Patch{Ref: pod.Ref(), UID: pod.UID, Found: pod.FoundNow()}
		p.set(annotation.PodNetworks, pod.Annotated, value)
		p.set(annotation.PodClassic, pod.Annotated, classic)
		u.Patches = append(u.Patches, p)
	}
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
		l.pools[i].used[n] = pod
	}
	return numbers, nil
}

// take grants a pod the next free address of each pool. When a subnet has none, full is that subnet and nothing is
// granted.
func (l *nodeLease) take(pod cluster.Name, freed *freedSet) (numbers []uint64, full netip.Prefix) {
	for i, p := range l.pools {
		n, ok := p.take(pod, freed)
		if !ok {
			for j := range i {
				l.pools[j].release(numbers[j])
			}
			return nil, p.subnet
		}
		numbers = append(numbers, n)
	}
	return numbers, netip.Prefix{}
}
