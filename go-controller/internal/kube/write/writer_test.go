package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

const deadline = 20 * time.Second

// api is an API server's side of patches and Events: answer says what becomes
// of a patch; what was taken is kept by path.
type api struct {
	mu     sync.Mutex
	taken  map[string][]string // bodies of patches that were taken
	tries  map[string]int
	events []corev1.Event
	answer func(path string, try int, r *http.Request) (code int, body string)
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodPatch {
		a.mu.Lock()
		a.events = append(a.events, corev1.Event{Message: string(body)})
		a.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"kind":"Event","apiVersion":"v1","metadata":{"name":"e"}}`)
		return
	}
	a.mu.Lock()
	a.tries[r.URL.Path]++
	try := a.tries[r.URL.Path]
	a.mu.Unlock()
	code, text := a.answer(r.URL.Path, try, r)
	if code == http.StatusOK {
		a.mu.Lock()
		a.taken[r.URL.Path] = append(a.taken[r.URL.Path], string(body))
		a.mu.Unlock()
		text = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x"}}`
	}
	w.WriteHeader(code)
	fmt.Fprint(w, text)
}

func (a *api) count(path string) (tries, taken int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tries[path], len(a.taken[path])
}

func failure(code int, reason metav1.StatusReason, causes ...metav1.StatusCause) (int, string) {
	b, _ := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
		Code: int32(code), Reason: reason,
		Message: "no", Details: &metav1.StatusDetails{Causes: causes}})
	return code, string(b)
}

// newWriter runs a Writer on an API server; stop ends it and waits.
func newWriter(t *testing.T, a *api) (w *Writer, m *metrics.Master, stop func()) {
	t.Helper()
	a.taken, a.tries = map[string][]string{}, map[string]int{}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	clients, err := client.New(config.Kubernetes{APIServer: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	m = metrics.NewMaster(prometheus.NewRegistry())
	w = New(clients, kinds.All(), "test", m, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { defer wg.Done(); w.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return w, m, stop
}

func podPath(ns, name string) string { return "/api/v1/namespaces/" + ns + "/pods/" + name + "/status" }

func podPatch(ns, name, value string) allocate.Patch {
	return allocate.Patch{Ref: cluster.Ref{Kind: cluster.KindPod, Name: cluster.Name{Namespace: ns, Name: name}}, UID: "u",
		Annotations: map[string]string{annotation.PodNetworks: value}}
}

func ok(string, int, *http.Request) (int, string) { return http.StatusOK, "" }

func TestPatchBodies(t *testing.T) {
	a := &api{answer: ok}
	w, _, _ := newWriter(t, a)
	w.Patch(podPatch("ns", "p", `{"a":1}`))
	bare := podPatch("ns", "bare", "v")
	bare.Found.Bare = true
	w.Patch(bare)
	w.Patch(allocate.Patch{Ref: cluster.Ref{Kind: cluster.KindNode, Name: cluster.Name{Name: "n"}},
		Found:       cluster.NewFound(map[string]string{"k": "was", "old": "o", "x": "y"}, "k", "old"),
		Annotations: map[string]string{"k": "v"}, Remove: []string{"old", "never"}})
	for path, want := range map[string]string{
		podPath("ns", "p"): `[{"op":"test","path":"/metadata/uid","value":"u"},` +
			`{"op":"test","path":"/metadata/annotations/k8s.ovn.org~1pod-networks","value":null},` +
			`{"op":"add","path":"/metadata/annotations/k8s.ovn.org~1pod-networks","value":"{\"a\":1}"}]`,
		podPath("ns", "bare"): `[{"op":"test","path":"/metadata/uid","value":"u"},` +
			`{"op":"test","path":"/metadata/annotations","value":null},` +
			`{"op":"add","path":"/metadata/annotations","value":{"k8s.ovn.org/pod-networks":"v"}}]`,
		"/api/v1/nodes/n": `[{"op":"test","path":"/metadata/annotations/k","value":"was"},` +
			`{"op":"test","path":"/metadata/annotations/old","value":"o"},` +
			`{"op":"add","path":"/metadata/annotations/k","value":"v"},` +
			`{"op":"remove","path":"/metadata/annotations/old","value":null}]`,
	} {
		testkit.Eventually(t, path, func() string {
			a.mu.Lock()
			defer a.mu.Unlock()
			if got := strings.Join(a.taken[path], " "); got != want {
				return fmt.Sprintf("got %s, want %s", got, want)
			}
			return ""
		})
	}
}

// Objects that a webhook holds up, more of them than there are places, hold up
// nobody else, and are written in the end.
func TestSlowPatchesHoldUpNobodyElse(t *testing.T) {
	release := make(chan struct{})
	a := &api{answer: func(path string, _ int, r *http.Request) (int, string) {
		if strings.Contains(path, "/slow/") {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		return http.StatusOK, ""
	}}
	w, m, _ := newWriter(t, a)
	const many = 3 * firstPlaces
	for i := range many {
		w.Patch(podPatch("slow", fmt.Sprint(i), "x"))
	}
	for i := range many {
		w.Patch(podPatch("fast", fmt.Sprint(i), "x"))
	}
	written := func(want int) func() string {
		return func() string {
			if got := testutil.ToFloat64(m.Patches.WithLabelValues("Pod", "ok")); got != float64(want) {
				return fmt.Sprintf("%v are written, want %d", got, want)
			}
			return ""
		}
	}
	testkit.Eventually(t, "the others", written(many))
	for i := range many {
		if _, taken := a.count(podPath("fast", fmt.Sprint(i))); taken != 1 {
			t.Errorf("fast/%d was written %d times, want once", i, taken)
		}
	}
	close(release)
	testkit.Eventually(t, "all", written(2*many))
	if n := w.slow.Load(); n != 0 {
		testkit.Eventually(t, "slow attempts", func() string {
			if w.slow.Load() != 0 {
				return fmt.Sprint(w.slow.Load(), " are still counted")
			}
			return ""
		})
	}
}

// What fails is tried until it works, as often as it takes; what is gone is
// dropped.
func TestFailingPatches(t *testing.T) {
	other := metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "metadata.annotations",
		Message: "a webhook's opinion"}
	until := func(times int, code int, reason metav1.StatusReason, causes ...metav1.StatusCause) func(string, int,
		*http.Request) (int, string) {
		return func(path string, try int, _ *http.Request) (int, string) {
			if try <= times && strings.Contains(path, "/bad/") {
				return failure(code, reason, causes...)
			}
			return http.StatusOK, ""
		}
	}
	const always = 1000
	for what, c := range map[string]struct {
		answer       func(string, int, *http.Request) (int, string)
		tries, taken int
		result       string
	}{
		"a webhook refuses six times": {until(6, 500, metav1.StatusReasonInternalError), 7, 1, "ok"},
		"six conflicts":               {until(6, 409, metav1.StatusReasonConflict), 7, 1, "ok"},
		"invalid for a while":         {until(3, 422, metav1.StatusReasonInvalid, other), 4, 1, "ok"},
		"forbidden for a while":       {until(3, 403, metav1.StatusReasonForbidden), 4, 1, "ok"},
		"gone":                        {until(always, 404, metav1.StatusReasonNotFound), 1, 0, "dropped"},
		"not as it was found":         {until(always, 422, metav1.StatusReasonInvalid), 1, 0, "overtaken"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a := &api{answer: c.answer}
			w, m, stop := newWriter(t, a)
			w.Patch(podPatch("bad", "p", "x"))
			w.Patch(podPatch("good", "p", "x"))
			testkit.Eventually(t, "the result", func() string {
				_, good := a.count(podPath("good", "p"))
				tries, taken := a.count(podPath("bad", "p"))
				if good != 1 || tries != c.tries || taken != c.taken {
					return fmt.Sprintf("good %d times; %d tries, %d taken, want %d and %d", good, tries, taken, c.tries, c.taken)
				}
				return ""
			})
			stop()
			want := map[string]int{c.result: 1}
			want["ok"]++
			want["retried"] = c.tries - 1
			for result, n := range want {
				if got := testutil.ToFloat64(m.Patches.WithLabelValues("Pod", result)); got != float64(n) {
					t.Errorf("%v counted as %s, want %d", got, result, n)
				}
			}
			if len(w.pending)+len(w.busy) != 0 {
				t.Errorf("left: %v %v", w.pending, w.busy)
			}
		})
	}
}

// The last patch of an object wins, also while an earlier one is under way or
// fails.
func TestTheLastPatchWins(t *testing.T) {
	var mu sync.Mutex
	fail, hold := true, make(chan struct{})
	a := &api{answer: func(_ string, try int, _ *http.Request) (int, string) {
		if try == 1 {
			<-hold
			return failure(500, metav1.StatusReasonInternalError)
		}
		mu.Lock()
		defer mu.Unlock()
		if fail {
			return failure(500, metav1.StatusReasonInternalError)
		}
		return http.StatusOK, ""
	}}
	w, _, _ := newWriter(t, a)
	path := podPath("ns", "p")
	w.Patch(podPatch("ns", "p", "first"))
	testkit.Eventually(t, "the first attempt", func() string {
		if tries, _ := a.count(path); tries != 1 {
			return fmt.Sprint(tries)
		}
		return ""
	})
	w.Patch(podPatch("ns", "p", "second"))
	close(hold)
	testkit.Eventually(t, "a second attempt", func() string {
		if tries, _ := a.count(path); tries < 2 {
			return fmt.Sprint(tries)
		}
		return ""
	})
	w.Patch(podPatch("ns", "p", "third"))
	mu.Lock()
	fail = false
	mu.Unlock()
	testkit.Eventually(t, "the last", func() string {
		a.mu.Lock()
		defer a.mu.Unlock()
		got := a.taken[path]
		if len(got) == 0 || !strings.Contains(got[len(got)-1], "third") {
			return fmt.Sprint(got)
		}
		for _, body := range got {
			if strings.Contains(body, "first") {
				t.Errorf("what was overtaken was written: %v", got)
			}
		}
		return ""
	})
}

// At the end what is queued is sent, and an API server that does not answer
// does not keep the program from ending.
func TestWriterEnds(t *testing.T) {
	const queued = 2 * firstPlaces // few, for drainTimeout passes on a busy machine, too
	a := &api{answer: ok}
	w, m, stop := newWriter(t, a)
	for i := range queued {
		w.Patch(podPatch("ns", fmt.Sprint(i), "x"))
	}
	stop()
	if got := testutil.ToFloat64(m.Patches.WithLabelValues("Pod", "ok")); got != queued {
		t.Errorf("%v patches were sent, want %d", got, queued)
	}
	a = &api{answer: func(_ string, _ int, r *http.Request) (int, string) {
		<-r.Context().Done()
		return http.StatusOK, ""
	}}
	w, _, stop = newWriter(t, a)
	for i := range 500 {
		w.Patch(podPatch("ns", fmt.Sprint(i), "x"))
	}
	done := make(chan struct{})
	go func() { stop(); close(done) }()
	select {
	case <-done:
	case <-time.After(deadline):
		t.Error("an API server that does not answer keeps the writer from ending")
	}
}

// An Event's message is cut to what the API server takes.
func TestLongMessages(t *testing.T) {
	a := &api{answer: ok}
	w, _, _ := newWriter(t, a)
	w.Report(cluster.Problem{Ref: cluster.Ref{Kind: cluster.KindNode, Name: cluster.Name{Name: "n"}}, UID: "u",
		Reason: "Bad", Message: strings.Repeat("é", 2000)})
	testkit.Eventually(t, "the event", func() string {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.events) != 1 {
			return fmt.Sprint(len(a.events), " events")
		}
		if n := strings.Count(a.events[0].Message, "é"); n != 510 || !strings.Contains(a.events[0].Message, "é...") {
			t.Errorf("the message has %d letters, want 510 and ...", n)
		}
		return ""
	})
}

// A master that does not lead any more writes nothing, and keeps nothing for later.
func TestOnlyALeaderPatches(t *testing.T) {
	a := &api{answer: ok}
	w, m, stop := newWriter(t, a)
	w.While(func() error { return errors.New("the lease was lost") })
	w.Patch(podPatch("ns", "p", "x"))
	testkit.Eventually(t, "the patch is dropped", func() string {
		if got := testutil.ToFloat64(m.Patches.WithLabelValues("Pod", "dropped")); got != 1 {
			return fmt.Sprintf("%v are", got)
		}
		return ""
	})
	stop()
	if tries, _ := a.count(podPath("ns", "p")); tries != 0 || len(w.pending) != 0 {
		t.Errorf("%d attempts, want none; left: %v", tries, w.pending)
	}
}

// BenchmarkPatchBody makes the patch of a new pod.
func BenchmarkPatchBody(b *testing.B) {
	p := podPatch("ns", "p", `{"default":{"ip_addresses":["10.244.0.3/24","fd01::3/64"]}}`)
	p.Annotations[annotation.PodClassic] = `{"gateway_ip":"10.244.0.1","ip_address":"10.244.0.3/24"}`
	for _, p.Found.Bare = range []bool{true, false} {
		b.Run(fmt.Sprintf("bare=%t", p.Found.Bare), func(b *testing.B) {
			for b.Loop() {
				if _, err := patchBody(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
