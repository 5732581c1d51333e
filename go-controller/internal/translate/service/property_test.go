package service_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kubeio"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
)

// The model: what the documentation of the API says of Services and
// EndpointSlices, on the API's own types, and nothing of ours.

// target is what a client connects to, "TCP 10.96.0.1:80".
func target(protocol corev1.Protocol, ip string, port int32) string {
	return fmt.Sprintf("%s %s", protocol, netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(port)))
}

// answers says who may answer whom clients in the cluster connect to: for each
// target that somebody has, the backends, sorted.
func answers(services []*corev1.Service, slicesOf []*discoveryv1.EndpointSlice) map[string][]string {
	holder, first := map[string]*corev1.Service{}, map[string]func() []string{}
	for _, s := range services {
		for _, ip := range ips(s) {
			for _, p := range s.Spec.Ports {
				key := target(p.Protocol, ip, p.Port)
				if h := holder[key]; h == nil || before(s, h, ip) {
					holder[key] = s
					first[key] = func() []string { return backends(s, p, netip.MustParseAddr(ip).Is4(), slicesOf) }
				}
			}
		}
	}
	out := map[string][]string{}
	for key, f := range first {
		out[key] = f()
	}
	return out
}

// ips is the addresses on which a service answers in the cluster.
func ips(s *corev1.Service) []string {
	if s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil // "no proxying"; "headless"
	}
	out := slices.Concat(s.Spec.ClusterIPs, s.Spec.ExternalIPs)
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(s.Spec.LoadBalancerSourceRanges) == 0 { // ranges: nobody yet
		for _, i := range s.Status.LoadBalancer.Ingress {
			if i.IP != "" && (i.IPMode == nil || *i.IPMode == corev1.LoadBalancerIPModeVIP) {
				out = append(out, i.IP)
			}
		}
	}
	return out
}

// before tells whether s has an address rather than h.
func before(s, h *corev1.Service, ip string) bool {
	a, b := slices.Contains(s.Spec.ClusterIPs, ip), slices.Contains(h.Spec.ClusterIPs, ip)
	switch {
	case a != b:
		return a
	case !s.CreationTimestamp.Equal(&h.CreationTimestamp):
		return s.CreationTimestamp.Before(&h.CreationTimestamp)
	}
	return s.Name < h.Name
}

// backends is the endpoints of a service port that get its connections.
func backends(s *corev1.Service, port corev1.ServicePort, is4 bool, all []*discoveryv1.EndpointSlice) []string {
	or := func(p *bool, otherwise bool) bool {
		if p == nil {
			return otherwise
		}
		return *p
	}
	ready, dying := map[string]bool{}, map[string]bool{}
	for _, e := range all {
		if e.Labels[discoveryv1.LabelServiceName] != s.Name || (e.AddressType == discoveryv1.AddressTypeIPv4) != is4 {
			continue
		}
		for _, p := range e.Ports {
			if *p.Name != port.Name || *p.Protocol != port.Protocol {
				continue
			}
			for _, ep := range e.Endpoints {
				at := netip.AddrPortFrom(netip.MustParseAddr(ep.Addresses[0]), uint16(*p.Port)).String()
				if or(ep.Conditions.Ready, true) {
					ready[at] = true
				}
				if or(ep.Conditions.Serving, true) && or(ep.Conditions.Terminating, false) {
					dying[at] = true
				}
			}
		}
	}
	if len(ready) > 0 {
		return slices.Sorted(maps.Keys(ready))
	}
	return slices.Sorted(maps.Keys(dying))
}

// gen makes random objects that an API server would accept.
type gen struct{ *rand.Rand }

func (g gen) chance(percent int) bool { return g.IntN(100) < percent }

func one[T any](g gen, of ...T) T { return of[g.IntN(len(of))] }

func (g gen) service(i int) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("s%d", i), CreationTimestamp: metav1.Unix(int64(1700000000+g.IntN(3)), 0)}}
	s.Spec.Type = one(g, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
	for _, ip := range []string{fmt.Sprintf("10.96.0.%d", 1+i), fmt.Sprintf("fd02::%d", 1+i)} {
		if g.chance(70) {
			s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, ip)
		}
	}
	if g.chance(10) {
		s.Spec.ClusterIPs = []string{corev1.ClusterIPNone}
	}
	if len(s.Spec.ClusterIPs) > 0 {
		s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	}
	for range g.IntN(3) {
		s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, one(g, "192.0.2.1", "192.0.2.2", "2001:db8::1", "10.96.0.1", "fd02::2"))
	}
	for range g.IntN(3) {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{
			IP: one(g, "192.0.2.1", "192.0.2.3", "2001:db8::3", ""), IPMode: one(g, nil, new(corev1.LoadBalancerIPModeVIP), new(corev1.LoadBalancerIPModeProxy))})
	}
	if g.chance(10) {
		s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24"}
	}
	for j, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP, corev1.ProtocolTCP} {
		if g.chance(50) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", j), Protocol: p, Port: int32(80 + j/3)})
		}
	}
	if len(s.Spec.Ports) == 0 {
		s.Spec.Ports = []corev1.ServicePort{{Name: "p0", Protocol: corev1.ProtocolTCP, Port: 80}}
	}
	s.Spec.SessionAffinity = one(g, corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)
	s.Spec.ExternalTrafficPolicy = one(g, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	return s
}

func (g gen) slice(i, services int) *discoveryv1.EndpointSlice {
	e := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("e%d", i)}, AddressType: one(g, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)}
	if g.chance(95) {
		e.Labels = map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("s%d", g.IntN(services))}
	}
	for j, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP, corev1.ProtocolTCP} {
		if g.chance(70) {
			e.Ports = append(e.Ports, discoveryv1.EndpointPort{Name: new(fmt.Sprintf("p%d", j)), Protocol: new(p), Port: new(int32(8080 + g.IntN(2)))})
		}
	}
	allReady := g.chance(40)
	for range g.IntN(5) {
		format := "10.128.0.%d"
		if e.AddressType == discoveryv1.AddressTypeIPv6 {
			format = "fd01::%d"
		}
		ep := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf(format, 3+g.IntN(6))}, NodeName: one(g, nil, new("n1"), new("n2"))}
		for _, c := range []**bool{&ep.Conditions.Ready, &ep.Conditions.Serving, &ep.Conditions.Terminating} {
			*c = one(g, nil, new(true), new(false), new(false))
		}
		if allReady {
			ep.Conditions = discoveryv1.EndpointConditions{Ready: new(true)}
		}
		e.Endpoints = append(e.Endpoints, ep)
	}
	return e
}

// The rows of random services have the backends that the model says, for
// whatever the model says that clients can connect to, and nothing else.
func TestRowsAgreeWithTheModel(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(400) {
		g := gen{rand.New(rand.NewPCG(seed, 17))}
		var services []*corev1.Service
		var endpoints []*discoveryv1.EndpointSlice
		var objects []cluster.Object
		take := func(obj any) {
			o, problems, ok := kubeio.Decode(obj)
			if !ok || len(problems) != 0 {
				t.Fatalf("seed %d: decoding %T: %v", seed, obj, problems)
			}
			objects = append(objects, o)
		}
		for i := range 1 + g.IntN(5) {
			services = append(services, g.service(i))
			take(services[i])
		}
		for i := range g.IntN(10) {
			endpoints = append(endpoints, g.slice(i, len(services)))
			take(endpoints[i])
		}
		g.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		want, got := answers(services, endpoints), rows(t, objects)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: the rows say\n%v\nthe model\n%v", seed, got, want)
		}
		for _, b := range want {
			seen[fmt.Sprint(min(len(b), 2))]++
		}
	}
	// The model is not always of one opinion.
	for _, n := range []string{"0", "1", "2"} {
		if seen[n] < 200 {
			t.Errorf("%d targets with %s backends, want at least 200: %v", seen[n], n, seen)
		}
	}
}

// rows is what the load balancers of a cluster say, in the model's terms.
func rows(t *testing.T, objects []cluster.Object) map[string][]string {
	t.Helper()
	db, errs := offline.New(config.DefaultCluster(), objects).Database()
	if len(errs) != 0 {
		t.Fatal(errs)
	}
	out := map[string][]string{}
	for _, m := range db.Rows(nbdb.LoadBalancerTable) {
		lb, ok := m.(*nbdb.LoadBalancer)
		if !ok || lb.Options["reject"] != "true" || len(lb.SelectionFields) == 0 {
			t.Fatalf("load balancer %+v", m)
		}
		for vip, backends := range lb.Vips {
			key := strings.ToUpper(*lb.Protocol) + " " + vip
			if _, twice := out[key]; twice {
				t.Errorf("%s is in two rows", key)
			}
			out[key] = slices.DeleteFunc(strings.Split(backends, ","), func(s string) bool { return s == "" })
			slices.Sort(out[key])
			if len(out[key]) == 0 {
				out[key] = nil
			}
		}
	}
	return out
}
