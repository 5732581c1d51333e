package local

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

func localPod(name, uid string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(uid), Annotations: annotations,
			Labels: map[string]string{"big": "label"},
		},
		Spec: corev1.PodSpec{NodeName: "n1"},
	}
}

func startLocal(t *testing.T) (*Watcher, *fake.Clientset) {
	t.Helper()
	l, api := startLocalWith(t, func(*Watcher) {})
	awaitWatches(t, api, "nodes", "pods")
	return l, api
}

// awaitWatches waits until these resources are watched. A clientset like this one knows no versions: it loses what
// changes between a list and its watch.
func awaitWatches(t *testing.T, api *fake.Clientset, resources ...string) {
	t.Helper()
	for _, r := range resources {
		testkit.Eventually(t, r+" are watched", func() string {
			for _, a := range api.Actions() {
				if a.Matches("watch", r) {
					return ""
				}
			}
			return "no watch yet"
		})
	}
}

// startLocalWith has the watches set up as prepare does, and more objects there.
func startLocalWith(t *testing.T, prepare func(*Watcher), more ...runtime.Object) (*Watcher, *fake.Clientset) {
	t.Helper()
	api := fake.NewClientset(append(more, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-uid", Annotations: map[string]string{"keep": "this"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: "n1"}, {Type: corev1.NodeInternalIP, Address: "172.18.0.2"},
			{Type: corev1.NodeInternalIP, Address: "fd18::2"},
		}},
	})...)
	l, err := New(&client.Clients{Kube: api}, kinds.All(), "n1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	prepare(l)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return l, api
}

// awaitNode is the Node, once it is known.
func awaitNode(l *Watcher) Node {
	for {
		if n, ok := l.Node(); ok {
			return n
		}
		<-l.Changed()
	}
}

// awaitNoNode waits until the Node is gone.
func awaitNoNode(l *Watcher) {
	for _, ok := l.Node(); ok; _, ok = l.Node() {
		<-l.Changed()
	}
}

func TestNode(t *testing.T) {
	l, client := startLocal(t)
	n := awaitNode(l)
	if n.UID != "node-uid" || len(n.InternalIPs) != 2 || n.InternalIPs[1] != "fd18::2" {
		t.Fatalf("node %+v", n)
	}
	if err := l.PatchNode(t.Context(), "node-uid", map[string]string{"a": "1", "b": "2"}); err != nil {
		t.Fatal(err)
	}
	for n.Annotations["b"] == "" {
		<-l.Changed()
		n, _ = l.Node()
	}
	if n.Annotations["keep"] != "this" || n.Annotations["a"] != "1" || n.Annotations["b"] != "2" {
		t.Errorf("annotations %v", n.Annotations)
	}
	patches := 0
	for _, a := range client.Actions() {
		if a.GetVerb() == "patch" {
			patches++
		}
	}
	if patches != 1 {
		t.Errorf("%d patches for two annotations, want 1", patches)
	}
	// A heartbeat is no change.
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	beat := node.DeepCopy()
	beat.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if !nodeOf(node).Equal(nodeOf(beat)) {
		t.Error("a new condition of the Node counts as a change")
	}
	beat.Annotations["a"] = "9"
	if nodeOf(node).Equal(nodeOf(beat)) {
		t.Error("a new annotation of the Node does not count as a change")
	}
	if err := client.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitNoNode(l)
	if err := l.PatchNode(t.Context(), "node-uid", map[string]string{"a": "1"}); err == nil {
		t.Error("patching a Node that is gone succeeded")
	}
}

func TestLocalWaitPod(t *testing.T) {
	l, client := startLocal(t)
	got := make(chan Pod, 1)
	failed := make(chan error, 1)
	go func() {
		failed <- l.WaitPod(t.Context(), "default", "web", func(p Pod, ok bool) bool {
			if !ok || p.Network == "" {
				return false
			}
			got <- p
			return true
		})
	}()
	pods := client.CoreV1().Pods("default")
	pod := localPod("web", "u1", nil)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod.Annotations = map[string]string{annotation.PodNetworks: "net", corev1.MirrorPodAnnotationKey: "static"}
	if _, err := pods.Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	p := <-got
	if p != (Pod{Namespace: "default", Name: "web", UID: "u1", StaticUID: "static", Network: "net",
		Created: time.Time{}.Unix()}) {
		t.Errorf("pod %+v", p)
	}
	for uid, want := range map[string]bool{"": true, "u1": true, "static": true, "u2": false} {
		if p.HasUID(uid) != want {
			t.Errorf("HasUID(%q) is %v", uid, !want)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := l.WaitPod(short, "default", "none", func(Pod, bool) bool { return false }); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("waiting in vain: %v", err)
	}
	if kept, ok := l.pods.get(cluster.Name{Namespace: "default", Name: "web"}); !ok || kept != p {
		t.Errorf("the watch keeps %+v, %v; want what is read of a pod", kept, ok)
	}
}

// All services are told, with what their network depends on; another selector is
// no change.
func TestLocalServices(t *testing.T) {
	l, client := startLocal(t)
	for list, _, ok := l.Services(); !ok || len(list) != 0; list, _, ok = l.Services() {
		<-l.Changed()
	}
	services := client.CoreV1().Services("default")
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1",
			Labels: map[string]string{"big": "label", "service.kubernetes.io/x": "kept"}},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIPs: []string{"10.96.0.10"},
			Selector: map[string]string{"a": "b"},
			Ports:    []corev1.ServicePort{{Port: 80, NodePort: 30080}}},
	}
	if _, err := services.Create(t.Context(), svc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, before, _ := l.Services()
	for ; len(list) != 1; list, before, _ = l.Services() {
		<-l.Changed()
	}
	if s := list[0]; s.Name.Name != "web" || len(s.Ports) != 1 || s.Ports[0].NodePort != 30080 ||
		s.ClusterIPs[0].String() != "10.96.0.10" {
		t.Errorf("service %+v", s)
	}
	svc.Spec.Selector["c"] = "d"
	if _, err := services.Update(t.Context(), svc, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	svc.Spec.Ports[0].NodePort = 30081
	if _, err := services.Update(t.Context(), svc, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	after := before
	for ; list[0].Ports[0].NodePort != 30081; list, after, _ = l.Services() {
		<-l.Changed()
	}
	if after != before+1 {
		t.Errorf("the version is %d, want one more than %d: a selector does not count", after, before)
	}
	if kept, ok := l.services.get(list[0].Name); !ok || kept != list[0] {
		t.Errorf("the watch keeps %+v, %v; want the decoded value alone", kept, ok)
	}
	if err := services.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for len(list) > 0 {
		<-l.Changed()
		list, _, _ = l.Services()
	}
}

// A row that agents watch but have no use for, and one that is missing, are refused by name.
func TestRows(t *testing.T) {
	namespaces := kinds.Namespace()
	namespaces.WatchedBy = append(namespaces.WatchedBy, kinds.Agent)
	for want, rows := range map[string][]kinds.Kind{
		"kind Namespace: WatchedBy has the node agent, which does not know what to keep of it": {namespaces},
		"kind ServiceCIDR: there is no row of it": {kinds.Node(), kinds.Pod(),
			kinds.Service(), kinds.EndpointSlice()},
	} {
		_, err := New(&client.Clients{Kube: fake.NewClientset()}, rows, "n1", slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
