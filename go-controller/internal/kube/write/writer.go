package write

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
)

const (
	drainTimeout = 3 * time.Second // for what is queued when Run is told to end

	// Attempts at a time. First attempts and later ones do not compete. An attempt that takes longer than slowAfter gives
	// its place to the next, so that an object that a webhook delays delays no other. There are at most maxSlow such
	// attempts. Each takes a connection. client-go keeps 25 idle ones: enough for all first attempts at a time.
	firstPlaces = 24
	laterPlaces = 16
	slowAfter   = 500 * time.Millisecond
	maxSlow     = 1000
)

// aspect is what of an object a patch is about. Patches of two aspects are independent of each other.
type aspect int

const (
	annotations aspect = iota
	statuses
	taints
	finalizers
)

// subject is what patches are queued by.
type subject struct {
	cluster.Ref
	aspect aspect
}

func subjectOf(p allocate.Patch) subject {
	switch {
	case len(p.Taints) > 0:
		return subject{p.Ref, taints}
	case p.Finalizers != nil:
		return subject{p.Ref, finalizers}
	case p.Status != nil || p.Claim != nil:
		return subject{p.Ref, statuses}
	}
	return subject{p.Ref, annotations}
}

type queue = workqueue.TypedDelayingInterface[subject]

// Writer writes annotations, conditions, finalizers and Events, and removes taints. Patches of one aspect of an object
// are sent one after the other, and in every annotation the last one given wins. A patch that fails is tried again with
// backoff until it succeeds, the object is gone, or the object is not as it was when the patch was made.
type Writer struct {
	clients  *client.Clients
	kinds    []kinds.Kind
	log      *slog.Logger
	metrics  *metrics.Master
	first    queue // objects with a new patch
	later    queue // objects whose last attempt failed
	retries  *retries
	events   record.EventBroadcaster
	recorder record.EventRecorder
	slow     atomic.Int64 // attempts under way that took longer than slowAfter
	leads    func() error // why nothing may be written; nil while it may

	mu      sync.Mutex
	pending map[subject]allocate.Patch
	busy    map[subject]bool // an attempt is under way
}

// New is a Writer; it sends no patch before Run. It starts goroutines that end with Run.
func New(c *client.Clients, rows []kinds.Kind, component string, m *metrics.Master, log *slog.Logger) *Writer {
	newQueue := workqueue.NewTypedDelayingQueue[subject]
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.Kube.CoreV1().Events("")})
	return &Writer{
		clients: c, kinds: rows, log: log, metrics: m,
		first: newQueue(), later: newQueue(), retries: &retries{failed: map[subject]failures{}},
		pending: map[subject]allocate.Patch{}, busy: map[subject]bool{},
		leads:  func() error { return nil },
		events: events, recorder: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}),
	}
}

// While lets the Writer patch only while leads returns nil. Patches that it is given otherwise are dropped.
func (w *Writer) While(leads func() error) { w.leads = leads }

// Run sends what it is given until ctx ends, and then what is already queued, for at most drainTimeout.
func (w *Writer) Run(ctx context.Context) {
	defer w.events.Shutdown()
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var serving sync.WaitGroup
	serving.Go(func() { w.serve(sending, w.first, make(chan struct{}, firstPlaces)) })
	serving.Go(func() { w.serve(sending, w.later, make(chan struct{}, laterPlaces)) })
	<-ctx.Done()
	w.first.ShutDown()
	w.later.ShutDown()
	defer time.AfterFunc(drainTimeout, cancel).Stop()
	serving.Wait()
}

// Patch queues a patch. Other annotations of a patch of the object that is still queued are sent with it. A patch of a
// kind that nobody patches is refused.
func (w *Writer) Patch(p allocate.Patch) {
	if _, err := patched(w.kinds, p); err != nil {
		w.metrics.Patches.WithLabelValues(string(p.Ref.Kind), "refused").Inc()
		w.log.Error("an object is not patched", "object", p.Ref.String(), "error", err)
		return
	}
	s := subjectOf(p)
	w.mu.Lock()
	if queued, ok := w.pending[s]; ok && queued.UID == p.UID && s.aspect == annotations {
		p = merged(queued, p)
	}
	w.pending[s] = p
	w.mu.Unlock()
	w.first.Add(s)
}

// merged is a patch of annotations and a later one of the same object as one.
func merged(p, later allocate.Patch) allocate.Patch {
	out := allocate.Patch{
		Ref: p.Ref, UID: p.UID, Found: later.Found,
		Annotations: maps.Clone(p.Annotations), Remove: slices.Clone(later.Remove),
	}
	maps.DeleteFunc(out.Annotations, func(k, _ string) bool { return slices.Contains(later.Remove, k) })
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	maps.Copy(out.Annotations, later.Annotations)
	for _, k := range p.Remove {
		if _, written := later.Annotations[k]; !written && !slices.Contains(out.Remove, k) {
			out.Remove = append(out.Remove, k)
		}
	}
	return out
}

// Report makes a Kubernetes Event of a problem.
func (w *Writer) Report(p cluster.Problem) {
	k, ok := kinds.Find(w.kinds, p.Ref.Kind)
	if !ok {
		w.metrics.Problems.WithLabelValues("UnknownKind").Inc()
		w.log.Error("a problem is reported in no Event: its kind has no row", "object", p.Ref.String(), "error", p)
		return
	}
	w.recorder.Event(&corev1.ObjectReference{
		APIVersion: k.APIVersion(), Kind: string(p.Ref.Kind),
		Namespace: p.Ref.Name.Namespace, Name: p.Ref.Name.Name, UID: types.UID(p.UID),
	}, corev1.EventTypeWarning, p.Reason, kinds.Brief(p.Message))
}

// serve makes attempts for the objects in a queue until it is shut down and empty, as many at a time as there are
// places.
func (w *Writer) serve(ctx context.Context, q queue, places chan struct{}) {
	var attempts sync.WaitGroup
	defer attempts.Wait()
	for {
		s, down := q.Get()
		if down {
			return
		}
		places <- struct{}{}
		attempts.Go(func() {
			defer q.Done(s)
			leave := sync.OnceFunc(func() { <-places })
			defer leave()
			timer := time.AfterFunc(slowAfter, func() {
				if w.slow.Add(1) <= maxSlow {
					leave()
				}
			})
			w.attempt(ctx, s)
			if !timer.Stop() {
				w.slow.Add(-1)
			}
		})
	}
}

// attempt sends the last patch of a subject, unless an attempt is under way. That one then queues what came after it.
func (w *Writer) attempt(ctx context.Context, s subject) {
	w.mu.Lock()
	p, ok := w.pending[s]
	if !ok || w.busy[s] {
		w.mu.Unlock()
		return
	}
	delete(w.pending, s)
	w.busy[s] = true
	w.mu.Unlock()
	notLeader := w.leads()
	err := notLeader
	if err == nil {
		err = Patch(ctx, w.clients, w.kinds, p)
	}
	late := overtaken(w.kinds, p, err)
	again := err != nil && notLeader == nil && !late && !apierrors.IsNotFound(err)
	w.mu.Lock()
	delete(w.busy, s)
	_, newer := w.pending[s]
	if again && !newer {
		w.pending[s] = p
	}
	w.mu.Unlock()
	kind := string(s.Kind)
	switch {
	case err == nil:
		w.metrics.Patches.WithLabelValues(kind, "ok").Inc()
		w.retries.forget(s)
	case late:
		// The object has changed since. The event of that leads to another patch, if any is needed.
		w.metrics.Patches.WithLabelValues(kind, "overtaken").Inc()
		w.retries.forget(s)
	case !again:
		w.metrics.Patches.WithLabelValues(kind, "dropped").Inc()
		w.retries.forget(s)
	default:
		w.metrics.Patches.WithLabelValues(kind, "retried").Inc()
		pause, n := w.retries.pause(s, err)
		// The 1st, 2nd, 4th, 8th attempt and so on: while the API server is away, thousands of objects fail, each of them
		// every few seconds.
		if n&(n-1) == 0 && ctx.Err() == nil {
			w.log.Warn("patching an object", "object", s.String(), "error", err, "attempt", n)
		}
		if !newer {
			w.later.AddAfter(s, pause)
		}
	}
	if newer {
		w.first.Add(s)
	}
}
