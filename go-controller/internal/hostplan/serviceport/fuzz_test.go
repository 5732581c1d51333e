package serviceport_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// Services and EndpointSlices with texts of any content give entries that read back as what they are. An entry has no
// address but those of the objects, the node and other nodes.
func FuzzHostileServices(f *testing.F) {
	f.Add("web", "TCP", "10.96.0.11", "192.0.2.7", "10.128.2.5", "198.51.100.0/24", "n1", int32(30080), true)
	f.Add("a to b", "UDP\nserve", "10.96.0.11 ", "192.0.2.7\nserve TCP 0.0.0.0:22 to 10.96.0.1:80", "fe80::1%0\nserve",
		"0.0.0.0/0 ", "n2", int32(0), false)
	f.Add("\n", "SCTP ", "fd02::12%a to fd02::1:80", "2001:db8::7%a to [fd02::1]:80", "fd01:0:0:1::5%a]:80\nserve",
		"2001:db8::%x/32", "n1 ", int32(65536), false)
	f.Add("\n", "SCTP ", "::ffff:10.96.0.11", "::ffff:192.0.2.7", "fd01:0:0:1::5%a]:80\nserve", "::/0", "n1",
		int32(1), true)
	f.Fuzz(func(
		t *testing.T, name, protocol, clusterIP, external, endpoint, source, node string, number int32, local bool,
	) {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer,
				ClusterIPs: []string{clusterIP, "10.96.0.10", "fd02::10"}, ExternalIPs: []string{external},
				LoadBalancerSourceRanges: []string{source},
				Ports: []corev1.ServicePort{{Name: name, Protocol: corev1.Protocol(protocol), Port: number, NodePort: number},
					{Name: "a", Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30000}}},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{
				Ingress: []corev1.LoadBalancerIngress{{IP: external, Hostname: name}, {IP: "192.0.2.200"}}}}}
		if local {
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
		tcp, other, port := corev1.ProtocolTCP, corev1.Protocol(protocol), int32(8080)
		slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressType(protocol),
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name,
				Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			Ports: []discoveryv1.EndpointPort{{Name: &name, Protocol: &other, Port: &number},
				{Name: &[]string{"a"}[0], Protocol: &tcp, Port: &port}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{endpoint}, NodeName: &node},
				{Addresses: []string{"10.128.2.9"}, NodeName: &node}}}
		o, _ := kinds.Service().Decode(s)
		e, _ := kinds.EndpointSlice().Decode(slice)
		service, endpoints := o.(*cluster.Service), e.(*cluster.EndpointSlice)
		known := serviceport.Slices{service.Name: {endpoints}}
		plan, _ := serviceport.Plan([]*cluster.Service{service}, facts(known), nodeConfig())
		checkEntries(t, plan.Host[0].(hostplan.ServicePorts), service, endpoints)
	})
}

// checkEntries fails if a line is no entry, or if an entry is about an address, a port or a protocol that nothing has.
func checkEntries(t *testing.T, p hostplan.ServicePorts, s *cluster.Service, slice *cluster.EndpointSlice) {
	t.Helper()
	own := facts(nil)
	at := append(slices.Concat(s.ClusterIPs, s.ExternalIPs), netip.IPv4Unspecified(), netip.IPv6Unspecified())
	to := slices.Concat(slices.Concat(slices.Collect(maps.Values(own.Nodes))...), s.ClusterIPs)
	for _, i := range s.Ingress {
		at = append(at, i.Addr)
	}
	for _, e := range slice.Endpoints {
		to = append(to, e.Addr)
	}
	ports := map[uint16]bool{}
	for _, port := range s.Ports {
		ports[port.Port], ports[port.NodePort] = true, true
	}
	for _, port := range slice.Ports {
		ports[port.Port] = true
	}
	for line := range strings.SplitSeq(p.Entries, "\n") {
		if p.Entries == "" {
			break
		}
		e, err := hostplan.ParseServiceEntry(line)
		if err != nil || e.String() != line {
			t.Errorf("line %q reads back as %q, %v", line, e, err)
		}
		from := !e.Kind.HasFrom() || slices.Contains(s.SourceRanges, e.From) || slices.Contains(own.Addrs, e.From.Addr())
		if !slices.Contains([]string{"TCP", "UDP", "SCTP"}, e.Protocol) || !ports[e.At.Port()] || !from ||
			!slices.Contains(at, e.At.Addr()) || e.Kind.HasTo() && (!ports[e.To.Port()] || !slices.Contains(to, e.To.Addr())) {
			t.Errorf("entry %q is about what nothing has", line)
		}
	}
}
