package policytest

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// End is one end of a connection.
type End struct {
	Name string
	Addr netip.Addr
	Pod  *corev1.Pod // nil for a node's host, with its pods of the host network, and for what is outside the cluster
	Node string      // where the pod runs, or whose host it is; "" outside
	// Server is true for an address of a node's host that the host does not connect to pods from.
	Server bool
}

// Connection is what somebody may be allowed to open.
type Connection struct {
	From, To End
	Protocol corev1.Protocol // or ICMP
	Port     int32           // of the destination
}

// ICMP stands for protocols without ports.
const ICMP = corev1.Protocol("ICMP")

// String is "x/web -> y/db TCP 80 (10.128.0.3 -> 10.128.2.4)".
func (c Connection) String() string {
	return fmt.Sprintf("%s -> %s %s %d (%s -> %s)", c.From.Name, c.To.Name, c.Protocol, c.Port, c.From.Addr, c.To.Addr)
}

// Itself tells whether a pod connects to itself, which it does through a service.
func (c Connection) Itself() bool { return c.From.Pod != nil && c.From.Pod == c.To.Pod }

// Ends lists who can connect and be connected to in one family: the running pods, the hosts of nodes as pods see them,
// the addresses of nodes, and some addresses where nobody is known.
func (k *Cluster) Ends(v4 bool) []End {
	var out []End
	for _, p := range k.Pods {
		for _, ip := range p.Status.PodIPs {
			a := netip.MustParseAddr(ip.IP)
			switch {
			case a.Is4() != v4:
			case Running(p):
				out = append(out, End{Name: p.Namespace + "/" + p.Name, Addr: a, Pod: p, Node: p.Spec.NodeName})
			case !p.Spec.HostNetwork && !k.inUse(a): // it has finished
				out = append(out, End{Name: "the address of " + p.Namespace + "/" + p.Name, Addr: a})
			}
		}
	}
	for i, n := range k.Nodes {
		out = append(out, End{Name: "host " + n.Name, Addr: Management(i, v4), Node: n.Name})
		for _, a := range n.Status.Addresses {
			if addr := netip.MustParseAddr(a.Address); addr.Is4() == v4 {
				out = append(out, End{Name: "address of " + n.Name, Addr: addr, Node: n.Name, Server: true})
			}
		}
	}
	for _, a := range outsiders() {
		if a.Is4() == v4 {
			out = append(out, End{Name: "outside " + a.String(), Addr: a})
		}
	}
	return out
}

// Running tells whether a pod has a place in the network of pods: it is on a node, has not finished, and is not of the
// host network.
func Running(p *corev1.Pod) bool {
	return p.Spec.NodeName != "" && !p.Spec.HostNetwork && p.Status.Phase != corev1.PodSucceeded &&
		p.Status.Phase != corev1.PodFailed
}

// inUse tells whether a running pod has an address.
func (k *Cluster) inUse(a netip.Addr) bool {
	return slices.ContainsFunc(k.Pods, func(p *corev1.Pod) bool {
		return Running(p) && slices.ContainsFunc(p.Status.PodIPs, func(ip corev1.PodIP) bool { return ip.IP == a.String() })
	})
}

// Connection is one that somebody may try, often to a port that the server has a name for.
func (d Dice) Connection(k *Cluster) Connection {
	ends := k.Ends(pick(d, k.Families...))
	clients := slices.DeleteFunc(slices.Clone(ends), func(e End) bool { return e.Server })
	c := Connection{From: pick(d, clients...), To: pick(d, ends...),
		Protocol: pick(d, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP, ICMP)}
	if c.Protocol != ICMP {
		c.Port = pick(d, int32(80), 80, 8080, 53, 9000, 443, 79, 81, 444, 8081, 65535)
	}
	if c.To.Pod == nil || d.Chance(60) {
		return c
	}
	for _, container := range slices.Concat(c.To.Pod.Spec.Containers, c.To.Pod.Spec.InitContainers) {
		for _, p := range container.Ports {
			if d.Chance(50) {
				c.Protocol, c.Port = cmp.Or(p.Protocol, corev1.ProtocolTCP), p.ContainerPort
			}
		}
	}
	return c
}
