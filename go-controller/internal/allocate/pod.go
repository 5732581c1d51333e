package allocate

import (
	"fmt"
	"net/netip"

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

// releasePods takes back the addresses of pods that are gone, finished, made anew, or on another node.
func (u *update) releasePods() {
	for n := range u.pods {
		p, lease := u.s.Pods[n], u.Ledger.pods[n]
		for node := range u.waitingPods {
			if p == nil || !p.WantsNetwork() || p.Node != node {
				u.stopWaiting(node, n)
			}
		}
		if lease != nil && (p == nil || !p.WantsNetwork() || p.UID != lease.uid || p.Node != lease.node) {
			u.releasePod(n)
		}
	}
}

func (u *update) releasePod(n cluster.Name) {
	lease := u.Ledger.pods[n]
	if lease == nil {
		return
	}
	delete(u.Ledger.pods, n)
	if node := u.Ledger.nodes[lease.node]; node != nil {
		for i, number := range lease.numbers {
			node.pools[i].release(number)
			u.freed.add(ipnet.Single(node.pools[i].addr(number)))
		}
	}
	u.Changes = append(u.Changes, u.s.GrantPod(n, nil))
}

// claimPods grants pods the addresses that they claim, the oldest pod first.
func (u *update) claimPods() {
	for _, p := range u.sortedPods() {
		if u.Ledger.pods[p.Name] != nil {
			u.confirmPod(p, u.s.PodNetworks[p.Name])
			continue
		}
		if p.AnnotationError != "" {
			u.refuse(p, p.AnnotationError)
		}
		if p.Annotated == nil {
			continue
		}
		numbers, err := u.Ledger.nodes[p.Node].claim(p.Name, p.Annotated.IPs)
		if err != nil {
			u.refuse(p, fmt.Sprintf("annotation %s: %v", annotation.PodNetworks, err))
			continue
		}
		u.confirmPod(p, u.grantPod(p, numbers))
	}
}

func (u *update) refuse(p *cluster.Pod, message string) {
	u.problem(p, p.UID, ReasonAddressRefused, message+": it is written anew")
}

// confirmPod has a pod's annotations written again when they are not what the pod holds, as confirmNode does.
func (u *update) confirmPod(p *cluster.Pod, net annotation.PodNetwork) {
	switch same := p.Annotated != nil && cluster.SamePodNetwork(net, *p.Annotated); {
	case same && p.ClassicOK:
		return
	case p.AnnotationError != "":
		u.refuse(p, p.AnnotationError)
	case p.Annotated != nil && !same:
		u.refuse(p, fmt.Sprintf("annotation %s: want %s", annotation.PodNetworks, annotation.MarshalPodNetworks(net)))
	}
	u.patchPod(p, net)
}

// allocatePods grants addresses to pods that have none.
func (u *update) allocatePods() {
	for _, p := range u.sortedPods() {
		if u.Ledger.pods[p.Name] != nil {
			continue
		}
		if numbers, full := u.Ledger.nodes[p.Node].take(p.Name, u.freed); full.IsValid() {
			u.waitForAddress(p, full)
		} else {
			u.patchPod(p, u.grantPod(p, numbers))
		}
	}
}

// waitForAddress records that a pod waits for an address, and reports that once.
func (u *update) waitForAddress(p *cluster.Pod, full netip.Prefix) {
	if u.waitingPods[p.Node] == nil {
		u.waitingPods[p.Node] = map[cluster.Name]string{}
	}
	if uid, reported := u.waitingPods[p.Node][p.Name]; !reported || uid != p.UID {
		u.problem(p, p.UID, ReasonAddressGone,
			fmt.Sprintf("no address is free in subnet %s of node %s: the pod waits for one; "+
				"one that another pod had is free after a minute", full, p.Node))
	}
	u.waitingPods[p.Node][p.Name] = p.UID
	if p.Annotated != nil || p.AnnotationError != "" { // after a restart the claim would be believed
		u.Patches = append(u.Patches, Patch{Ref: p.Ref(), UID: p.UID, Found: p.FoundNow(),
			Remove: []string{annotation.PodNetworks, annotation.PodClassic}})
	}
}

// stopWaiting records that a pod no longer waits for an address on a node.
func (u *update) stopWaiting(node string, n cluster.Name) {
	delete(u.waitingPods[node], n)
	if len(u.waitingPods[node]) == 0 {
		delete(u.waitingPods, node)
	}
}

func (u *update) grantPod(p *cluster.Pod, numbers []uint64) annotation.PodNetwork {
	u.Ledger.pods[p.Name] = &podLease{uid: p.UID, node: p.Node, numbers: numbers}
	u.stopWaiting(p.Node, p.Name)
	net := u.Ledger.nodes[p.Node].network(numbers)
	u.Changes = append(u.Changes, u.s.GrantPod(p.Name, &net))
	return net
}

func (u *update) patchPod(p *cluster.Pod, net annotation.PodNetwork) {
	u.Patches = append(u.Patches, Patch{Ref: p.Ref(), UID: p.UID, Found: p.FoundNow(), Annotations: map[string]string{
		annotation.PodNetworks: annotation.MarshalPodNetworks(net),
		annotation.PodClassic:  annotation.MarshalPodClassic(net),
	}})
}

// network is the attachment with the given address number in each pool.
func (l *nodeLease) network(numbers []uint64) annotation.PodNetwork {
	return subnet.Attachment(l.subnets, numbers)
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
