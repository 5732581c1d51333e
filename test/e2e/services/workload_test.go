package services

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Prefixes of external and load balancers' addresses. A service's number completes them. The router outside has a route
// to a node for each.
const (
	externalV4, externalV6 = "192.0.2.", "2001:db8:2::"
	balancedV4, balancedV6 = "198.51.100.", "2001:db8:3::"
)

// Ports of the servers. On a host, each may be in use.
const (
	podPort  = 8080
	hostPort = 9090
)

// backend describes servers: pods on these nodes, or the host networks of these nodes.
type backend struct {
	name  string
	label string // of the pods
	nodes []string
	port  int32
}

func backends() []backend {
	return []backend{
		{"a pod on n2", "pod-n2", []string{"n2"}, podPort},
		{"n2's host network", "host-n2", []string{"n2"}, hostPort},
		{"pods on n2 and n3", "pods", []string{"n2", "n3"}, podPort},
	}
}

// service is a combination. Its number determines its addresses and node port.
type service struct {
	backend
	number             int
	internal, external string // traffic policies
	affinity           corev1.ServiceAffinity
	clusterIPs         []netip.Addr // known when it is created
}

// services returns all combinations.
func services() (all []*service) {
	for _, b := range backends() {
		for _, internal := range []string{"Cluster", "Local"} {
			for _, external := range []string{"Cluster", "Local"} {
				for _, affinity := range []corev1.ServiceAffinity{corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP} {
					all = append(all, &service{backend: b, number: len(all) + 1, internal: internal, external: external,
						affinity: affinity})
				}
			}
		}
	}
	return all
}

func (s *service) name() string { return fmt.Sprintf("s%d", s.number) }

func (s *service) String() string {
	return fmt.Sprintf("%s (backend %s, internal %s, external %s, affinity %s)", s.name(), s.backend.name, s.internal,
		s.external, s.affinity)
}

// nodePort is in the range from which the API server allocates only when the rest is used: with the default range,
// 30000 to 30085 (Kubernetes API docs, "Avoiding collisions" of Service node ports). Health check node ports come from
// the same range.
func (s *service) nodePort() uint16 { return uint16(30000 + s.number) }

func (s *service) object() *corev1.Service {
	internal, family := corev1.ServiceInternalTrafficPolicy(s.internal), corev1.IPFamilyPolicyRequireDualStack
	port := func(p corev1.Protocol) corev1.ServicePort {
		return corev1.ServicePort{
			Name: strings.ToLower(string(p)), Protocol: p, Port: podPort, TargetPort: intstr.FromInt32(s.port),
			NodePort: int32(s.nodePort()),
		}
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: s.name()},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, IPFamilyPolicy: &family, Selector: map[string]string{s.label: ""},
			InternalTrafficPolicy: &internal, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicy(s.external),
			SessionAffinity: s.affinity, Ports: []corev1.ServicePort{port(corev1.ProtocolTCP), port(corev1.ProtocolUDP),
				port(corev1.ProtocolSCTP)},
			ExternalIPs: s.addresses(externalV4, externalV6),
		},
	}
}

// addresses returns the service's addresses in two prefixes.
func (s *service) addresses(v4, v6 string) []string {
	return []string{fmt.Sprint(v4, s.number), fmt.Sprintf("%s%x", v6, s.number)}
}

// ingress returns the load balancer's addresses, as a cloud would set them.
func (s *service) ingress() (all []corev1.LoadBalancerIngress) {
	for _, a := range s.addresses(balancedV4, balancedV6) {
		all = append(all, corev1.LoadBalancerIngress{IP: a})
	}
	return all
}

// pods returns the backends, with the labels of all their services, and the clients in pods.
func pods() (all []*corev1.Pod) {
	pod := func(name, node string, host bool, labels ...string) {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
			Spec: corev1.PodSpec{NodeName: node, HostNetwork: host, TerminationGracePeriodSeconds: new(int64),
				Containers: []corev1.Container{{
					Name: "echo", Image: "localhost/echo:1", ImagePullPolicy: corev1.PullIfNotPresent,
					Args: []string{fmt.Sprint(map[bool]int{false: podPort, true: hostPort}[host])},
				}}},
		}
		for _, l := range labels {
			p.Labels[l] = ""
		}
		all = append(all, p)
	}
	pod("backend-n2", "n2", false, "pod-n2", "pods")
	pod("backend-n3", "n3", false, "pods")
	pod("host-n2", "n2", true, "host-n2")
	pod("host-n3", "n3", true)
	for _, node := range []string{"n1", "n2", "n3"} {
		pod("client-"+node, node, false)
	}
	return all
}

// way is a kind of address of services.
type way struct {
	name     string
	nodePort bool
	entry    string // the node by which clients from outside enter
	of       func(*service) []netip.AddrPort
}

func both(addrs []string, port uint16) (all []netip.AddrPort) {
	for _, a := range addrs {
		all = append(all, netip.AddrPortFrom(netip.MustParseAddr(a), port))
	}
	return all
}

// ways returns all kinds of addresses. Those from outside lead to the node that has a backend of every service, or to
// the node that has none.
func (b bed) ways() []way {
	nodePort := func(node string) way {
		return way{node + "'s node port", true, node, func(s *service) (all []netip.AddrPort) {
			for _, a := range b.addrs[node] {
				all = append(all, netip.AddrPortFrom(a, s.nodePort()))
			}
			return all
		}}
	}
	routed := func(what, node, v4, v6 string) way {
		return way{what + ", routed to " + node, false, node, func(s *service) []netip.AddrPort {
			return both(s.addresses(v4, v6), podPort)
		}}
	}
	return []way{
		{clusterIP, false, "", func(s *service) (all []netip.AddrPort) {
			for _, a := range s.clusterIPs {
				all = append(all, netip.AddrPortFrom(a, podPort))
			}
			return all
		}},
		nodePort("n1"),
		nodePort("n2"),
		routed("external IP", "n2", externalV4, externalV6),
		routed("load balancer's IP", "n1", balancedV4, balancedV6),
	}
}

const clusterIP = "cluster IP"

// local returns the backend's nodes that are this node.
func (s *service) local(node string) (all []string) {
	if slices.Contains(s.nodes, node) {
		all = append(all, node)
	}
	return all
}
