package service_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Clusters use few names, addresses and ports, so that services and slices clash.
const (
	someNodes    = 4 // in two zones, the last in none
	someServices = 8
	someBackends = 6 // of each family
	someVIPs     = 3 // external ones of each family

	outside = someBackends - 1 // this backend is not in the cluster
)

// backendAddrs lists the addresses of the j-th backend, a pod. The nodes take turns.
func backendAddrs(j int) (v4, v6 string) {
	if j == outside {
		return "203.0.113.7", "2001:db8:7::7"
	}
	return fmt.Sprintf("10.128.%d.%d", 2*(j%someNodes), 10+j),
		netip.MustParseAddr(fmt.Sprintf("fd01:0:0:%x::%x", j%someNodes, 10+j)).String()
}

// dice make a random cluster that an API server accepts.
type dice struct{ *rand.Rand }

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// some is a subset, in order.
func some[T any](d dice, percent int, of ...T) []T {
	var out []T
	for _, v := range of {
		if d.chance(percent) {
			out = append(out, v)
		}
	}
	return out
}

// maybe is a pointer to one of the values, or none.
func maybe[T any](d dice, of ...T) *T {
	if d.chance(30) {
		return nil
	}
	v := pick(d, of...)
	return &v
}

func (d dice) cluster() *kube {
	k := &kube{}
	for i := range someNodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), UID: "u"}}
		if i < someNodes-1 {
			n.Labels = map[string]string{corev1.LabelTopologyZone: zoneName(i)}
		}
		k.nodes = append(k.nodes, n)
	}
	for i := range someServices {
		s := d.service(i)
		k.services = append(k.services, s)
		k.slices = append(k.slices, d.slicesOf(s)...)
	}
	return k
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i) }
func zoneName(i int) string { return string(rune('a' + i%2)) }

func (d dice) service(i int) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: pick(d, "x", "y"), Name: fmt.Sprintf("s%d", i), UID: "u",
		CreationTimestamp: metav1.NewTime(time.Unix(int64(1+d.IntN(3)), 0))}}
	s.Spec.Type = pick(d, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer,
		corev1.ServiceTypeLoadBalancer)
	s.Spec.Ports = d.ports()
	s.Spec.PublishNotReadyAddresses = d.chance(10)
	if d.chance(5) {
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
		return s
	}
	if d.chance(3) {
		s.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "other"}
	}
	if d.chance(80) {
		s.Spec.InternalTrafficPolicy = pick(d, new(corev1.ServiceInternalTrafficPolicyCluster),
			new(corev1.ServiceInternalTrafficPolicyLocal))
	}
	s.Spec.ExternalTrafficPolicy = pick(d, "", corev1.ServiceExternalTrafficPolicyCluster,
		corev1.ServiceExternalTrafficPolicyLocal)
	s.Spec.TrafficDistribution = maybe(d, corev1.ServiceTrafficDistributionPreferSameZone,
		corev1.ServiceTrafficDistributionPreferSameNode, corev1.ServiceTrafficDistributionPreferClose)
	d.addresses(&s.Spec, i)
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, a := range append(some(d, 40, vips()...), some(d, 10, "")...) {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a,
				Hostname: "lb.example.com",
				IPMode:   maybe(d, corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPModeProxy)})
		}
		s.Spec.LoadBalancerSourceRanges = some(d, 10, "198.51.100.0/24", "2001:db8:1::/48")
		s.Spec.AllocateLoadBalancerNodePorts = maybe(d, true, false)
	}
	if d.chance(40) {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = maybe(d,
			corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: maybe(d, int32(1), 60, 10800, 86400)}})
	}
	return s
}

// ports are one to three, no number twice per protocol. A single port may have no name.
func (d dice) ports() []corev1.ServicePort {
	var out []corev1.ServicePort
	for i, proto := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP,
		corev1.ProtocolSCTP, ""} {
		if len(out) < 3 && (d.chance(40) || i == 4 && len(out) == 0) {
			// The last is TCP too: no other port has that number.
			out = append(out, corev1.ServicePort{Name: fmt.Sprintf("p%d", i), Protocol: proto, Port: []int32{80, 443, 80, 80,
				8000}[i], NodePort: int32(d.IntN(2) * (30000 + d.IntN(2767)))})
		}
	}
	if len(out) == 1 && d.chance(50) {
		out[0].Name = ""
	}
	return out
}

// vips are external addresses that services are given, and that several services may name.
func vips() []string {
	var out []string
	for i := range someVIPs {
		out = append(out, fmt.Sprintf("192.0.2.%d", i+1), fmt.Sprintf("2001:db8::%x", i+1))
	}
	return out
}

func clusterIPs(i int) (v4, v6 string) {
	return fmt.Sprintf("10.96.0.%d", i+1), fmt.Sprintf("fd02::%x", i+1)
}

func (d dice) addresses(s *corev1.ServiceSpec, i int) {
	v4, v6 := clusterIPs(i)
	s.ClusterIPs = pick(d, []string{v4}, []string{v6}, []string{v4, v6}, []string{v6, v4})
	if d.chance(5) {
		s.ClusterIPs = []string{corev1.ClusterIPNone}
	}
	if d.chance(5) {
		s.ClusterIPs = []string{""} // the API server has not allocated it yet
	}
	s.ClusterIP = s.ClusterIPs[0]
	if s.ClusterIP == "" {
		s.ClusterIPs = nil
	}
	s.ExternalIPs = some(d, 20, vips()...)
	if d.chance(10) {
		other, other6 := clusterIPs(d.IntN(someServices)) // somebody's, or its own
		s.ExternalIPs = append(s.ExternalIPs, pick(d, other, other6))
	}
}

// slicesOf are a service's slices, some of which repeat endpoints, and slices that look like the service's but are not.
func (d dice) slicesOf(s *corev1.Service) []*discoveryv1.EndpointSlice {
	var out []*discoveryv1.EndpointSlice
	hints := d.hints()
	for i := range 1 + d.IntN(5) {
		v4 := d.chance(50)
		e := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace,
			Name: fmt.Sprintf("%s-%d", s.Name, i), UID: "u",
			Labels: map[string]string{discoveryv1.LabelServiceName: s.Name}},
			AddressType: map[bool]discoveryv1.AddressType{true: discoveryv1.AddressTypeIPv4,
				false: discoveryv1.AddressTypeIPv6}[v4]}
		switch d.IntN(25) {
		case 0:
			e.Labels = nil
		case 1:
			e.Namespace = "z"
		case 2:
			e.Labels["service.kubernetes.io/headless"] = ""
		}
		e.Ports = d.endpointPorts(s.Spec.Ports)
		for j := range someBackends {
			if d.chance(45) {
				e.Endpoints = append(e.Endpoints, d.endpoint(s, j, v4, hints))
			}
		}
		if d.chance(4) {
			e.AddressType, e.Endpoints = discoveryv1.AddressTypeFQDN,
				[]discoveryv1.Endpoint{{Addresses: []string{"example.com"}}}
		}
		out = append(out, e)
	}
	return out
}

// endpointPorts are some of the service's ports. Their numbers differ between slices, as those of named target ports
// do.
func (d dice) endpointPorts(ports []corev1.ServicePort) []discoveryv1.EndpointPort {
	var out []discoveryv1.EndpointPort
	for _, p := range some(d, 85, ports...) {
		e := discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(p.Protocol),
			Port: new(pick(d, int32(8080), 8080, 8081))}
		if p.Name == "" && d.chance(50) {
			e.Name = nil
		}
		if p.Protocol == "" || p.Protocol == corev1.ProtocolTCP && d.chance(50) {
			e.Protocol = nil
		}
		switch d.IntN(25) {
		case 0:
			e.Port = nil
		case 1:
			e.Protocol = new(corev1.ProtocolUDP)
		}
		out = append(out, e)
	}
	return out
}

// hints are those of a service's endpoints, by number. Most often all endpoints have them: only then they count.
func (d dice) hints() []*discoveryv1.EndpointHints {
	out := make([]*discoveryv1.EndpointHints, 2*someBackends)
	percent := pick(d, 0, 90, 100, 100)
	zones, nodes := d.chance(70), d.chance(50)
	for i := range out {
		if !d.chance(percent) {
			continue
		}
		out[i] = &discoveryv1.EndpointHints{}
		if zones {
			out[i].ForZones = []discoveryv1.ForZone{{Name: pick(d, "a", "b", "c")}}
			if d.chance(20) {
				out[i].ForZones = append(out[i].ForZones, discoveryv1.ForZone{Name: "b"})
			}
		}
		if nodes {
			out[i].ForNodes = []discoveryv1.ForNode{{Name: nodeName(d.IntN(someNodes))}}
		}
	}
	return out
}

// endpoint is the j-th of a family. Its address, node and hints are the same in all slices of the service; its
// conditions may differ.
func (d dice) endpoint(s *corev1.Service, j int, v4 bool, hints []*discoveryv1.EndpointHints) discoveryv1.Endpoint {
	addr4, addr6 := backendAddrs(j)
	e := discoveryv1.Endpoint{Addresses: []string{addr4}, Hints: hints[j], NodeName: new(nodeName(j % someNodes)),
		Zone: new(zoneName(j % someNodes))}
	if !v4 {
		e.Addresses, e.Hints = []string{addr6}, hints[someBackends+j]
	}
	if j == outside {
		e.NodeName, e.Zone = nil, nil
	}
	if d.chance(10) {
		e.Addresses = append(e.Addresses, "192.0.2.99") // without a meaning
	}
	e.Conditions = pick(d, discoveryv1.EndpointConditions{}, discoveryv1.EndpointConditions{},
		discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		discoveryv1.EndpointConditions{Ready: new(false)}, discoveryv1.EndpointConditions{Ready: new(false),
			Serving: new(false), Terminating: new(true)},
		discoveryv1.EndpointConditions{Ready: new(false), Terminating: new(true)},
		discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)})
	if s.Spec.PublishNotReadyAddresses {
		e.Conditions.Ready = new(true)
	}
	return e
}
