package local

import (
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/reflector"
)

// A pod that came and went is known to have gone, also beside a new one of its
// name.
func TestLocalPodGone(t *testing.T) {
	l, client := startLocal(t)
	pods := client.CoreV1().Pods("default")
	await := func(what string, accept func(p Pod, ok bool) bool) {
		t.Helper()
		if err := l.WaitPod(t.Context(), "default", "web", accept); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if p, ok := l.Pod("default", "web"); ok || p != (Pod{}) {
		t.Errorf("a pod that never was: %+v", p)
	}
	if _, err := pods.Create(t.Context(), localPod("web", "u1", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("there", func(p Pod, ok bool) bool { return ok && p.UID == "u1" && p.Before == "" })
	if err := pods.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("gone", func(p Pod, ok bool) bool { return !ok && p == Pod{Before: "u1"} })
	if _, err := pods.Create(t.Context(), localPod("web", "u2", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("there again", func(p Pod, ok bool) bool { return ok && p.UID == "u2" && p.Before == "u1" })
}

// A pod may be known to be gone by another of its name, or by a list without it. It is remembered for a while.
func TestLocalGone(t *testing.T) {
	w, err := New(&client.Clients{Kube: fake.NewClientset()}, kinds.All(), "n1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	put := func(gone []cluster.Name, came ...*corev1.Pod) {
		t.Helper()
		var items []reflector.Item
		for _, p := range came {
			value, err := w.pods.Decode(p)
			if err != nil {
				t.Fatal(err)
			}
			items = append(items, reflector.Item{Name: kinds.NameOf(p), Value: value})
		}
		if err := w.pods.Put(items, gone, len(gone) > 0); err != nil {
			t.Fatal(err)
		}
	}
	web, db := cluster.Name{Namespace: "default", Name: "web"}, cluster.Name{Namespace: "default", Name: "db"}
	put(nil, localPod("web", "u1", nil), localPod("db", "u3", nil))
	woken := w.podEvents.next(web)
	put(nil, localPod("web", "u1", nil))
	select {
	case <-woken:
		t.Error("a pod that did not change wakes those who wait for it")
	default:
	}
	if got := w.podsGone.uid(web); got != "" {
		t.Errorf("gone: %q, want none", got)
	}
	put(nil, localPod("web", "u2", nil))
	<-woken
	woken = w.podEvents.next(db)
	put([]cluster.Name{db}, localPod("web", "u2", nil))
	<-woken
	if web, db := w.podsGone.uid(web), w.podsGone.uid(db); web != "u1" || db != "u3" {
		t.Errorf("gone: %q and %q, want u1 and u3", web, db)
	}
	w.podsGone.last[web] = gonePod{"u1", time.Now().Add(-goneFor - time.Second)}
	put(nil, localPod("x", "u4", nil))
	put([]cluster.Name{{Namespace: "default", Name: "x"}})
	if got := w.podsGone.uid(web); got != "" || len(w.podsGone.last) != 2 {
		t.Errorf("after a long time: %q, %v", got, w.podsGone.last)
	}
}
