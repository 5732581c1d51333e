package allocate

import (
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// podLease is a pod's addresses, one for each of its node's pools.
type podLease struct {
	uid, node string
	numbers   []uint64
}

func (a *assignment) releasePods() {
	for n := range a.pods {
		p, lease := a.s.Pods[n], a.Ledger.pods[n]
		for node := range a.starvedPods {
			if p == nil || !p.WantsNetwork() || p.Node != node {
				a.feedPod(node, n)
			}
		}
		if lease != nil && (p == nil || !p.WantsNetwork() || p.UID != lease.uid || p.Node != lease.node) {
			a.releasePod(n)
		}
	}
}

func (a *assignment) releasePod(n cluster.Name) {
	lease := a.Ledger.pods[n]
	if lease == nil {
		return
	}
	delete(a.Ledger.pods, n)
	if node := a.Ledger.nodes[lease.node]; node != nil {
		for i, number := range lease.numbers {
			node.pools[i].release(number)
		}
	}
	a.Changes = append(a.Changes, a.s.GrantPod(n, nil))
	for starved := range a.starvedPods[lease.node] {
		a.pods[starved] = true
	}
}

// claimPods hears what pods say they hold, the oldest first.
func (a *assignment) claimPods() {
	for _, p := range a.sortedPods() {
		if a.Ledger.pods[p.Name] != nil {
			a.confirmPod(p)
			continue
		}
		if p.AnnotatedAs != "" {
			a.refuse(p, p.AnnotatedAs)
		}
		if p.Annotated == nil {
			continue
		}
		node := a.Ledger.nodes[p.Node]
		numbers, err := node.claim(p.Name, p.Annotated.IPs)
		if err != nil {
			a.refuse(p, fmt.Sprintf("annotation %s: %v", annotation.PodNetworks, err))
			continue
		}
		net := a.grantPod(p, numbers)
		if !cluster.SamePodNetwork(net, *p.Annotated) {
			a.refuse(p, fmt.Sprintf("annotation %s: want %s", annotation.PodNetworks, annotation.MarshalPodNetworks(net)))
		}
		if !cluster.SamePodNetwork(net, *p.Annotated) || !p.ClassicOK {
			a.patchPod(p, net)
		}
	}
}

func (a *assignment) refuse(p *cluster.Pod, message string) {
	a.problem(p, p.UID, ReasonAddressRefused, message+": it is written anew")
}

// confirmPod compares what a pod says with what it holds, as confirmNode does.
func (a *assignment) confirmPod(p *cluster.Pod) {
	net := a.s.PodNetworks[p.Name]
	switch same := p.Annotated != nil && cluster.SamePodNetwork(net, *p.Annotated); {
	case same && p.ClassicOK:
		return
	case p.AnnotatedAs != "":
		a.refuse(p, p.AnnotatedAs)
	case p.Annotated != nil && !same:
		a.refuse(p, fmt.Sprintf("annotation %s: want %s", annotation.PodNetworks, annotation.MarshalPodNetworks(net)))
	}
	a.patchPod(p, net)
}

func (a *assignment) allocatePods() {
	for _, p := range a.sortedPods() {
		if a.Ledger.pods[p.Name] != nil {
			continue
		}
		node := a.Ledger.nodes[p.Node]
		numbers, full := node.take(p.Name)
		if full.IsValid() {
			a.starve(p, full)
			continue
		}
		a.patchPod(p, a.grantPod(p, numbers))
	}
}

// starve notes that a pod waits for an address; its owner is told once.
func (a *assignment) starve(p *cluster.Pod, full netip.Prefix) {
	if a.starvedPods[p.Node] == nil {
		a.starvedPods[p.Node] = map[cluster.Name]string{}
	}
	if uid, told := a.starvedPods[p.Node][p.Name]; !told || uid != p.UID {
		a.problem(p, p.UID, ReasonAddressGone, fmt.Sprintf("no address is free in subnet %s of node %s: the pod waits for one", full, p.Node))
	}
	a.starvedPods[p.Node][p.Name] = p.UID
	if p.Annotated != nil || p.AnnotatedAs != "" { // somebody would believe it
		a.Patches = append(a.Patches, Patch{Ref: p.Ref(), UID: p.UID, Remove: []string{annotation.PodNetworks, annotation.PodClassic}})
	}
}

// feedPod notes that a pod no longer waits for an address on a node.
func (a *assignment) feedPod(node string, n cluster.Name) {
	delete(a.starvedPods[node], n)
	if len(a.starvedPods[node]) == 0 {
		delete(a.starvedPods, node)
	}
}

func (a *assignment) grantPod(p *cluster.Pod, numbers []uint64) annotation.PodNetwork {
	a.Ledger.pods[p.Name] = &podLease{uid: p.UID, node: p.Node, numbers: numbers}
	a.feedPod(p.Node, p.Name)
	net := a.Ledger.nodes[p.Node].network(numbers)
	a.Changes = append(a.Changes, a.s.GrantPod(p.Name, &net))
	return net
}

func (a *assignment) patchPod(p *cluster.Pod, net annotation.PodNetwork) {
	a.Patches = append(a.Patches, Patch{Ref: p.Ref(), UID: p.UID, Annotations: map[string]string{
		annotation.PodNetworks: annotation.MarshalPodNetworks(net),
		annotation.PodClassic:  annotation.MarshalPodClassic(net),
	}})
}

// network is the attachment with the given address number in each pool.
func (l *nodeLease) network(numbers []uint64) annotation.PodNetwork {
	var net annotation.PodNetwork
	for i, p := range l.subnets {
		a, _ := ipnet.Nth(p, numbers[i])
		gw, _ := ipnet.Nth(p, 1)
		net.IPs = append(net.IPs, netip.PrefixFrom(a, p.Bits()))
		net.Gateways = append(net.Gateways, gw)
	}
	net.MAC = ipnet.MACFor(ipnet.Addrs(net.IPs))
	return net
}

// claim gives a pod the very addresses ips, one in each pool.
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

// take gives a pod the next free address of each pool; full is the subnet that
// has none, and then nothing is taken.
func (l *nodeLease) take(pod cluster.Name) (numbers []uint64, full netip.Prefix) {
	for i, p := range l.pools {
		n, ok := p.take(pod)
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
