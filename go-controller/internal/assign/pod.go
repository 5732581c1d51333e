package assign

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
	pending   bool // a patch is on its way: the object does not show it yet
}

func (a *assignment) releasePods() {
	for n := range a.pods {
		p, lease := a.s.Pods[n], a.Ledger.pods[n]
		if p == nil || !p.WantsNetwork() {
			for _, starved := range a.starvedPods {
				delete(starved, n)
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
		if lease := a.Ledger.pods[p.Name]; lease != nil {
			a.confirmPod(p, lease)
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

// confirmPod compares what a pod says with what it holds.
func (a *assignment) confirmPod(p *cluster.Pod, lease *podLease) {
	net := a.s.PodNetworks[p.Name]
	same := p.Annotated != nil && cluster.SamePodNetwork(net, *p.Annotated)
	switch {
	case same && p.ClassicOK:
		lease.pending = false
		return
	case lease.pending:
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
		delete(a.starvedPods[p.Node], p.Name)
		a.patchPod(p, a.grantPod(p, numbers))
	}
}

func (a *assignment) starve(p *cluster.Pod, full netip.Prefix) {
	if a.starvedPods[p.Node] == nil {
		a.starvedPods[p.Node] = map[cluster.Name]bool{}
	}
	if !a.starvedPods[p.Node][p.Name] {
		a.problem(p, p.UID, ReasonAddressGone, fmt.Sprintf("no address is free in subnet %s of node %s: the pod waits for one", full, p.Node))
	}
	a.starvedPods[p.Node][p.Name] = true
}

func (a *assignment) grantPod(p *cluster.Pod, numbers []uint64) annotation.PodNetwork {
	a.Ledger.pods[p.Name] = &podLease{uid: p.UID, node: p.Node, numbers: numbers}
	net := a.Ledger.nodes[p.Node].network(numbers)
	a.Changes = append(a.Changes, a.s.GrantPod(p.Name, &net))
	return net
}

func (a *assignment) patchPod(p *cluster.Pod, net annotation.PodNetwork) {
	a.Ledger.pods[p.Name].pending = true
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
