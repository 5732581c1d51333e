package remote

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func attachedPod(name, node, annotation string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		Annotations: map[string]string{"k8s.ovn.org/pod-networks": annotation}}, Spec: corev1.PodSpec{NodeName: node}}
}

// The first packet is addressed to the neighbour on the same switch, and to the router for everything else.
func TestMicroflow(t *testing.T) {
	host := attachedPod("host", "n1", "")
	host.Spec.HostNetwork = true
	s := session(host, attachedPod("new", "n1", ""),
		attachedPod("a", "n1", `{"default":{"ip_addresses":["10.0.1.3/24","fd01::3/64"],"mac_address":"0a:58:0a:00:01:03",`+
			`"gateway_ips":["10.0.1.1","fd01::1"]}}`),
		attachedPod("b", "n1",
			`{"default":{"ip_addresses":["10.0.1.4/24"],"mac_address":"0a:58:0a:00:01:04","gateway_ips":["10.0.1.1"]}}`),
		attachedPod("c", "n2",
			`{"default":{"ip_addresses":["10.0.2.3/24"],"mac_address":"0a:58:0a:00:02:03","gateway_ips":["10.0.2.1"]}}`),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.7"}}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "headless"},
			Spec: corev1.ServiceSpec{ClusterIPs: []string{"None"}}})
	a, err := s.Attached(t.Context(), "default", "a")
	if err != nil || a.Port != "default_a" || a.Switch != "n1" {
		t.Fatalf("attached: %+v, %v", a, err)
	}
	const from = `inport=="default_a" && eth.src==0a:58:0a:00:01:03 && `
	const router = from + "eth.dst==0a:58:0a:00:01:01 && "
	for _, c := range []struct{ to, port, protocol, want string }{
		{"b", "80", "tcp", from + "eth.dst==0a:58:0a:00:01:04 && " +
			"ip4.src==10.0.1.3 && ip4.dst==10.0.1.4 && " +
			"ip.ttl==64 && tcp && tcp.src==50000 && tcp.dst==80"},
		{"default/c", "", "", router + "ip4.src==10.0.1.3 && ip4.dst==10.0.2.3 && ip.ttl==64 && icmp4.type==8"},
		{"svc/web", "53", "udp", router + "ip4.src==10.0.1.3 && ip4.dst==10.96.0.7 && " +
			"ip.ttl==64 && udp && udp.src==50000 && udp.dst==53"},
		{"[2001:db8::1]", "443", "tcp", router + "ip6.src==fd01::3 && ip6.dst==2001:db8::1 && " +
			"ip.ttl==64 && tcp && tcp.src==50000 && tcp.dst==443"},
		{"svc/headless", "80", "tcp", "error: service default/headless has no ClusterIP"},
		{"host", "80", "tcp", "error: pod default/host uses its node's network"},
		{"new", "80", "tcp", "error: pod default/new has no annotation"},
		{"nobody", "80", "tcp", `error: reading the pod default/nobody`},
		{"b", "http", "tcp", `error: port "http": want a number`},
	} {
		got, err := s.Microflow(t.Context(), a, c.to, c.port, c.protocol)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %s\nwant %s", c.to, got, c.want)
		}
	}
}
