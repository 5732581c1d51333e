package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// localService has policy Local, and a port for its health.
func localService(healthPort int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIPs: []string{"10.96.0.10", "fd02::10"},
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, HealthCheckNodePort: healthPort,
			Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}}},
	}
}

// webSlice has an endpoint on this node and one on another; ready tells of both.
func webSlice(ready bool) *discoveryv1.EndpointSlice {
	port, here, there := int32(8080), node, "elsewhere"
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1",
			Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: &port}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.128.2.5"}, NodeName: &here, Conditions: discoveryv1.EndpointConditions{Ready: &ready}},
			{Addresses: []string{"10.128.4.5"}, NodeName: &there, Conditions: discoveryv1.EndpointConditions{Ready: &ready}},
		},
	}
}

// awaitHealth waits until health is answered so, on every address of the node.
func awaitHealth(t *testing.T, port int, status, endpoints int, healthy bool) {
	t.Helper()
	want := fmt.Sprintf(`%d map[localEndpoints:%d service:map[name:web namespace:default] serviceProxyHealthy:%v] `+
		`weight %d`,
		status, endpoints, healthy, endpoints)
	for _, host := range []string{"172.18.0.2", "127.0.0.1", "::1"} {
		testkit.Eventually(t, "health "+want, func() string {
			resp, err := http.Get("http://" + net.JoinHostPort(host, fmt.Sprint(port)) + "/")
			if err != nil {
				return err.Error()
			}
			defer resp.Body.Close()
			raw, err := io.ReadAll(resp.Body)
			if err != nil {
				return err.Error()
			}
			var body map[string]any
			if err := json.Unmarshal(raw, &body); err != nil {
				return fmt.Sprintf("%q: %v", raw, err)
			}
			if got := fmt.Sprintf("%d %v weight %s", resp.StatusCode, body,
				resp.Header.Get("X-Load-Balancing-Endpoint-Weight")); got != want {
				return "got " + got
			}
			return ""
		})
	}
}

// A service of policy Local leads from outside to this node's endpoint, and who
// asks for its health is told of it; both follow the endpoint, and the service.
func TestLocalServices(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.becomeReady(t)
	slices, services := b.client.DiscoveryV1().EndpointSlices("default"), b.client.CoreV1().Services("default")
	if _, err := services.Create(t.Context(), localService(31000), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitElementsOf(t, "inside-ports4", "tcp . 30080")
	awaitElementsOf(t, "local-ports4", "")
	awaitHealth(t, 31000, 503, 0, true)
	if _, err := slices.Create(t.Context(), webSlice(true), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitElementsOf(t, "local-ports4", "tcp . 30080 : 10.128.2.5 . 8080")
	awaitHealth(t, 31000, 200, 1, true)

	// A new agent finds all as it should be.
	b.stop()
	b.start(t)
	b.awaitReady(t)
	awaitHealth(t, 31000, 200, 1, true)
	if n := b.changes(t); n != 0 {
		t.Errorf("a restart changed %d things, want 0", n)
	}

	// Without the management port's interface nothing leads to the endpoint.
	b.vs.StopDaemon(t)
	testkit.Run(t, "ip", "link", "del", mgmtLink)
	awaitHealth(t, 31000, 503, 1, false)
	b.vs.StartDaemon(t)
	b.awaitReady(t)
	awaitHealth(t, 31000, 200, 1, true)

	if _, err := slices.Update(t.Context(), webSlice(false), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitElementsOf(t, "local-ports4", "")
	awaitHealth(t, 31000, 503, 0, true)
	if err := services.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitElementsOf(t, "inside-ports4", "")
	testkit.Eventually(t, "nobody answers for a service that is gone", func() string {
		c, err := net.Dial("tcp", "172.18.0.2:31000")
		if err != nil {
			return ""
		}
		c.Close()
		return "somebody does"
	})
}

// While this node has no endpoint, what it sends to its own node port goes to the
// node that has, as soon as that node's address is known.
func TestLocalServicesElsewhere(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.becomeReady(t)
	here, elsewhere := webSlice(true), webSlice(true)
	here.Name, here.Endpoints = "web-here", here.Endpoints[:1]
	elsewhere.Endpoints = elsewhere.Endpoints[1:]
	slices := b.client.DiscoveryV1().EndpointSlices("default")
	if _, err := slices.Create(t.Context(), elsewhere, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.CoreV1().Services("default").Create(t.Context(), localService(31000),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitElementsOf(t, "inside-ports4", "tcp . 30080")
	awaitElementsOf(t, "away-ports4", "")
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.18.0.9"}}}}
	if _, err := b.client.CoreV1().Nodes().Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const away = "tcp . 30080 . 172.18.0.2 : 172.18.0.9 . 30080"
	awaitElementsOf(t, "away-ports4", away)
	for range 2 {
		if _, err := slices.Create(t.Context(), here, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitElementsOf(t, "local-ports4", "tcp . 30080 : 10.128.2.5 . 8080")
		awaitElementsOf(t, "away-ports4", "")
		if err := slices.Delete(t.Context(), here.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitElementsOf(t, "away-ports4", away)
	}
	awaitElements(t, "tcp . 30080 : 10.96.0.10 . 80")
	b.awaitReady(t)

	// A new agent leaves that as it is until it knows the addresses, too.
	b.stop()
	other.Status.Addresses[0].Address = "172.18.0.8"
	if _, err := b.client.CoreV1().Nodes().Update(t.Context(), other, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.start(t)
	awaitElementsOf(t, "away-ports4", "tcp . 30080 . 172.18.0.2 : 172.18.0.8 . 30080")
	b.awaitReady(t)
	// The agent counts a change after it has made it.
	testkit.Eventually(t, "the restart has changed that one thing", func() string {
		if n := b.changes(t); n != 1 {
			return fmt.Sprint(n, " changes")
		}
		return ""
	})
}

// A port that somebody else has is no reason not to serve, and is taken when it
// is free.
func TestHealthPortTaken(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	taken, err := net.Listen("tcp", ":31000")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	b := newBed(t)
	b.becomeReady(t)
	if _, err := b.client.DiscoveryV1().EndpointSlices("default").Create(t.Context(), webSlice(true),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.CoreV1().Services("default").Create(t.Context(), localService(31000),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitElementsOf(t, "local-ports4", "tcp . 30080 : 10.128.2.5 . 8080")
	b.awaitUnheard(t, 1)
	b.awaitReady(t)
	taken.Close()
	awaitHealth(t, 31000, 200, 1, true)
	b.awaitUnheard(t, 0)
}

// awaitUnheard waits until the metric tells of so many ports that can't be
// listened on.
func (b *bed) awaitUnheard(t *testing.T, want float64) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%v ports are unserved", want), func() string {
		families, err := b.registry.Gather()
		if err != nil {
			return err.Error()
		}
		for _, f := range families {
			if f.GetName() == "northbound_node_health_check_node_ports_failed" {
				if got := f.GetMetric()[0].GetGauge().GetValue(); got != want {
					return fmt.Sprint(got)
				}
				return ""
			}
		}
		return "no such metric"
	})
}

// A server that has ended is made again; one that follows its service to
// another port leaves the old one; in doubt none says that it is healthy.
func TestHealthServers(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.Run(t, "ip", "addr", "add", "172.18.0.2/32", "dev", "lo")
	h := newHealthChecks(slog.New(slog.DiscardHandler), prometheus.NewGauge(prometheus.GaugeOpts{Name: "unserved"}))
	defer h.close()
	checks := []serviceport.Check{{Port: 31000, Service: cluster.Name{Namespace: "default", Name: "web"}, Endpoints: 2}}
	h.set(checks, true)
	awaitHealth(t, 31000, 200, 2, true)
	h.doubt()
	awaitHealth(t, 31000, 503, 2, false)

	ended := h.servers[31000]
	if err := ended.listener.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the server has ended", func() string {
		if !ended.ended.Load() {
			return "not yet"
		}
		return ""
	})
	taken, err := net.Listen("tcp", ":31000")
	if err != nil {
		t.Fatal(err)
	}
	h.set(checks, true)
	if len(h.failed) != 1 {
		t.Errorf("failed %v, want the port that somebody else has", h.failed)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	h.set(checks, true)
	awaitHealth(t, 31000, 200, 2, true)

	checks[0].Port = 31001
	h.set(checks, true)
	awaitHealth(t, 31001, 200, 2, true)
	if c, err := net.Dial("tcp", "172.18.0.2:31000"); err == nil {
		c.Close()
		t.Error("the old port is still listened on")
	}
	if len(h.servers) != 1 || len(h.failed) != 0 {
		t.Errorf("servers %v, failed %v; want one", h.servers, h.failed)
	}
}

// Services change while ovsdb-server is away, for an agent that runs then and for
// one that is started then.
func TestServicesWithoutOpenVSwitch(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.becomeReady(t)
	services := b.client.CoreV1().Services("default")
	web := localService(31000)
	if _, err := b.client.DiscoveryV1().EndpointSlices("default").Create(t.Context(), webSlice(true),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.vs.StopDB(t)
	b.awaitMissing(t, "is ovsdb-server running?")
	broken := b.node(t) // of which is told, too
	broken.Annotations[annotation.NodeSubnets] = "everything"
	if _, err := b.client.CoreV1().Nodes().Update(t.Context(), broken, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.awaitMissing(t, annotation.NodeSubnets)
	b.awaitMissing(t, "is ovsdb-server running?")
	b.grantSubnets(t, "10.128.2.0/23", "fd01:0:0:1::/64")
	if _, err := services.Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitElements(t, "tcp . 30080 : 10.96.0.10 . 80")
	awaitElementsOf(t, "local-ports4", "tcp . 30080 : 10.128.2.5 . 8080")
	awaitHealth(t, 31000, 503, 1, false)

	b.stop()
	b.start(t)
	web.Spec.Ports[0].NodePort = 30081
	if _, err := services.Update(t.Context(), web, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitElements(t, "tcp . 30081 : 10.96.0.10 . 80")
	awaitElementsOf(t, "local-ports4", "tcp . 30081 : 10.128.2.5 . 8080")
	awaitHealth(t, 31000, 503, 1, false)
	b.vs.StartDB(t)
	b.awaitReady(t)
	awaitHealth(t, 31000, 200, 1, true)
}

// An agent that may not list slices any more when it starts leaves what leads to
// endpoints as it was, as long as the services are there.
func TestLocalServicesKeptWithoutRights(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.becomeReady(t)
	services, slices := b.client.CoreV1().Services("default"), b.client.DiscoveryV1().EndpointSlices("default")
	other := localService(0)
	other.Name, other.Spec.ClusterIPs, other.Spec.Ports[0].NodePort = "other", []string{"10.96.0.11"}, 30081
	slice := webSlice(true)
	slice.Name, slice.Labels = "other-1", map[string]string{discoveryv1.LabelServiceName: "other"}
	for _, s := range []*corev1.Service{localService(31000), other} {
		if _, err := services.Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*discoveryv1.EndpointSlice{webSlice(true), slice} {
		if _, err := slices.Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const web = "tcp . 30080 : 10.128.2.5 . 8080"
	awaitElementsOf(t, "local-ports4", web+",\n\t\t\t     tcp . 30081 : 10.128.2.5 . 8080")
	b.stop()
	var allowed atomic.Bool
	b.client.PrependReactor("list", "endpointslices", func(k8stesting.Action) (bool, runtime.Object, error) {
		if allowed.Load() {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", errors.New("no rights"))
	})
	b.start(t)
	b.awaitReady(t)
	if err := services.Delete(t.Context(), "other", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitElementsOf(t, "local-ports4", web)
	if _, err := slices.Update(t.Context(), webSlice(false), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	allowed.Store(true)
	awaitElementsOf(t, "local-ports4", "")
	b.awaitReady(t)
}
