package policytest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// Dice make random clusters that an API server accepts, and connections to try.
type Dice struct{ *rand.Rand }

// NewDice are dice that fall the same for the same numbers.
func NewDice(seed, stream uint64) Dice { return Dice{rand.New(rand.NewPCG(seed, stream))} }

// Chance is true that often.
func (d Dice) Chance(percent int) bool { return d.IntN(100) < percent }

// pick is one of the values.
func pick[T any](d Dice, of ...T) T { return of[d.IntN(len(of))] }

// Cluster is a random cluster. All numbers, labels and names are few, so that selectors select, and rules overlap.
func (d Dice) Cluster() *Cluster {
	families := pick(d, []bool{true, false}, []bool{true, false}, []bool{true}, []bool{false})
	k := New(families)
	for _, name := range []string{"x", "y", "z"} {
		k.Namespaces = append(k.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u",
			Labels: d.labels(map[string]string{"kubernetes.io/metadata.name": name}), Annotations: d.logging()}})
		for i := range 2 + d.IntN(3) {
			k.Pods = append(k.Pods, d.pod(name, fmt.Sprintf("p%d", i), len(k.Pods), families))
		}
	}
	d.reuse(k)
	for i := range d.IntN(7) {
		k.Policies = append(k.Policies, d.Policy(i))
	}
	if d.Chance(60) {
		for i := range 1 + d.IntN(4) {
			k.ClusterPolicies = append(k.ClusterPolicies, d.ClusterPolicy(i))
		}
	}
	d.tenants(k)
	return k
}

// logging is an annotation about what is logged, which changes no answer.
func (d Dice) logging() map[string]string {
	return pick(d, nil, nil, nil, map[string]string{annotation.ACLLogging: `{"deny": "alert"}`},
		map[string]string{annotation.ACLLogging: `{"allow": "info"}`},
		map[string]string{annotation.ACLLogging: `{"allow": "info", "deny": "alert"}`})
}

// labels adds random labels of a small alphabet.
func (d Dice) labels(to map[string]string) map[string]string {
	for _, key := range []string{"app", "tier", "env"} {
		if d.Chance(60) {
			to[key] = pick(d, "a", "b", "")
		}
	}
	return to
}

func (d Dice) pod(namespace, name string, number int, families []bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u",
		Labels: d.labels(map[string]string{})}}
	node := d.IntN(someNodes)
	p.Spec.NodeName = fmt.Sprintf("n%d", node)
	p.Status.Phase = pick(d, corev1.PodRunning, corev1.PodRunning, corev1.PodPending)
	for i := range 1 + d.IntN(2) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i),
			Ports: d.containerPorts(i)})
	}
	if d.Chance(25) {
		sidecar := corev1.Container{Name: "i", Ports: d.containerPorts(2)}
		if d.Chance(60) {
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
	Assign(p, node, uint64(3+number), families)
	return p
}

// Assign gives a pod its addresses.
func Assign(p *corev1.Pod, node int, number uint64, families []bool) {
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
func (d Dice) reuse(k *Cluster) {
	for _, finished := range k.Pods {
		for _, p := range k.Pods {
			if len(finished.Annotations) > 0 && !Running(finished) && Running(p) && d.Chance(50) &&
				p.Spec.NodeName == finished.Spec.NodeName {
				finished.Annotations, finished.Status.PodIPs = p.Annotations, p.Status.PodIPs
			}
		}
	}
}

// containerPorts are a container's. No two of the pod have the same name and protocol.
func (d Dice) containerPorts(container int) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, p := range [][]corev1.ContainerPort{
		{{Name: "http", ContainerPort: 80}, {Name: "dns", Protocol: corev1.ProtocolUDP, ContainerPort: 53}},
		{{Name: "metrics", Protocol: corev1.ProtocolTCP, ContainerPort: 9000},
			{Name: "dns", Protocol: corev1.ProtocolTCP, ContainerPort: 53}},
		{{Name: "web", Protocol: corev1.ProtocolTCP, ContainerPort: 8080},
			{Name: "http", Protocol: corev1.ProtocolSCTP, ContainerPort: 80}},
	}[container] {
		if d.Chance(50) {
			if d.Chance(30) {
				p.ContainerPort = pick(d, int32(80), 8080, 53)
			}
			out = append(out, p)
		}
	}
	return out
}

// tenants makes the namespaces of some clusters tenants.
func (d Dice) tenants(k *Cluster) {
	if k.Multitenant = d.Chance(30); !k.Multitenant && !d.Chance(20) { // without tenants, annotations say nothing
		return
	}
	for _, n := range k.Namespaces {
		n.Annotations = pick(d, nil, nil, map[string]string{annotation.NamespaceTenant: pick(d, "*", "x", "blue")},
			map[string]string{annotation.NamespaceChangeNetwork: pick(d, "global", "isolate", "join:y")},
			map[string]string{annotation.NamespaceTenant: "blue", annotation.NamespaceChangeNetwork: "global"})
	}
}
