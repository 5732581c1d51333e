package kubeio

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// A pod that came and went is known to have gone, also beside a new one of its
// name.
func TestLocalPodGone(t *testing.T) {
	l, client := startLocal(t)
	pods := client.CoreV1().Pods("default")
	await := func(what string, accept func(p LocalPod, ok bool) bool) {
		t.Helper()
		if err := l.WaitPod(t.Context(), "default", "web", accept); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if p, ok := l.Pod("default", "web"); ok || p != (LocalPod{}) {
		t.Errorf("a pod that never was: %+v", p)
	}
	if _, err := pods.Create(t.Context(), localPod("web", "u1", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("there", func(p LocalPod, ok bool) bool { return ok && p.UID == "u1" && p.Before == "" })
	if err := pods.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("gone", func(p LocalPod, ok bool) bool { return !ok && p == LocalPod{Before: "u1"} })
	if _, err := pods.Create(t.Context(), localPod("web", "u2", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("there again", func(p LocalPod, ok bool) bool { return ok && p.UID == "u2" && p.Before == "u1" })
}

// The handler's other ways of learning that a pod has gone, and how long it is
// remembered.
func TestLocalGone(t *testing.T) {
	g := newLocalGone()
	events := 0
	h := g.before(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { events++ }, UpdateFunc: func(any, any) { events++ }, DeleteFunc: func(any) { events++ },
	})
	h.OnAdd(localPod("web", "u1", nil), false)
	h.OnUpdate(localPod("web", "u1", nil), localPod("web", "u1", nil))
	if got := g.uid("default/web"); got != "" {
		t.Errorf("gone: %q, want none", got)
	}
	h.OnUpdate(localPod("web", "u1", nil), localPod("web", "u2", nil))
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/db", Obj: localPod("db", "u3", nil)})
	if web, db := g.uid("default/web"), g.uid("default/db"); web != "u1" || db != "u3" || events != 4 {
		t.Errorf("gone: %q and %q after %d events, want u1 and u3 after 4", web, db, events)
	}
	g.last["default/web"] = gonePod{"u1", time.Now().Add(-goneFor - time.Second)}
	h.OnDelete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", UID: "u4"}})
	if got := g.uid("default/web"); got != "" || len(g.last) != 2 {
		t.Errorf("after a long time: %q, %v", got, g.last)
	}
}
