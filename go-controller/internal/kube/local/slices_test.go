package local

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

func endpointSlice(name string, nodeOf map[string]string) *discoveryv1.EndpointSlice {
	port := int32(8080)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: "web", "big": "label"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: &port}},
	}
	for _, a := range []string{"10.0.1.3", "10.0.1.4", "10.0.2.3"} {
		if node, ok := nodeOf[a]; ok {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, NodeName: &node,
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p"}})
		}
	}
	return s
}

// awaitEndpoints waits until the endpoints of default/web are these: "SLICE ADDRESS NODE, ...".
func awaitEndpoints(l *Watcher, want string) {
	for {
		all, _, err := l.Endpoints()
		var got []string
		for _, s := range all[cluster.Name{Namespace: "default", Name: "web"}] {
			for _, e := range s.Endpoints {
				got = append(got, s.Name.Name+" "+e.Addr.String()+" "+e.Node)
			}
		}
		if err == nil && strings.Join(got, ", ") == want {
			return
		}
		<-l.Changed()
	}
}

// Slices are not watched until they are asked for; then those of this node's
// endpoints are told, and what happens on other nodes is no change.
func TestLocalEndpoints(t *testing.T) {
	l, client := startLocal(t)
	api := client.DiscoveryV1().EndpointSlices("default")
	slice := endpointSlice("web-1", map[string]string{"10.0.1.3": "n1", "10.0.2.3": "n2"})
	for _, s := range []*discoveryv1.EndpointSlice{slice, endpointSlice("web-2", map[string]string{"10.0.2.3": "n2"})} {
		if _, err := api.Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, _, ok := l.Services(); !ok; _, _, ok = l.Services() {
		<-l.Changed()
	}
	for _, a := range client.Actions() {
		if a.GetResource().Resource == "endpointslices" && a.GetVerb() != "create" {
			t.Errorf("nobody asked for endpoints, and the agent does %s", a.GetVerb())
		}
	}
	await := func(n int) (map[cluster.Name][]*cluster.EndpointSlice, uint64) {
		t.Helper()
		for {
			got, version, err := l.Endpoints()
			if web := got[cluster.Name{Namespace: "default", Name: "web"}]; err == nil && len(got) == min(n, 1) &&
				(n == 0 || len(web) == 1 && len(web[0].Endpoints) == n) {
				return got, version
			}
			<-l.Changed()
		}
	}
	got, before := await(1)
	web := got[cluster.Name{Namespace: "default", Name: "web"}][0]
	want := &cluster.EndpointSlice{Name: web.Name, Service: "web",
		Ports: []cluster.EndpointPort{{Protocol: cluster.TCP, Port: 8080}}, Endpoints: web.Endpoints}
	if e := web.Endpoints[0]; !web.Equal(want) || e.Addr.String() != "10.0.1.3" || e.Node != "n1" || e.Pod != "" ||
		!e.Conditions.Has(cluster.Ready) {
		t.Errorf("slice %+v", web)
	}
	// one goes elsewhere, one comes here
	for _, nodes := range []map[string]string{{"10.0.1.3": "n1"}, {"10.0.1.3": "n1", "10.0.1.4": "n1"}} {
		if _, err := api.Update(t.Context(), endpointSlice("web-1", nodes), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, after := await(2); after != before+1 {
		t.Errorf("the version is %d, want one more than %d: what is on other nodes does not count", after, before)
	}
	if err := api.Delete(t.Context(), "web-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(0)
}

// Of a service that is reached locally all endpoints are told, as soon as it is
// one and as long as that, and what happens on other nodes is a change.
func TestLocalEndpointsElsewhere(t *testing.T) {
	l, client := startLocal(t)
	services, api := client.CoreV1().Services("default"), client.DiscoveryV1().EndpointSlices("default")
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{
		ClusterIPs: []string{"10.96.0.10"}, Type: corev1.ServiceTypeNodePort,
		Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}},
	}}
	here, there := endpointSlice("web-1", map[string]string{"10.0.1.3": "n1", "10.0.2.3": "n2"}),
		endpointSlice("web-2", map[string]string{"10.0.2.3": "n2"})
	dns := endpointSlice("web-3", map[string]string{"10.0.2.3": "n2"})
	dns.Labels[corev1.IsHeadlessService] = ""
	for _, s := range []*discoveryv1.EndpointSlice{here, there, dns} {
		if _, err := api.Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := services.Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await := func(want string) { awaitEndpoints(l, want) }
	await("web-1 10.0.1.3 n1")
	for _, local := range []bool{true, false, true} {
		web.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
		want := "web-1 10.0.1.3 n1"
		if local {
			web.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			want = "web-1 10.0.1.3 n1, web-1 10.0.2.3 n2, web-2 10.0.2.3 n2"
		}
		if _, err := services.Update(t.Context(), web, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		await(want)
	}
	if _, err := api.Update(t.Context(), endpointSlice("web-2", map[string]string{"10.0.1.4": "n3"}),
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("web-1 10.0.1.3 n1, web-1 10.0.2.3 n2, web-2 10.0.1.4 n3")
	if err := services.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("web-1 10.0.1.3 n1")
}

// An agent that may not watch slices is told so, until it may.
func TestLocalEndpointsNotAllowed(t *testing.T) {
	allowed := make(chan struct{})
	l, client := startLocalWith(t, func(l *Watcher) {
		c := l.clients.Kube.(*fake.Clientset)
		c.PrependReactor("list", "endpointslices", func(k8stesting.Action) (bool, runtime.Object, error) {
			select {
			case <-allowed:
				return false, nil, nil
			default:
				return true, nil, apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", errors.New("no rights"))
			}
		})
	})
	_, _, err := l.Endpoints()
	for ; !errors.Is(err, ErrNotAllowed); _, _, err = l.Endpoints() {
		if err == nil {
			t.Fatal("slices that may not be listed are known")
		}
		<-l.Changed()
	}
	close(allowed)
	for ; err != nil; _, _, err = l.Endpoints() {
		<-l.Changed()
	}
	if verbs := client.Actions(); !slices.ContainsFunc(verbs,
		func(a k8stesting.Action) bool { return a.Matches("list", "endpointslices") }) {
		t.Errorf("no list among %v", verbs)
	}
}

// Once the slices are known, a refusal removes none of them, nor does a lost watch. What went meanwhile is gone after
// the next list. Time is the test's own.
func TestLocalEndpointsRefusedLater(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil // one sleeps, by a clock that must not be a test's own
	defer func() { utilruntime.ErrorHandlers = handlers }()
	synctest.Test(t, func(t *testing.T) {
		var refuse atomic.Bool
		watches := make(chan *watch.FakeWatcher, 10)
		l, api := startLocalWith(t, func(l *Watcher) {
			c := l.clients.Kube.(*fake.Clientset)
			c.PrependWatchReactor("endpointslices", func(k8stesting.Action) (bool, watch.Interface, error) {
				w := watch.NewFake()
				watches <- w
				return true, w, nil
			})
			c.PrependReactor("list", "endpointslices", func(k8stesting.Action) (bool, runtime.Object, error) {
				return refuse.Load(), nil, apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", errors.New("booting"))
			})
		}, endpointSlice("web-1", map[string]string{"10.0.1.3": "n1"}),
			endpointSlice("web-2", map[string]string{"10.0.1.4": "n1"}))
		count := func() int {
			all, _, err := l.Endpoints()
			if err != nil {
				return -1
			}
			return len(all[cluster.Name{Namespace: "default", Name: "web"}])
		}
		await := func(n int) {
			t.Helper()
			for count() != n {
				<-l.Changed()
			}
		}
		await(2)
		refuse.Store(true)
		if err := api.Tracker().Delete(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), "default",
			"web-2"); err != nil {
			t.Fatal(err)
		}
		(<-watches).Error(&apierrors.NewResourceExpired("too old").ErrStatus)
		time.Sleep(time.Minute)
		if n := count(); n != 2 {
			t.Errorf("%d slices are known while they are refused, want 2", n)
		}
		refuse.Store(false)
		await(1)
	})
}

// A pod of this node that is in a primary network is no endpoint, while it is there.
func TestLockedEndpoints(t *testing.T) {
	l, client := startLocal(t)
	slice := endpointSlice("web-1", map[string]string{"10.0.1.3": "n1", "10.0.1.4": "n1"})
	api := client.DiscoveryV1().EndpointSlices("default")
	if _, err := api.Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await := func(want string) { awaitEndpoints(l, want) }
	await("web-1 10.0.1.3 n1, web-1 10.0.1.4 n1")
	pods := client.CoreV1().Pods("default")
	pod := func(name, address, gateways string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u-" + types.UID(name),
			Annotations: map[string]string{"k8s.ovn.org/pod-networks": `{"default":{"ip_addresses":["` + address +
				`/24"],"mac_address":"0a:58:0a:00:01:03"` + gateways + `}}`}}, Spec: corev1.PodSpec{NodeName: "n1"}}
	}
	plain, locked := pod("plain", "10.0.1.3", `,"gateway_ips":["10.0.1.1"]`), pod("locked", "10.0.1.4", "")
	for _, p := range []*corev1.Pod{plain, locked} {
		if _, err := pods.Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	await("web-1 10.0.1.3 n1")
	// Another pod has the address before the first is gone.
	if _, err := pods.Create(t.Context(), pod("next", "10.0.1.4", ""), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	podGone := func(name string) {
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	podGone("locked")
	podGone("plain")
	if _, err := pods.Create(t.Context(), pod("plain", "10.0.1.3", ""), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("")
	podGone("plain")
	await("web-1 10.0.1.3 n1")
	podGone("next")
	await("web-1 10.0.1.3 n1, web-1 10.0.1.4 n1")
}

// A pod of this node that is in a primary network is an endpoint while this node has an exit of the network. Which
// address that has is part of what is known of the endpoints.
func TestEndpointsByExits(t *testing.T) {
	l, client := startLocal(t)
	api := client.DiscoveryV1().EndpointSlices("default")
	slice := endpointSlice("web-1", map[string]string{"10.0.1.3": "n1", "10.0.1.4": "n1", "10.0.2.4": "n2"})
	if _, err := api.Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const networks = `{"default":{"ip_addresses":["10.0.1.4/24"],"mac_address":"0a:58:0a:00:01:04"},` +
		`"default.team/ovn-udn1":{"ip_addresses":["10.77.0.2/16"],"mac_address":"0a:58:0a:4d:00:02",` +
		`"gateway_ips":["10.77.0.1"]}}`
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "locked", UID: "u",
		Annotations: map[string]string{"k8s.ovn.org/pod-networks": networks}}, Spec: corev1.PodSpec{NodeName: "n1"}}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitEndpoints(l, "web-1 10.0.1.3 n1")
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, before, _ := l.Endpoints()
	for _, c := range []struct{ joined, exit, want string }{
		{`{".team/exit":{"ipv4":"10.0.1.9/24"}}`, "10.0.1.9", "web-1 10.0.1.3 n1, web-1 10.0.1.4 n1"},
		{`{".team/exit":{"ipv4":"10.0.1.8/24"}}`, "10.0.1.8", "web-1 10.0.1.3 n1, web-1 10.0.1.4 n1"},
		// The namespace has a network of the name itself.
		{`{".team/exit":{"ipv4":"10.0.1.8/24"},"default.team/exit":{"ipv4":"10.0.1.7/24"}}`, "10.0.1.7",
			"web-1 10.0.1.3 n1, web-1 10.0.1.4 n1"},
		{`{".team/exit":{"ipv6":"fd01::8/64"}}`, "invalid IP", "web-1 10.0.1.3 n1"},
		{`{"other.team/exit":{"ipv4":"10.0.1.8/24"},".team":{"ipv4":"100.66.0.2/15"}}`, "invalid IP", "web-1 10.0.1.3 n1"},
		{`{"default.team/exit":{"ipv4":"10.0.1.8/24"}}`, "10.0.1.8", "web-1 10.0.1.3 n1, web-1 10.0.1.4 n1"},
		{`wrong`, "invalid IP", "web-1 10.0.1.3 n1"},
	} {
		node.Annotations = map[string]string{"k8s.ovn.org/node-gateway-router-lrp-ifaddrs": c.joined}
		if _, err := client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		for l.Exits()[netip.MustParseAddr("10.0.1.4")].String() != c.exit {
			<-l.Changed()
		}
		awaitEndpoints(l, c.want)
		_, version, _ := l.Endpoints()
		if version == before && c.exit != "invalid IP" {
			t.Errorf("%s: the version of the endpoints stays %d", c.joined, version)
		}
		before = version
	}
}
