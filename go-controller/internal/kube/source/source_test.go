package source

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/reflector"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// lists is an API server's side of list and watch: pods are as given, the rest
// is empty. A watch of pods ends when told to, as if it were too old.
type lists struct {
	mu     sync.Mutex
	pods   []string
	lie    bool // lists of pods come back empty, unless they are asked for again
	lies   int
	expire chan struct{}
}

func (l *lists) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	pods := strings.HasSuffix(r.URL.Path, "/pods")
	switch {
	case q.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid))
	case q.Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		if !pods {
			<-r.Context().Done()
			return
		}
		select {
		case <-l.expire:
			expired := runtime.RawExtension{Object: status(http.StatusGone, metav1.StatusReasonExpired)}
			_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: "ERROR", Object: expired})
		case <-r.Context().Done():
		}
	default:
		l.list(w, pods, q.Get("limit") == "1")
	}
}

func status(code int32, reason metav1.StatusReason) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: code, Reason: reason,
		Message: "no",
	}
}

func (l *lists) list(w http.ResponseWriter, pods, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	if pods && l.lie && !again {
		l.lies++
		pods = false
	}
	if pods {
		for _, p := range l.pods {
			list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: p, UID: "u",
				ResourceVersion: "1"}})
		}
	}
	_ = json.NewEncoder(w).Encode(list)
}

func (l *lists) set(lie bool, pods ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lie, l.pods = lie, pods
}

// seen is what a source handed out so far.
type seen struct {
	source *Source
	pods   map[string]bool
	gone   int
}

func (s *seen) take() {
	events, _ := s.source.Take()
	for _, e := range events {
		if e.New == nil {
			s.gone++
			delete(s.pods, e.Ref.Name.Name)
		} else {
			s.pods[e.Ref.Name.Name] = true
		}
	}
}

// watching has a source watch an API server until the test ends.
func watching(t *testing.T, l *lists) *seen {
	t.Helper()
	l.expire = make(chan struct{})
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	clients, err := client.New(config.Kubernetes{APIServer: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	source := New(clients, kinds.All())
	s := &seen{source: source, pods: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { defer wg.Done(); s.source.Run(ctx) }()
	t.Cleanup(func() { cancel(); wg.Wait() })
	return s
}

func (s *seen) eventually(t *testing.T, what string, gone int, pods ...string) {
	t.Helper()
	want := fmt.Sprint(gone, pods, true)
	testkit.Eventually(t, what, func() string {
		s.take()
		if got := fmt.Sprint(s.gone, slices.Sorted(maps.Keys(s.pods)), s.source.Synced()); got != want {
			return got + ", want " + want
		}
		return ""
	})
}

func (l *lists) lied(t *testing.T, times int) {
	t.Helper()
	testkit.Eventually(t, "lies", func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.lies < times {
			return fmt.Sprintf("%d, want %d", l.lies, times)
		}
		return ""
	})
}

// A list that comes back empty is not taken for "all deleted", neither at the
// start nor later, unless a second look agrees.
func TestEmptyLists(t *testing.T) {
	t.Run("at the start", func(t *testing.T) {
		t.Parallel()
		l := &lists{pods: []string{"a", "b"}, lie: true}
		s := watching(t, l)
		l.lied(t, 2) // the second tells that the first was not believed
		if s.take(); s.source.Synced() {
			t.Error("an empty list was believed")
		}
		l.set(false, "a", "b")
		s.eventually(t, "the pods", 0, "a", "b")
	})
	t.Run("later", func(t *testing.T) {
		t.Parallel()
		l := &lists{pods: []string{"a", "b"}}
		s := watching(t, l)
		s.eventually(t, "the pods", 0, "a", "b")
		l.set(true, "a", "b")
		l.expire <- struct{}{}
		l.lied(t, 1)
		l.set(false, "b", "c")
		s.eventually(t, "what is there now", 1, "b", "c")
	})
	t.Run("in truth", func(t *testing.T) {
		t.Parallel()
		l := &lists{pods: []string{"a", "b"}}
		s := watching(t, l)
		s.eventually(t, "the pods", 0, "a", "b")
		l.set(false)
		l.expire <- struct{}{}
		s.eventually(t, "the end of all", 2)
	})
}

// Events that were not taken in between are merged, and what they hid is told.
func TestMergedEvents(t *testing.T) {
	s := New(nil, kinds.All())
	f := &feed{source: s, kind: kinds.Pod(), known: map[cluster.Name]bool{}}
	name := cluster.Name{Namespace: "d", Name: "p"}
	pod := func(node string) []reflector.Item {
		value, err := f.Decode(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u"},
			Spec: corev1.PodSpec{NodeName: node}})
		if err != nil {
			t.Fatal(err)
		}
		return []reflector.Item{{Name: name, Value: value}}
	}
	for what, c := range map[string]struct {
		feed    func() error
		between bool
		gone    bool
	}{
		"one":                  {func() error { return f.Put(pod("n1"), nil, false) }, false, false},
		"the same twice":       {func() error { return f.Put(pod("n1"), nil, false) }, false, false},
		"there and back again": {func() error { return f.Put(pod("n2"), nil, false) }, true, false},
		"gone":                 {func() error { return f.Put(nil, []cluster.Name{name}, false) }, true, true},
	} {
		if err := f.Put(pod("n1"), nil, false); err != nil {
			t.Fatal(err)
		}
		if err := c.feed(); err != nil {
			t.Fatal(err)
		}
		if what == "there and back again" {
			if err := f.Put(pod("n1"), nil, false); err != nil {
				t.Fatal(err)
			}
		}
		events, _ := s.Take()
		if len(events) != 1 || events[0].Between != c.between || (events[0].New == nil) != c.gone {
			t.Errorf("%s: %+v, want one event, between %v, gone %v", what, events, c.between, c.gone)
		}
	}
}

// A source is behind until something was heard of every kind that the master watches.
func TestBehind(t *testing.T) {
	before := New(&client.Clients{}, kinds.All())
	if err := before.Behind(); err == nil || !strings.Contains(err.Error(), "yet") {
		t.Errorf("before it runs: %v", err)
	}
	s := watching(t, &lists{}).source
	testkit.Eventually(t, "all kinds are heard of", func() string {
		if err := s.Behind(); err != nil {
			return err.Error()
		}
		return ""
	})
}
