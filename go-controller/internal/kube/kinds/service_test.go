package kinds_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

func TestDecodeService(t *testing.T) {
	name := strings.Repeat("s", 63)
	http := corev1.ServicePort{Name: "http", Port: 80}
	for what, c := range map[string]struct {
		spec     corev1.ServiceSpec
		ips      []string
		ports    []cluster.ServicePort
		problems [][2]string
	}{
		"TCP is the default": {spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1"},
			Ports: []corev1.ServicePort{http}},
			ips: []string{"10.96.0.1"}, ports: []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80}}},
		"old object without clusterIPs": {spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{http}},
			ips: []string{"10.96.0.1"}, ports: []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80}}},
		"dual stack, three protocols": {spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1",
			ClusterIPs: []string{"10.96.0.1", "fd02::1"}, Ports: []corev1.ServicePort{
				{Name: "a", Port: 53, Protocol: corev1.ProtocolUDP}, {Name: "b", Port: 53, Protocol: corev1.ProtocolTCP},
				{Name: "c", Port: 65535, Protocol: corev1.ProtocolSCTP}}},
			ips: []string{"10.96.0.1", "fd02::1"}, ports: []cluster.ServicePort{
				{Name: "a", Protocol: cluster.UDP, Port: 53}, {Name: "b", Protocol: cluster.TCP, Port: 53},
				{Name: "c", Protocol: cluster.SCTP, Port: 65535}}},
		"headless": {spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone,
			ClusterIPs: []string{corev1.ClusterIPNone}, Ports: []corev1.ServicePort{http}}},
		"headless, no port": {spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		"ExternalName": {spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName,
			ExternalName: "example.com"}},
		"ExternalName with a leftover address": {spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName,
			ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{http}}},
		"not allocated yet": {spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{http}},
			ports: []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80}}},
		"no ports": {spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1"}, ips: []string{"10.96.0.1"},
			problems: [][2]string{{"NoServicePorts", "spec.ports: no valid port, want at least one"}}},
		"bad ports": {spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1",
			Ports: []corev1.ServicePort{{Port: 0}, {Port: 65536}, {Port: -1}, {Port: 5, Protocol: "tcp"}, http}},
			ips: []string{"10.96.0.1"}, ports: []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80}},
			problems: [][2]string{{"InvalidServicePort", "port 0/TCP"}, {"InvalidServicePort", "port 65536/TCP"},
				{"InvalidServicePort", "port -1/TCP"}, {"InvalidServicePort", "port 5/tcp"}}},
		"only bad ports": {spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 0}}},
			ips:      []string{"10.96.0.1"},
			problems: [][2]string{{"InvalidServicePort", "port 0/TCP"}, {"NoServicePorts", ""}}},
		"one port number twice": {spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1",
			Ports: []corev1.ServicePort{http, {Name: "again", Port: 80}, {Name: "dns", Port: 80, Protocol: corev1.ProtocolUDP}}},
			ips: []string{"10.96.0.1"}, ports: []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80},
				{Name: "dns", Protocol: cluster.UDP, Port: 80}},
			problems: [][2]string{{"InvalidServicePort", `port 80/TCP is already port "http"`}}},
		"bad addresses": {spec: corev1.ServiceSpec{ClusterIP: "x", ClusterIPs: []string{"x", "fe80::1%eth0", "fd02::1"},
			Ports: []corev1.ServicePort{http}},
			ips: []string{"fd02::1"}, ports: []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80}},
			problems: [][2]string{{"InvalidClusterIP", `"x" is not an IP address`}, {"InvalidClusterIP", `"fe80::1%eth0"`}}},
		"mapped address": {spec: corev1.ServiceSpec{ClusterIP: "::ffff:10.96.0.1", Ports: []corev1.ServicePort{http}},
			ips: []string{"10.96.0.1"}, ports: []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80}}},
	} {
		got, problems := decode[*cluster.Service](t, &corev1.Service{ObjectMeta: meta("default", name, nil), Spec: c.spec})
		var ips []string
		for _, a := range got.ClusterIPs {
			ips = append(ips, a.String())
		}
		if got.Name.String() != "default/"+name || got.UID != "uid-"+name || !slices.Equal(ips, c.ips) ||
			!slices.Equal(got.Ports, c.ports) {
			t.Errorf("%s: %+v, want addresses %v, ports %v", what, got, c.ips, c.ports)
		}
		wantProblems(t, what, problems, c.problems...)
		for _, p := range problems {
			if p.Ref != got.Ref() || p.UID != got.UID {
				t.Errorf("%s: a problem of %s %s, want of %s %s", what, p.Ref, p.UID, got.Ref(), got.UID)
			}
		}
	}
}

// Everything that the API documents of a service and a network needs.
func TestDecodeServiceFields(t *testing.T) {
	addr := netip.MustParseAddr
	spec := func(change func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{ObjectMeta: meta("default", "web", nil),
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.1",
				Ports: []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30080, AppProtocol: ptr("http")}}}}
		change(s)
		return s
	}
	want := func(change func(*cluster.Service)) *cluster.Service {
		s := &cluster.Service{Name: cluster.Name{Namespace: "default", Name: "web"}, UID: "uid-web", Created: 1700000000,
			Type:       cluster.LoadBalancer,
			ClusterIPs: []netip.Addr{addr("10.96.0.1")},
			Ports:      []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80, NodePort: 30080}}}
		change(s)
		return s
	}
	seconds := func(n int32) *corev1.SessionAffinityConfig {
		return &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &n}}
	}
	for what, c := range map[string]struct {
		service  *corev1.Service
		want     *cluster.Service
		problems [][2]string
	}{
		"another proxy's": {spec(func(s *corev1.Service) {
			s.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "mesh"}
		}), &cluster.Service{Name: cluster.Name{Namespace: "default", Name: "web"}, UID: "uid-web", Created: 1700000000,
			Type: cluster.LoadBalancer, Proxied: true, Proxy: "mesh"}, nil},
		"plain": {spec(func(*corev1.Service) {}), want(func(*cluster.Service) {}), nil},
		"type by default": {spec(func(s *corev1.Service) { s.Spec.Type = "" }),
			want(func(s *cluster.Service) { s.Type = cluster.ClusterIP }), nil},
		"type NodePort": {spec(func(s *corev1.Service) { s.Spec.Type = "NodePort" }),
			want(func(s *cluster.Service) { s.Type = cluster.NodePort }), nil},
		"no node port": {spec(func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 0 }),
			want(func(s *cluster.Service) { s.Ports[0].NodePort = 0 }), nil},
		"not ready, too": {spec(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }),
			want(func(s *cluster.Service) { s.PublishNotReady = true }), nil},
		"policies Cluster": {spec(func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy, s.Spec.ExternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicyCluster),
				"Cluster"
		}), want(func(*cluster.Service) {}), nil},
		"health check": {spec(func(s *corev1.Service) {
			s.Annotations = map[string]string{"k8s.ovn.org/service-health-check": `{"interval":2,"failures":1}`}
		}), want(func(s *cluster.Service) {
			s.HealthCheck = annotation.HealthCheck{Interval: 2, Timeout: 20, Successes: 3, Failures: 1}
		}), nil},
		"health check, malformed": {spec(func(s *corev1.Service) {
			s.Annotations = map[string]string{"k8s.ovn.org/service-health-check": "often"}
		}), want(func(*cluster.Service) {}), [][2]string{{"InvalidServiceHealthCheck",
			`parsing k8s.ovn.org/service-health-check "often": not JSON, want such as {"interval":5,"timeout":20,` +
				`"successes":3,"failures":3}: the endpoints are not checked`}}},
		"health check and SCTP": {spec(func(s *corev1.Service) {
			s.Annotations = map[string]string{"k8s.ovn.org/service-health-check": "{}"}
			s.Spec.Ports[0].Protocol = "SCTP"
		}), want(func(s *cluster.Service) {
			s.HealthCheck = annotation.HealthCheck{Interval: 5, Timeout: 20, Successes: 3, Failures: 3}
			s.Ports[0].Protocol = cluster.SCTP
		}), [][2]string{{"InvalidServiceHealthCheck",
			"port 80/SCTP: OVN checks TCP and UDP: the endpoints of this port are not checked"}}},
		"health check without a load balancer": {spec(func(s *corev1.Service) {
			s.Annotations = map[string]string{"k8s.ovn.org/service-health-check": "{}"}
			s.Spec.Type, s.Spec.ClusterIP = corev1.ServiceTypeClusterIP, corev1.ClusterIPNone
		}), want(func(s *cluster.Service) {
			s.Type, s.Headless, s.ClusterIPs, s.Ports = cluster.ClusterIP, true, nil, nil
		}), [][2]string{{"InvalidServiceHealthCheck", "a service of clusterIP None has no load balancer"}}},
		"policies Local": {spec(func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy, s.Spec.ExternalTrafficPolicy,
				s.Spec.HealthCheckNodePort = ptr(corev1.ServiceInternalTrafficPolicyLocal), "Local", 31000
		}), want(func(s *cluster.Service) { s.InternalLocal, s.ExternalLocal, s.HealthCheckPort = true, true, 31000 }), nil},
		"health check port without Local": {spec(func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 31000 }),
			want(func(*cluster.Service) {}), nil},
		"external IPs, each once, in order": {spec(func(s *corev1.Service) {
			s.Spec.ExternalIPs = []string{"192.0.2.2", "2001:db8::1", "192.0.2.1", "192.0.2.2"}
		}),
			want(func(s *cluster.Service) {
				s.ExternalIPs = []netip.Addr{addr("192.0.2.1"), addr("192.0.2.2"), addr("2001:db8::1")}
			}), nil},
		"bad external IPs": {spec(func(s *corev1.Service) {
			s.Spec.ExternalIPs = []string{"x", "0.0.0.0", "127.0.0.1", "fe80::1", "224.0.0.1", "192.0.2.1"}
		}),
			want(func(s *cluster.Service) { s.ExternalIPs = []netip.Addr{addr("192.0.2.1")} }),
			[][2]string{{"InvalidExternalIP", `"x" is not an IP address`}, {"InvalidExternalIP", `"0.0.0.0" is unspecified`},
				{"InvalidExternalIP", `"127.0.0.1" is`}, {"InvalidExternalIP", `"fe80::1" is`},
				{"InvalidExternalIP", `"224.0.0.1" is`}}},
		"ingress": {spec(func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example.com"},
				{IP: "192.0.2.9", IPMode: ptr(corev1.LoadBalancerIPModeProxy)},
				{IP: "192.0.2.8", IPMode: ptr(corev1.LoadBalancerIPModeVIP)}, {IP: "192.0.2.7"}, {IP: "x"}}
		}), want(func(s *cluster.Service) {
			s.Ingress = []cluster.Ingress{{Addr: addr("192.0.2.7")}, {Addr: addr("192.0.2.8")},
				{Addr: addr("192.0.2.9"), Proxied: true}}
		}),
			[][2]string{{"InvalidLoadBalancerIngress", `status.loadBalancer.ingress: "x" is not an IP address`}}},
		"ingress left over of another type": {spec(func(s *corev1.Service) {
			s.Spec.Type, s.Status.LoadBalancer.Ingress, s.Spec.LoadBalancerSourceRanges = "NodePort",
				[]corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}, []string{"10.0.0.0/8"}
		}), want(func(s *cluster.Service) { s.Type = cluster.NodePort }), nil},
		"source ranges": {spec(func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{" 198.51.100.7/24", "2001:db8::/32"}
		}),
			want(func(s *cluster.Service) {
				s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8::/32")}
			}), nil},
		"a source range that can't be read lets nobody in": {spec(func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{"everybody"}
		}),
			want(func(s *cluster.Service) { s.SourceRanges = []netip.Prefix{{}} }),
			[][2]string{{"InvalidLoadBalancerSourceRange", `"everybody" is not a CIDR`}}},
		"no affinity": {spec(func(s *corev1.Service) {
			s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = "None",
				seconds(5)
		}), want(func(*cluster.Service) {}), nil},
		"default affinity": {spec(func(s *corev1.Service) { s.Spec.SessionAffinity = "ClientIP" }),
			want(func(s *cluster.Service) { s.AffinitySeconds = 10800 }), nil},
		"affinity": {spec(func(s *corev1.Service) {
			s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = "ClientIP", seconds(86400)
		}), want(func(s *cluster.Service) { s.AffinitySeconds = 86400 }), nil},
		"affinity too long": {spec(func(s *corev1.Service) {
			s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = "ClientIP", seconds(86401)
		}),
			want(func(s *cluster.Service) { s.AffinitySeconds = 10800 }),
			[][2]string{{"InvalidSessionAffinity", "timeoutSeconds: 86401, want 1 to 86400"}}},
		"affinity to something else": {spec(func(s *corev1.Service) { s.Spec.SessionAffinity = "Cookie" }),
			want(func(*cluster.Service) {}),
			[][2]string{{"InvalidSessionAffinity", `spec.sessionAffinity: "Cookie", want None or ClientIP`}}},
		"headless": {spec(func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ClusterIP, s.Spec.ExternalIPs = "ClusterIP", "None", []string{"192.0.2.1"}
		}),
			want(func(s *cluster.Service) {
				s.Type, s.Headless, s.ClusterIPs, s.Ports = cluster.ClusterIP, true, nil, nil
			}), nil},
		"ExternalName": {spec(func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalIPs, s.Spec.SessionAffinity = "ExternalName", []string{"x"}, "Cookie"
		}),
			want(func(s *cluster.Service) { s.Type, s.ClusterIPs, s.Ports = cluster.ExternalName, nil, nil }), nil},
	} {
		got, problems := decode[*cluster.Service](t, c.service)
		if !got.Equal(c.want) {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
		wantProblems(t, what, problems, c.problems...)
	}
}
