package kubeio

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/northbound-net/northbound/go-controller/internal/assign"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
)

const (
	patchTimeout = 15 * time.Second // of one attempt
	drainTimeout = 3 * time.Second  // of what is queued when Run is told to end
	firstRetry   = 50 * time.Millisecond
	lastRetry    = 30 * time.Second

	// Attempts at a time. First attempts and later ones do not compete, and an
	// attempt that takes longer than slowAfter gives its place to the next, so
	// that what a webhook holds up holds up nobody else; of such attempts there
	// are at most maxSlow. Each takes a connection; client-go keeps 25 of them when
	// they are idle, so first attempts are no more than that.
	firstPlaces = 24
	laterPlaces = 16
	slowAfter   = 500 * time.Millisecond
	maxSlow     = 1000

	messageMax = 1024 // bytes of an Event's message (Kubernetes API, events.k8s.io/v1 note)
)

// Writer writes annotations and Events. Patches of one object are sent one
// after the other, the last given wins in every annotation; a patch that fails is tried again with
// backoff until it succeeds or the object is gone.
type Writer struct {
	clients  *Clients
	log      *slog.Logger
	metrics  *metrics.Master
	first    workqueue.TypedRateLimitingInterface[cluster.Ref] // with a new patch
	later    workqueue.TypedRateLimitingInterface[cluster.Ref] // whose last attempt failed
	events   record.EventBroadcaster
	recorder record.EventRecorder
	slow     atomic.Int64 // attempts that took longer than slowAfter and still go on

	mu      sync.Mutex
	pending map[cluster.Ref]assign.Patch
	busy    map[cluster.Ref]bool // an attempt is under way
}

// NewWriter is a Writer; no patch is sent before Run.
func NewWriter(c *Clients, component string, m *metrics.Master, log *slog.Logger) *Writer {
	queue := func() workqueue.TypedRateLimitingInterface[cluster.Ref] {
		return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cluster.Ref](firstRetry, lastRetry))
	}
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.Kube.CoreV1().Events("")})
	return &Writer{
		clients: c, log: log, metrics: m, pending: map[cluster.Ref]assign.Patch{}, busy: map[cluster.Ref]bool{},
		first: queue(), later: queue(),
		events: events, recorder: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}),
	}
}

// Run sends what it is given until ctx ends, and then what is already queued,
// for at most drainTimeout.
func (w *Writer) Run(ctx context.Context) {
	defer w.events.Shutdown()
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var wg sync.WaitGroup
	for queue, places := range map[workqueue.TypedRateLimitingInterface[cluster.Ref]]int{w.first: firstPlaces, w.later: laterPlaces} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			w.serve(sending, queue, make(chan struct{}, places))
		}()
	}
	<-ctx.Done()
	w.first.ShutDown()
	w.later.ShutDown()
	defer time.AfterFunc(drainTimeout, cancel).Stop()
	wg.Wait()
}

// Patch queues a patch. What an earlier one that is still queued says of other
// annotations is sent with it.
func (w *Writer) Patch(p assign.Patch) {
	w.mu.Lock()
	if queued, ok := w.pending[p.Ref]; ok && queued.UID == p.UID {
		p = merged(queued, p)
	}
	w.pending[p.Ref] = p
	w.mu.Unlock()
	w.first.Add(p.Ref)
}

// merged is a patch and a later one of the same object as one.
func merged(p, later assign.Patch) assign.Patch {
	out := assign.Patch{Ref: p.Ref, UID: p.UID, Annotations: maps.Clone(p.Annotations), Remove: slices.Clone(later.Remove)}
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
	message := p.Message
	if len(message) > messageMax {
		message = strings.ToValidUTF8(message[:messageMax-3], "") + "..."
	}
	w.recorder.Event(&corev1.ObjectReference{
		Kind: string(p.Ref.Kind), Namespace: p.Ref.Name.Namespace, Name: p.Ref.Name.Name, UID: types.UID(p.UID), APIVersion: apiVersion(p.Ref.Kind),
	}, corev1.EventTypeWarning, p.Reason, message)
}

func apiVersion(k cluster.Kind) string {
	switch k {
	case cluster.KindEndpointSlice:
		return "discovery.k8s.io/v1"
	case cluster.KindServiceCIDR:
		return "networking.k8s.io/v1"
	}
	return "v1"
}

// serve attempts what is in a queue until that is shut down and empty, as many
// at a time as there are places.
func (w *Writer) serve(ctx context.Context, queue workqueue.TypedRateLimitingInterface[cluster.Ref], places chan struct{}) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		ref, down := queue.Get()
		if down {
			return
		}
		places <- struct{}{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer queue.Done(ref)
			leave := sync.OnceFunc(func() { <-places })
			defer leave()
			timer := time.AfterFunc(slowAfter, func() {
				if w.slow.Add(1) <= maxSlow {
					leave()
				}
			})
			w.attempt(ctx, ref)
			if !timer.Stop() {
				w.slow.Add(-1)
			}
		}()
	}
}

// attempt sends the last patch of an object, unless one of it is under way,
// which then sees to what came after it.
func (w *Writer) attempt(ctx context.Context, ref cluster.Ref) {
	w.mu.Lock()
	p, ok := w.pending[ref]
	if !ok || w.busy[ref] {
		w.mu.Unlock()
		return
	}
	delete(w.pending, ref)
	w.busy[ref] = true
	w.mu.Unlock()
	err := w.clients.Patch(ctx, p)
	w.mu.Lock()
	delete(w.busy, ref)
	_, newer := w.pending[ref]
	if err != nil && !newer && !gone(err) {
		w.pending[ref] = p
	}
	w.mu.Unlock()
	kind := string(ref.Kind)
	switch {
	case err == nil:
		w.metrics.Patches.WithLabelValues(kind, "ok").Inc()
		w.later.Forget(ref)
	case gone(err):
		w.metrics.Patches.WithLabelValues(kind, "dropped").Inc()
		w.later.Forget(ref)
	default:
		w.metrics.Patches.WithLabelValues(kind, "retried").Inc()
		// The 1st, 2nd, 4th, 8th attempt and so on: an API server that is away
		// fails thousands of objects, each of them every half minute.
		if n := w.later.NumRequeues(ref) + 1; n&(n-1) == 0 && ctx.Err() == nil {
			w.log.Warn("writing annotations", "object", ref.String(), "error", err, "attempt", n)
		}
		if !newer {
			w.later.AddRateLimited(ref)
		}
	}
	if newer {
		w.first.Add(ref)
	}
}

// gone tells whether the object that a patch was meant for is no more: there
// is none, or another of the same name, whose UID can't be changed. A conflict
// is with somebody who writes at the same moment, and passes.
func gone(err error) bool {
	if apierrors.IsNotFound(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}
