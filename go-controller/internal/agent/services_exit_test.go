package agent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A service of policy Local whose endpoint on this node is in a primary network leads from outside to the network's
// exit on this node, at the node port, once the Node has its address. Who asks for its health is told of the endpoint
// from then on.
func TestLocalServicesByExits(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.becomeReady(t)
	pods, nodes := b.client.CoreV1().Pods("red"), b.client.CoreV1().Nodes()
	_, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "red", Name: "a", UID: "a",
		Annotations: map[string]string{annotation.PodNetworks: `{"default":{"ip_addresses":["10.128.2.5/23"],` +
			`"mac_address":"0a:58:0a:80:02:05"},"red.own/ovn-udn1":{"ip_addresses":["10.77.0.2/16"],` +
			`"mac_address":"0a:58:0a:4d:00:02","gateway_ips":["10.77.0.1"]}}`}}, Spec: corev1.PodSpec{NodeName: node}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	services, slices := b.client.CoreV1().Services("default"), b.client.DiscoveryV1().EndpointSlices("default")
	if _, err := services.Create(t.Context(), localService(31000), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := slices.Create(t.Context(), webSlice(true), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitElementsOf(t, "inside-ports4", "tcp . 30080")
	awaitHealth(t, 31000, 503, 0, true)
	awaitElementsOf(t, "local-ports4", "")
	for _, c := range []struct {
		joined, want string
		endpoints    int
	}{
		{`{"red.own/exit":{"ipv4":"10.128.2.9/23"}}`, "tcp . 30080 : 10.128.2.9 . 30080", 1},
		{`{"red.own":{"ipv4":"100.66.0.2/15"}}`, "", 0},
	} {
		n := b.node(t)
		n.Annotations[annotation.GatewayJoinAddrs] = c.joined
		if _, err := nodes.Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitElementsOf(t, "local-ports4", c.want)
		awaitHealth(t, 31000, []int{503, 200}[c.endpoints], c.endpoints, true)
	}
}
