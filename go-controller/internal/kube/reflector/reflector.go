package reflector

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// Sink takes what a watch sees of one kind. Its methods are called one at a time.
type Sink interface {
	// Decode returns what Put needs of an object. It is called as soon as an object arrives, so that of a long list only
	// decoded values are held.
	Decode(obj kinds.Object) (any, error)
	// Put takes objects that came or changed, and the names of those that are gone. listed tells that it follows a list
	// of all objects. After an error the watch begins anew with a list.
	Put(came []Item, gone []cluster.Name, listed bool) error
	// Known are the names of the objects that came and are not gone.
	Known() iter.Seq[cluster.Name]
}

// Item is an object as the Sink has decoded it.
type Item struct {
	Name  cluster.Name
	Value any
}

// Watch is the watch of one kind.
type Watch struct {
	Kind     kinds.Kind
	Selector string // field selector of the objects to watch; "" for all
	Sink     Sink
	// Refused is called when the API server refuses the list or the watch, and with nil when it does not; nil for nobody.
	Refused func(error)
	// Heard is called with nil whenever the API server says something of the kind, a bookmark at least, and with why a
	// list or a watch fails; nil for nobody.
	Heard func(error)
	// Existed tells of an optional kind that the API server does not serve whether it was served before this program
	// started; nil when that is not known. It may wait until ctx ends.
	Existed func(ctx context.Context) bool
	Served  *Served      // tells when to look for an optional kind again; nil for after a while
	Log     *slog.Logger // for what goes wrong; nil for klog's
}

// The pause after a failed list or watch grows from firstPause to lastPause, and by up to half of that at random. So
// watches are back within 3 s after an outage of the API server, and its clients do not all come at once.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 2 * time.Second
)

func backoff() *wait.Backoff {
	return &wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.5, Steps: 10, Cap: lastPause}
}

// Run lists and watches until ctx ends.
func (w Watch) Run(ctx context.Context, c *client.Clients) {
	log := logr.ToSlogHandler(klog.Background())
	if w.Log != nil {
		log = w.Log.Handler()
	}
	var failures atomic.Uint64
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(sparseHandler{log, &failures}))
	lw := w.listWatch(c)
	s := &store{Watch: w, failures: &failures, again: func() (bool, error) { return some(ctx, lw) }}
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(s.remember(lw), c.Kube), w.Kind.New(),
		s, cache.ReflectorOptions{Name: string(w.Kind.Kind), Backoff: backoff()})
	r.RunWithContext(ctx)
}

// listWatch lists and watches what the selector accepts.
func (w Watch) listWatch(c *client.Clients) *cache.ListWatch {
	all := w.Kind.ListWatch(c)
	selected := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = w.Selector
			return all.ListWithContext(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = w.Selector
			started, err := all.WatchWithContext(ctx, o)
			if err != nil && ctx.Err() != nil {
				return watch.NewFake(), nil // the program ends: that is no failure to log
			}
			return started, err
		},
	}
	if w.Kind.Optional {
		served := w.Served
		if served == nil {
			served = &Served{}
		}
		selected = optionalListWatch(selected, w.Kind.NewList, askAgain, w.Existed, served)
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := selected.ListWithContext(ctx, o)
			w.note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			started, err := selected.WatchWithContext(ctx, o)
			if !w.Kind.Optional || o.SendInitialEvents == nil || !NotServed(err) { // else the list that follows tells
				w.note(err)
			}
			return started, err
		},
	}
}

// note reports what came of a list or a watch. Errors other than refusals tell nothing about whether the API server
// refuses.
func (w Watch) note(err error) {
	if w.Refused != nil && (err == nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || NotServed(err)) {
		w.Refused(err)
	}
	if w.Heard != nil {
		w.Heard(err)
	}
}

// some asks the API server itself, not a cache of it, whether there is any object.
func some(ctx context.Context, lw *cache.ListWatch) (bool, error) {
	list, err := lw.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, err
	}
	return meta.LenList(list) > 0, nil
}

// store passes on to the Sink what a reflector sees.
type store struct {
	Watch
	failures *atomic.Uint64       // to log, since the watch last worked
	again    func() (bool, error) // whether there is any object, asked again
	started  watch.Interface      // the last watch, nil before the first
}

// remember is lw that keeps the last watch in the store. A reflector calls both from one goroutine.
func (s *store) remember(lw *cache.ListWatch) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: lw.ListWithContextFunc,
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			started, err := lw.WatchWithContext(ctx, o)
			if err == nil {
				s.started = started
			}
			return started, err
		},
	}
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error {
	it, err := s.item(obj)
	if err != nil {
		return err
	}
	return s.Sink.Put([]Item{it}, nil, false)
}

// Transformer implements cache.TransformingStore: the reflector decodes the objects of a list that is streamed.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.item(obj) }
}

// item decodes an object, unless that is done.
func (s *store) item(obj any) (Item, error) {
	if it, ok := obj.(Item); ok {
		return it, nil
	}
	o, ok := obj.(kinds.Object)
	if !ok {
		return Item{}, s.notOfKind(obj)
	}
	value, err := s.Sink.Decode(o)
	return Item{kinds.NameOf(o), value}, err
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(obj any) error {
	m, ok := obj.(metav1.Object)
	if !ok {
		return s.notOfKind(obj)
	}
	return s.Sink.Put(nil, []cluster.Name{kinds.NameOf(m)}, false)
}

// Replace implements cache.ReflectorStore: list is everything there is. After an error the reflector lists again. It
// forgets the watch that streamed the list, without stopping it: its goroutine and its request would stay.
func (s *store) Replace(list []any, _ string) error {
	err := s.replace(list)
	if err != nil && s.started != nil {
		s.started.Stop()
	}
	return err
}

// replace has the Sink take a list. An empty list would delete everything, so a second look must agree.
func (s *store) replace(list []any) error {
	if len(list) == 0 {
		switch there, err := s.again(); {
		case err != nil:
			return fmt.Errorf("looking again whether there is no %s: %w", s.Kind.Kind, err)
		case there:
			return fmt.Errorf("the list of kind %s came back empty, but there are some", s.Kind.Kind)
		}
	}
	came, now := make([]Item, 0, len(list)), make(map[cluster.Name]bool, len(list))
	for _, obj := range list {
		it, err := s.item(obj)
		if err != nil {
			return err
		}
		came, now[it.Name] = append(came, it), true
	}
	var gone []cluster.Name
	for n := range s.Sink.Known() {
		if !now[n] {
			gone = append(gone, n)
		}
	}
	if err := s.Sink.Put(came, gone, true); err != nil {
		return err
	}
	s.failures.Store(0)
	return nil
}

// UpdateResourceVersion implements cache.ResourceVersionUpdater: it is called for bookmarks, too.
func (s *store) UpdateResourceVersion(string) {
	if s.Heard != nil {
		s.Heard(nil)
	}
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

func (s *store) notOfKind(obj any) error {
	return fmt.Errorf("the watch of kind %s delivers a %T", s.Kind.Kind, obj)
}
