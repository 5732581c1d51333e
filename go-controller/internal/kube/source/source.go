package kubeio

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Source watches everything that the cluster is made of. Objects are decoded
// as they arrive and not kept: what remains of each is its cluster value, in
// the State of whoever takes the events. Events of one object that were not
// taken in between are merged into the last.
type Source struct {
	clients *Clients
	signal  chan struct{}

	mu       sync.Mutex
	pending  map[cluster.Ref]cluster.Event
	problems []cluster.Problem
	told     map[cluster.Ref]string // problems already told, until the object changes
	waiting  int                    // kinds that have not been listed yet
}

// NewSource is a Source that watches nothing yet.
func NewSource(c *Clients) *Source {
	return &Source{clients: c, signal: make(chan struct{}, 1), pending: map[cluster.Ref]cluster.Event{}, told: map[cluster.Ref]string{}, waiting: len(watches())}
}

// watched is one kind and how to list and watch it.
type watched struct {
	kind cluster.Kind
	zero runtime.Object
	lw   func(c *Clients) *cache.ListWatch
}

func watches() []watched {
	return []watched{
		{cluster.KindNode, &corev1.Node{}, func(c *Clients) *cache.ListWatch {
			return listWatch(c.Kube.CoreV1().Nodes().List, c.Kube.CoreV1().Nodes().Watch)
		}},
		{cluster.KindNamespace, &corev1.Namespace{}, func(c *Clients) *cache.ListWatch {
			return listWatch(c.Kube.CoreV1().Namespaces().List, c.Kube.CoreV1().Namespaces().Watch)
		}},
		{cluster.KindPod, &corev1.Pod{}, func(c *Clients) *cache.ListWatch {
			return listWatch(c.Kube.CoreV1().Pods("").List, c.Kube.CoreV1().Pods("").Watch)
		}},
		{cluster.KindService, &corev1.Service{}, func(c *Clients) *cache.ListWatch {
			return listWatch(c.Kube.CoreV1().Services("").List, c.Kube.CoreV1().Services("").Watch)
		}},
		{cluster.KindEndpointSlice, &discoveryv1.EndpointSlice{}, func(c *Clients) *cache.ListWatch {
			return listWatch(c.Kube.DiscoveryV1().EndpointSlices("").List, c.Kube.DiscoveryV1().EndpointSlices("").Watch)
		}},
		{cluster.KindServiceCIDR, &networkingv1.ServiceCIDR{}, func(c *Clients) *cache.ListWatch {
			return perhaps(listWatch(c.Kube.NetworkingV1().ServiceCIDRs().List, c.Kube.NetworkingV1().ServiceCIDRs().Watch), &networkingv1.ServiceCIDRList{}, askAgain)
		}},
	}
}

func listWatch[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error), watchFn func(context.Context, metav1.ListOptions) (watch.Interface, error)) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := watchFn(ctx, o)
			if err != nil && ctx.Err() != nil {
				return watch.NewFake(), nil // the end was asked for: that is no failure to log
			}
			return w, err
		},
	}
}

// Run watches until ctx ends.
func (s *Source) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, w := range watches() {
		lw := w.lw(s.clients)
		store := &feed{source: s, kind: w.kind, known: map[cluster.Name]bool{}, some: func() (bool, error) { return some(ctx, lw) }}
		r := cache.NewReflectorWithOptions(lw, w.zero, store, cache.ReflectorOptions{Name: string(w.kind)})
		wg.Add(1)
		go func() {
			defer wg.Done()
			r.RunWithContext(ctx)
		}()
	}
	wg.Wait()
}

// some asks the API server itself, not a cache of it, whether there is any
// object of a kind.
func some(ctx context.Context, lw *cache.ListWatch) (bool, error) {
	list, err := lw.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, err
	}
	return meta.LenList(list) > 0, nil
}

// Signal delivers a value when there is something to Take. Values merge.
func (s *Source) Signal() <-chan struct{} { return s.signal }

// Synced tells whether everything that existed at the start was handed out, or
// will be by the next Take.
func (s *Source) Synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting == 0
}

// Take hands out what happened since the last call.
func (s *Source) Take() ([]cluster.Event, []cluster.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending)+len(s.problems) == 0 {
		return nil, nil
	}
	events := slices.Collect(maps.Values(s.pending))
	problems := s.problems
	s.pending, s.problems = map[cluster.Ref]cluster.Event{}, nil
	return events, problems
}

// put queues events and tells problems that are new.
func (s *Source) put(events []cluster.Event, problems []cluster.Problem, listed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var wrong map[cluster.Ref]string
	for _, p := range problems {
		if wrong == nil {
			wrong = map[cluster.Ref]string{}
		}
		wrong[p.Ref] += p.Reason + p.Message
	}
	for _, e := range events {
		if was, there := s.pending[e.Ref]; there {
			e.Between = was.Between || was.New == nil || e.New == nil || !was.New.Equal(e.New)
		}
		s.pending[e.Ref] = e
		if wrong[e.Ref] == "" {
			delete(s.told, e.Ref)
		}
	}
	for _, p := range problems {
		if s.told[p.Ref] != wrong[p.Ref] {
			s.problems = append(s.problems, p)
		}
	}
	maps.Copy(s.told, wrong)
	if listed {
		s.waiting--
	}
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// feed is where a reflector puts what it sees of one kind. It remembers only
// names, so that a new list tells which objects are gone.
type feed struct {
	source *Source
	kind   cluster.Kind
	known  map[cluster.Name]bool
	some   func() (bool, error) // whether there is any, asked again
	listed bool
}

// Add implements cache.ReflectorStore.
func (f *feed) Add(obj any) error { return f.Update(obj) }

// Update implements cache.ReflectorStore.
func (f *feed) Update(obj any) error {
	if o, problems, ok := Decode(obj); ok {
		f.known[o.Ref().Name] = true
		f.source.put([]cluster.Event{{Ref: o.Ref(), New: o}}, problems, false)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (f *feed) Delete(obj any) error {
	if m, ok := obj.(metav1.Object); ok {
		n := cluster.Name{Namespace: m.GetNamespace(), Name: m.GetName()}
		delete(f.known, n)
		f.source.put([]cluster.Event{{Ref: cluster.Ref{Kind: f.kind, Name: n}}}, nil, false)
	}
	return nil
}

// Replace implements cache.ReflectorStore: list is everything there is. A list
// that came back empty would have everything deleted, so it is believed only
// when a second look agrees; an error makes the reflector list again.
func (f *feed) Replace(list []any, _ string) error {
	if len(list) == 0 {
		switch there, err := f.some(); {
		case err != nil:
			return fmt.Errorf("looking again whether there is no %s: %w", f.kind, err)
		case there:
			return fmt.Errorf("the list of kind %s came back empty, but there are some", f.kind)
		}
	}
	now := make(map[cluster.Name]bool, len(list))
	var events []cluster.Event
	var problems []cluster.Problem
	for _, obj := range list {
		o, ps, ok := Decode(obj)
		if !ok {
			continue
		}
		now[o.Ref().Name] = true
		events = append(events, cluster.Event{Ref: o.Ref(), New: o})
		problems = append(problems, ps...)
	}
	for n := range f.known {
		if !now[n] {
			events = append(events, cluster.Event{Ref: cluster.Ref{Kind: f.kind, Name: n}})
		}
	}
	f.known = now
	first := !f.listed
	f.listed = true
	f.source.put(events, problems, first)
	return nil
}

// Resync implements cache.ReflectorStore.
func (f *feed) Resync() error { return nil }
