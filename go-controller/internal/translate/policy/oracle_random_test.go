package policy_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// someNodes is how many nodes clusters have. All numbers, labels and names are few, so that selectors select, and rules
// overlap.
const someNodes = 3

// nodeSubnet is the i-th node's.
func nodeSubnet(i int, v4 bool) netip.Prefix {
	if v4 {
		return netip.MustParsePrefix(fmt.Sprintf("10.128.%d.0/23", 2*i))
	}
	return netip.MustParsePrefix(fmt.Sprintf("fd01:0:0:%x::/64", i))
}

// host is an address of the i-th node's subnet.
func host(i int, v4 bool, number uint64) netip.Addr {
	a, _ := ipnet.Nth(nodeSubnet(i, v4), number)
	return a
}

// management is as whom the i-th node's host connects to pods.
func management(i int, v4 bool) netip.Addr { return host(i, v4, 2) }

func nodeAddress(i int, v4 bool) string {
	return map[bool]string{true: fmt.Sprintf("172.18.0.%d", 10+i), false: fmt.Sprintf("2001:db8:18::%x", 10+i)}[v4]
}

// outsiders are addresses where nobody of the cluster is.
func outsiders() []netip.Addr {
	var out []netip.Addr
	for _, a := range []string{"192.0.2.1", "192.0.2.130", "198.51.100.7", "10.128.0.200", "10.77.0.1", "2001:db8:2::1",
		"2001:db8:2:8000::1", "fd01::200", "2001:db8:9::1"} {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

// dice make a random cluster that an API server accepts.
type dice struct{ *rand.Rand }

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// logging is an annotation about what is logged, which changes no answer.
func (d dice) logging() map[string]string {
	return pick(d, nil, nil, nil, map[string]string{annotation.ACLLogging: `{"deny": "alert"}`},
		map[string]string{annotation.ACLLogging: `{"allow": "info"}`},
		map[string]string{annotation.ACLLogging: `{"allow": "info", "deny": "alert"}`})
}

func (d dice) cluster() *kube {
	families := pick(d, []bool{true, false}, []bool{true, false}, []bool{true}, []bool{false})
	k := newKube(families)
	for _, name := range []string{"x", "y", "z"} {
		k.namespaces = append(k.namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u",
			Labels: d.labels(map[string]string{"kubernetes.io/metadata.name": name}), Annotations: d.logging()}})
		for i := range 2 + d.IntN(3) {
			k.pods = append(k.pods, d.pod(name, fmt.Sprintf("p%d", i), len(k.pods), families))
		}
	}
	d.reuse(k)
	for i := range d.IntN(7) {
		k.policies = append(k.policies, d.policy(i))
	}
	if d.chance(60) {
		for i := range 1 + d.IntN(4) {
			k.clusterPolicies = append(k.clusterPolicies, d.clusterPolicy(i))
		}
	}
	d.tenants(k)
	return k
}

// newKube is a cluster of nodes alone.
func newKube(families []bool) *kube {
	k := &kube{families: families}
	for i := range someNodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), UID: "u",
			Labels: map[string]string{"app": pick(dice{rand.New(rand.NewPCG(uint64(i), 1))}, "a", "b")}}}
		var subnets []netip.Prefix
		for _, v4 := range families {
			subnets = append(subnets, nodeSubnet(i, v4))
			n.Status.Addresses = append(n.Status.Addresses,
				corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: nodeAddress(i, v4)})
		}
		n.Annotations = map[string]string{annotation.NodeSubnets: annotation.MarshalNodeSubnets(subnets)}
		k.nodes = append(k.nodes, n)
	}
	return k
}

// labels adds random labels of a small alphabet.
func (d dice) labels(to map[string]string) map[string]string {
	for _, key := range []string{"app", "tier", "env"} {
		if d.chance(60) {
			to[key] = pick(d, "a", "b", "")
		}
	}
	return to
}

func (d dice) pod(namespace, name string, number int, families []bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u",
		Labels: d.labels(map[string]string{})}}
	node := d.IntN(someNodes)
	p.Spec.NodeName = fmt.Sprintf("n%d", node)
	p.Status.Phase = pick(d, corev1.PodRunning, corev1.PodRunning, corev1.PodPending)
	for i := range 1 + d.IntN(2) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i),
			Ports: d.containerPorts(i)})
	}
	if d.chance(25) {
		sidecar := corev1.Container{Name: "i", Ports: d.containerPorts(2)}
		if d.chance(60) {
			sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, sidecar)
	}
	switch d.IntN(10) {
	case 0:
		p.Spec.HostNetwork = true
		for _, v4 := range families {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: nodeAddress(node, v4)})
		}
		return p
	case 1:
		p.Status.Phase = pick(d, corev1.PodSucceeded, corev1.PodFailed)
	case 2:
		p.Spec.NodeName = "" // not scheduled
		return p
	}
	assign(p, node, uint64(3+number), families)
	return p
}

// assign gives a pod its addresses.
func assign(p *corev1.Pod, node int, number uint64, families []bool) {
	var subnets []netip.Prefix
	var numbers []uint64
	for _, v4 := range families {
		subnets, numbers = append(subnets, nodeSubnet(node, v4)), append(numbers, number)
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: host(node, v4, number).String()})
	}
	network := subnet.Attachment(subnets, numbers, "")
	p.Annotations = map[string]string{annotation.PodNetworks: annotation.MarshalPodNetworks(network),
		annotation.PodClassic: annotation.MarshalPodClassic(network)}
}

// reuse gives addresses of finished pods to others.
func (d dice) reuse(k *kube) {
	for _, finished := range k.pods {
		for _, p := range k.pods {
			if len(finished.Annotations) > 0 && !running(finished) && running(p) && d.chance(50) &&
				p.Spec.NodeName == finished.Spec.NodeName {
				finished.Annotations, finished.Status.PodIPs = p.Annotations, p.Status.PodIPs
			}
		}
	}
}

// containerPorts are a container's. No two of the pod have the same name and protocol.
func (d dice) containerPorts(container int) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, p := range [][]corev1.ContainerPort{
		{{Name: "http", ContainerPort: 80}, {Name: "dns", Protocol: corev1.ProtocolUDP, ContainerPort: 53}},
		{{Name: "metrics", Protocol: corev1.ProtocolTCP, ContainerPort: 9000},
			{Name: "dns", Protocol: corev1.ProtocolTCP, ContainerPort: 53}},
		{{Name: "web", Protocol: corev1.ProtocolTCP, ContainerPort: 8080},
			{Name: "http", Protocol: corev1.ProtocolSCTP, ContainerPort: 80}},
	}[container] {
		if d.chance(50) {
			if d.chance(30) {
				p.ContainerPort = pick(d, int32(80), 8080, 53)
			}
			out = append(out, p)
		}
	}
	return out
}

// policy is a policy that has each optional field or not, and each list empty or not.
func (d dice) policy(i int) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: pick(d, "x", "y", "z"),
		Name: fmt.Sprintf("policy%d", i), UID: "u"}}
	p.Spec.PodSelector = d.selector("app", "tier", "env")
	p.Spec.PolicyTypes = pick(d, nil, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		[]networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		[]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress})
	if d.chance(80) {
		for range 1 + d.IntN(2) {
			p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: d.peers(), Ports: d.ports()})
		}
	}
	if d.chance(60) {
		for range 1 + d.IntN(2) {
			p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: d.peers(), Ports: d.ports()})
		}
	}
	return p
}

func (d dice) selector(keys ...string) metav1.LabelSelector {
	var out metav1.LabelSelector
	if d.chance(25) {
		return out
	}
	for _, key := range keys {
		switch d.IntN(8) {
		case 0, 1:
			out.MatchLabels = map[string]string{key: pick(d, "a", "b", "")}
		case 2, 3:
			r := metav1.LabelSelectorRequirement{Key: key, Operator: pick(d, metav1.LabelSelectorOpIn,
				metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				r.Values = pick(d, []string{"a"}, []string{"b", "a"}, []string{"", "nobodys"})
			}
			out.MatchExpressions = append(out.MatchExpressions, r)
		}
	}
	return out
}

func (d dice) peers() []networkingv1.NetworkPolicyPeer {
	if d.chance(25) {
		return pick(d, nil, []networkingv1.NetworkPolicyPeer{})
	}
	var out []networkingv1.NetworkPolicyPeer
	for range 1 + d.IntN(3) {
		var peer networkingv1.NetworkPolicyPeer
		switch d.IntN(4) {
		case 0:
			peer.PodSelector = new(d.selector("app", "tier"))
		case 1:
			peer.NamespaceSelector = d.namespaces()
		case 2:
			peer.PodSelector, peer.NamespaceSelector = new(d.selector("app", "env")), d.namespaces()
		case 3:
			peer.IPBlock = d.block()
		}
		out = append(out, peer)
	}
	return out
}

func (d dice) namespaces() *metav1.LabelSelector {
	if d.chance(30) {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": pick(d, "x", "y", "gone")}}
	}
	return new(d.selector("app", "tier"))
}

// block is a range with exceptions, which are within it and shorter. Some have bits behind their prefix.
func (d dice) block() *networkingv1.IPBlock {
	b := pick(d,
		networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.128.0.0/14", "192.0.2.128/25", "10.128.2.0/24"}},
		networkingv1.IPBlock{CIDR: "192.0.2.0/24", Except: []string{"192.0.2.130/32", "192.0.2.1/25"}},
		networkingv1.IPBlock{CIDR: "10.128.0.0/22", Except: []string{"10.128.0.3/32", "10.128.0.4/31", "10.128.2.9/23"}},
		networkingv1.IPBlock{CIDR: "10.128.0.5/32"},
		networkingv1.IPBlock{CIDR: "172.18.0.10/31"},
		networkingv1.IPBlock{CIDR: "10.200.1.1/8", Except: []string{"10.128.0.2/32"}},
		networkingv1.IPBlock{CIDR: "::/0", Except: []string{"fd01::/48", "2001:db8:2:8000::/49"}},
		networkingv1.IPBlock{CIDR: "2001:db8:2::1/48", Except: []string{"2001:db8:2::1/128"}},
		networkingv1.IPBlock{CIDR: "fd01::/63", Except: []string{"fd01::3/128", "fd01:0:0:1::/64"}},
		networkingv1.IPBlock{CIDR: "2001:db8:18::a/127"})
	var except []string
	for _, e := range b.Except {
		if d.chance(50) {
			except = append(except, e)
		}
	}
	b.Except = except
	return &b
}

func (d dice) ports() []networkingv1.NetworkPolicyPort {
	if d.chance(30) {
		return pick(d, nil, []networkingv1.NetworkPolicyPort{})
	}
	var out []networkingv1.NetworkPolicyPort
	for range 1 + d.IntN(3) {
		p := networkingv1.NetworkPolicyPort{Protocol: pick(d, nil, new(corev1.ProtocolTCP), new(corev1.ProtocolUDP),
			new(corev1.ProtocolSCTP))}
		switch d.IntN(6) {
		case 0: // all ports of the protocol
		case 1, 2:
			p.Port = new(intstr.FromString(pick(d, "http", "http", "dns", "metrics", "web", "nobodys")))
		case 3:
			first := pick(d, int32(1), 80, 443, 8000)
			p.Port, p.EndPort = new(intstr.FromInt32(first)), new(pick(d, first, first+1, 8080, 65535))
			*p.EndPort = max(*p.EndPort, first)
		default:
			p.Port = new(intstr.FromInt32(pick(d, int32(80), 443, 8080, 53)))
		}
		out = append(out, p)
	}
	return out
}

// connection is one that somebody may try, often to a port that the server has a name for.
func (d dice) connection(k *kube) connection {
	ends := k.ends(pick(d, k.families...))
	clients := slices.DeleteFunc(slices.Clone(ends), func(e end) bool { return e.server })
	c := connection{from: pick(d, clients...), to: pick(d, ends...),
		protocol: pick(d, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP, icmp)}
	if c.protocol != icmp {
		c.port = pick(d, int32(80), 80, 8080, 53, 9000, 443, 79, 81, 444, 8081, 65535)
	}
	if c.to.pod == nil || d.chance(60) {
		return c
	}
	for _, container := range slices.Concat(c.to.pod.Spec.Containers, c.to.pod.Spec.InitContainers) {
		for _, p := range container.Ports {
			if d.chance(50) {
				c.protocol, c.port = cmp.Or(p.Protocol, corev1.ProtocolTCP), p.ContainerPort
			}
		}
	}
	return c
}
