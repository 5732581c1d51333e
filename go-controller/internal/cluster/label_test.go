package cluster_test

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

func TestLabels(t *testing.T) {
	long := strings.Repeat("v", 300)
	for want, labels := range map[string]map[string]string{
		"":                        {},
		"app=web":                 {"app": "web"},
		"app=web,tier=":           {"tier": "", "app": "web"},
		"=,a=" + long + ",b=\x00": {"b": "\x00", "a": long, "": ""},
	} {
		l := cluster.NewLabels(labels)
		if l.String() != want || !maps.Equal(maps.Collect(l.All()), labels) {
			t.Errorf("%q, want %q", l, want)
		}
		if again := cluster.NewLabels(maps.Clone(labels)); again != l {
			t.Errorf("%q: two equal sets differ", want)
		}
		for k, v := range labels {
			if got, ok := l.Get(k); !ok || got != v {
				t.Errorf("%q: label %q is %q, %v; want %q", want, k, got, ok, v)
			}
		}
		if got, ok := l.Get("none"); ok || got != "" {
			t.Errorf("%q has label none=%q", want, got)
		}
	}
	if cluster.NewLabels(nil) != (cluster.Labels{}) {
		t.Error("the empty set is not the zero value")
	}
	for _, other := range []map[string]string{{"a": "b"}, {"a": "bc"}, {"ab": ""}, {"": "ab"}, {"a": "b", "c": ""}} {
		if cluster.NewLabels(other) == cluster.NewLabels(map[string]string{"ab": "c"}) {
			t.Errorf("%v equals another set", other)
		}
	}
	for range cluster.NewLabels(map[string]string{"a": "b", "c": "d"}).All() {
		break // an iteration may end early
	}
}

// Several watches make labels at once.
func TestLabelsConcurrently(t *testing.T) {
	var all sync.WaitGroup
	sets := make([][]cluster.Labels, 8)
	for w := range sets {
		all.Go(func() {
			for i := range 1000 {
				sets[w] = append(sets[w], cluster.NewLabels(map[string]string{"app": fmt.Sprint(i % 10)}))
			}
		})
	}
	all.Wait()
	for _, set := range sets[1:] {
		for i, l := range set {
			if l != sets[0][i] {
				t.Fatalf("%v and %v differ", l, sets[0][i])
			}
		}
	}
}

// BenchmarkLabels measures what the labels of a pod cost: 10,000 pods of 100 workloads.
func BenchmarkLabels(b *testing.B) {
	const pods, workloads, most = 10_000, 100, 200
	for b.Loop() {
		before := testkit.Heap()
		kept := make([]cluster.Pod, pods)
		without := testkit.Heap()
		for i := range kept {
			w := i % workloads
			kept[i].Labels = cluster.NewLabels(map[string]string{
				"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": fmt.Sprint("shop-", w),
				"app.kubernetes.io/part-of": "store", "app.kubernetes.io/managed-by": "Helm",
				"pod-template-hash": fmt.Sprintf("7d9c5b8f%d", w), "topology.kubernetes.io/zone": "zone-a",
			})
		}
		with := testkit.Heap()
		bytes := float64(with-without)/pods + 8 // the field itself is in what a pod without labels takes
		b.ReportMetric(bytes, "bytes/pod")
		b.ReportMetric(float64(without-before)/pods, "bytes/pod-without")
		if bytes > most {
			b.Errorf("labels take %.0f bytes a pod, want at most %d", bytes, most)
		}
		runtime.KeepAlive(kept)
	}
}

// Another label is a change of the object, which alters the rows of no pod, and of no owner but the object's own.
func TestLabelsChange(t *testing.T) {
	state, translators := cluster.NewState(config.Cluster{}), all.Translators(nb.NewSchema())
	with := func(label string) []cluster.Object {
		labels := cluster.NewLabels(map[string]string{"app": label})
		return []cluster.Object{
			&cluster.Node{Name: "n", UID: "u", Labels: labels},
			&cluster.Namespace{Name: "default", UID: "u", Labels: labels},
			&cluster.Pod{Name: cluster.Name{Namespace: "default", Name: "p"}, UID: "u", Node: "n", Labels: labels},
		}
	}
	for _, o := range with("a") {
		state.Apply(cluster.Event{Ref: o.Ref(), New: o})
	}
	want := map[cluster.Kind]string{
		cluster.KindNode: "[Node n]", cluster.KindNamespace: "[Namespace default]", cluster.KindPod: "[]",
	}
	for _, o := range with("b") {
		change, ok := state.Apply(cluster.Event{Ref: o.Ref(), New: o})
		if !ok {
			t.Errorf("%s: another label is no change", o.Ref())
			continue
		}
		if got := fmt.Sprint(translators.Affected(state, change)); got != want[o.Ref().Kind] {
			t.Errorf("%s: another label affects %s, want %s", o.Ref(), got, want[o.Ref().Kind])
		}
	}
}
