package oracles

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/kube-network-policies/pkg/api"
	"sigs.k8s.io/kube-network-policies/pkg/network"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
	tiered "sigs.k8s.io/kube-network-policies/plugins/npa-v1alpha2"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
	tieredinformers "sigs.k8s.io/network-policy-api/pkg/client/informers/externalversions"

	"github.com/northbound-net/northbound/go-controller/internal/testkit/policytest"
)

// packetEngine asks kube-network-policies about the first packet of a connection. Its stores are filled by hand: its
// informers are never started.
type packetEngine struct {
	without
	engine           *networkpolicy.PolicyEngine
	ingress, egress  cache.Store // NetworkPolicies
	tiered, nodes    cache.Store
	pods             map[string]*api.PodInfo // by address
	hosts            map[string]string       // names of nodes, by address
	clusterAddresses []netip.Prefix
}

func newPacketEngine(w without) *packetEngine {
	e := &packetEngine{without: w}
	core := informers.NewSharedInformerFactory(nil, 0)
	standard := func() (*networkpolicy.StandardNetworkPolicy, cache.Store) {
		policies := informers.NewSharedInformerFactory(nil, 0).Networking().V1().NetworkPolicies()
		return networkpolicy.NewStandardNetworkPolicy("", core.Core().V1().Namespaces(), core.Core().V1().Pods(), policies),
			policies.Informer().GetStore()
	}
	both := &byDirection{engine: e}
	both.ingress, e.ingress = standard()
	both.egress, e.egress = standard()
	policies := tieredinformers.NewSharedInformerFactory(nil, 0).Policy().V1alpha2().ClusterNetworkPolicies()
	nodes := core.Core().V1().Nodes()
	e.tiered, e.nodes = policies.Informer().GetStore(), nodes.Informer().GetStore()
	e.engine = networkpolicy.NewPolicyEngine(e, []api.PolicyEvaluator{
		tiered.NewClusterNetworkPolicy(v1alpha2.AdminTier, policies, e, nodes.Lister()), both,
		tiered.NewClusterNetworkPolicy(v1alpha2.BaselineTier, policies, e, nodes.Lister())})
	return e
}

func (*packetEngine) name() string { return kubeNetworkPolicies }

func (e *packetEngine) load(q *questions) {
	e.pods, e.hosts, e.clusterAddresses = map[string]*api.PodInfo{}, map[string]string{}, q.ranges
	var ingress, egress []any
	for _, p := range q.Policies {
		p = defaulted(p)
		if e.adjusts(portOfBlock) {
			blocksWithoutNames(p)
		}
		if !e.adjusts(otherDirection) {
			ingress, egress = append(ingress, p), append(egress, p)
			continue
		}
		if one := only(networkingv1.PolicyTypeIngress, p); one != nil {
			ingress = append(ingress, one)
		}
		if one := only(networkingv1.PolicyTypeEgress, p); one != nil {
			egress = append(egress, one)
		}
	}
	fill(e.ingress, ingress)
	fill(e.egress, egress)
	var policies, nodes []any
	for _, p := range q.ClusterPolicies {
		policies = append(policies, p)
	}
	fill(e.tiered, policies)
	for i, n := range q.Nodes {
		n = n.DeepCopy()
		for _, v4 := range q.Families {
			management := policytest.Management(i, v4).String()
			e.hosts[management] = n.Name
			if e.adjusts(managementPort) {
				n.Status.Addresses = append(n.Status.Addresses,
					corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: management})
			}
		}
		for _, a := range n.Status.Addresses {
			e.hosts[a.Address] = n.Name
		}
		nodes = append(nodes, n)
	}
	fill(e.nodes, nodes)
	for _, p := range q.Pods {
		if policytest.Running(p) {
			written := &corev1.Pod{ObjectMeta: p.ObjectMeta, Spec: corev1.PodSpec{NodeName: p.Spec.NodeName,
				Containers: containers(p, e.adjusts(sidecar))}}
			for _, ip := range p.Status.PodIPs {
				e.pods[ip.IP] = api.NewPodInfo(written, q.labels[p.Namespace], nil, "")
			}
		}
	}
}

// fill gives a store its objects.
func fill(s cache.Store, objects []any) {
	if err := s.Replace(objects, ""); err != nil {
		panic(fmt.Sprintf("filling a store: %v", err)) // an object without a name
	}
}

// GetPodInfoByIP is how the library finds the pods of a packet.
func (e *packetEngine) GetPodInfoByIP(ip string) (*api.PodInfo, bool) {
	p, ok := e.pods[ip]
	return p, ok
}

// ContainsIP is how the library asks for the addresses of a name.
func (e *packetEngine) ContainsIP(domain string, ip net.IP) bool {
	a, _ := netip.AddrFromSlice(ip)
	a = a.Unmap()
	if e.adjusts(domainInside) && (e.hosts[a.String()] != "" ||
		slices.ContainsFunc(e.clusterAddresses, func(p netip.Prefix) bool { return p.Contains(a) })) {
		return false
	}
	return slices.Contains(policytest.Domains()[domain], a.String())
}

func (e *packetEngine) allows(c connection) (allowed bool, reason deviation) {
	if e.adjusts(itself) && c.Itself() {
		return false, itself
	}
	p := &network.Packet{SrcIP: c.From.Addr.AsSlice(), DstIP: c.To.Addr.AsSlice(), Proto: c.Protocol, SrcPort: 40000,
		DstPort: int(c.Port)}
	if c.Protocol == policytest.ICMP { // as the library reads such a packet
		p.Proto, p.SrcPort = "", 0
	}
	allowed, err := e.engine.EvaluatePacket(context.Background(), p)
	if err != nil {
		panic(fmt.Sprintf("asking about %s: %v", c, err)) // the library has no errors but those of stores
	}
	return allowed, ""
}

// byDirection is tier NetworkPolicy, with the policies of each direction.
type byDirection struct {
	engine          *packetEngine
	ingress, egress *networkpolicy.StandardNetworkPolicy
}

// EvaluateIngress asks the policies of the server.
func (b *byDirection) EvaluateIngress(ctx context.Context, p *network.Packet, from, to *api.PodInfo,
) (api.Verdict, error) {
	v, err := b.ingress.EvaluateIngress(ctx, p, from, to)
	return b.orOwnNode(v, to, p.SrcIP), err
}

// EvaluateEgress asks the policies of the client.
func (b *byDirection) EvaluateEgress(ctx context.Context, p *network.Packet, from, to *api.PodInfo,
) (api.Verdict, error) {
	v, err := b.egress.EvaluateEgress(ctx, p, from, to)
	return b.orOwnNode(v, from, p.DstIP), err
}

// orOwnNode accepts what NetworkPolicies deny to the pod's own node.
func (b *byDirection) orOwnNode(v api.Verdict, pod *api.PodInfo, other net.IP) api.Verdict {
	if v == api.VerdictDeny && b.engine.adjusts(ownNode) && b.engine.hosts[other.String()] == pod.Node.Name {
		return api.VerdictAccept
	}
	return v
}

// Name is that of the tier.
func (b *byDirection) Name() string { return "NetworkPolicy" }

// Ready is always true: the stores are filled by hand.
func (b *byDirection) Ready() bool { return true }

// SetDataplaneSyncCallback does nothing: there are no packets.
func (b *byDirection) SetDataplaneSyncCallback(api.SyncFunc) {}

// ManagedIPs is what the library's controller asks for. There is none.
func (b *byDirection) ManagedIPs(context.Context) ([]netip.Addr, bool, error) { return nil, false, nil }
