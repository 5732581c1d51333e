package write

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func nodePatch() allocate.Patch {
	return allocate.Patch{Ref: cluster.Ref{Kind: cluster.KindNode, Name: cluster.Name{Name: "n"}}, UID: "u"}
}

// The last taint is removed first, and each only where it was found.
func TestTaintsBody(t *testing.T) {
	p := nodePatch()
	p.Taints = []cluster.Taint{{At: 0, JSON: `{"key":"k","effect":"NoSchedule"}`},
		{At: 2, JSON: `{"key":"k","effect":"NoExecute"}`}}
	const want = `[{"op":"test","path":"/metadata/uid","value":"u"},` +
		`{"op":"test","path":"/spec/taints/2","value":{"key":"k","effect":"NoExecute"}},` +
		`{"op":"remove","path":"/spec/taints/2","value":null},` +
		`{"op":"test","path":"/spec/taints/0","value":{"key":"k","effect":"NoSchedule"}},` +
		`{"op":"remove","path":"/spec/taints/0","value":null}]`
	if got, err := taintsBody(p); err != nil || string(got) != want {
		t.Errorf("error %v, patch\n%s\nwant\n%s", err, got, want)
	}
}

// Three patches of one Node that wait at the same time are all written: none takes the place of another. One that is
// for an earlier Node of the name is given up.
func TestPatchesOfANode(t *testing.T) {
	const path, status = "/api/v1/nodes/n", "/api/v1/nodes/n/status"
	var gone atomic.Bool
	a := &api{answer: func(path string, _ int, r *http.Request) (int, string) {
		if path != status {
			return http.StatusOK, ""
		}
		if got := r.Header.Get("Content-Type"); got != string(types.StrategicMergePatchType) {
			t.Errorf("the condition's patch is %q, want one that the API server merges", got)
		}
		if gone.Load() {
			return failure(http.StatusConflict, metav1.StatusReasonConflict)
		}
		return http.StatusOK, ""
	}}
	w, m, _ := newWriter(t, a)
	annotations, taints, condition := nodePatch(), nodePatch(), nodePatch()
	annotations.Annotations = map[string]string{annotation.NodeSubnets: "x"}
	taints.Taints = []cluster.Taint{{JSON: `{"key":"k","effect":"NoSchedule"}`}}
	condition.Status = &allocate.Status{Conditions: []cluster.Condition{cluster.NodeAvailable()}}
	for _, p := range []allocate.Patch{annotations, taints, condition} {
		w.Patch(p)
	}
	testkit.Eventually(t, "all are written", func() string {
		a.mu.Lock()
		defer a.mu.Unlock()
		sent := strings.Join(append(a.taken[path], a.taken[status]...), "\n")
		for _, want := range []string{"node-subnets", `{"op":"remove","path":"/spec/taints/0","value":null}`,
			`"metadata":{"uid":"u"}`, `"status":"False","type":"NetworkUnavailable"`} {
			if !strings.Contains(sent, want) {
				return "got " + sent
			}
		}
		return ""
	})
	gone.Store(true)
	w.Patch(condition)
	testkit.Eventually(t, "the late one is given up", func() string {
		if got := testutil.ToFloat64(m.Patches.WithLabelValues("Node", "overtaken")); got != 1 {
			return "it is tried again"
		}
		return ""
	})
}
