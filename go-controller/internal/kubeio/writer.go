package kubeio

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
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
	patchWorkers = 32
	patchTimeout = 15 * time.Second // of one attempt: a slow webhook holds up one object, not the others
	firstRetry   = 50 * time.Millisecond
	lastRetry    = 30 * time.Second

	// conflictAttempts is how often a conflict is tried again: it may be of
	// another write at the same moment, or the object may be another of the
	// same name, and then it stays.
	conflictAttempts = 5
)

// Writer writes annotations and Events. Patches of one object are sent one
// after the other, the last given wins; a patch that fails is tried again with
// backoff until it succeeds or the object is gone.
type Writer struct {
	clients  *Clients
	log      *slog.Logger
	metrics  *metrics.Master
	queue    workqueue.TypedRateLimitingInterface[cluster.Ref]
	events   record.EventBroadcaster
	recorder record.EventRecorder

	mu      sync.Mutex
	pending map[cluster.Ref]assign.Patch
}

// NewWriter is a Writer; nothing is sent before Run.
func NewWriter(c *Clients, component string, m *metrics.Master, log *slog.Logger) *Writer {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cluster.Ref](firstRetry, lastRetry)
	events := record.NewBroadcaster()
	return &Writer{
		clients: c, log: log, metrics: m, pending: map[cluster.Ref]assign.Patch{},
		queue:  workqueue.NewTypedRateLimitingQueue(limiter),
		events: events, recorder: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}),
	}
}

// Run sends what it is given until ctx ends, and then what is already queued,
// for as long as one attempt takes.
func (w *Writer) Run(ctx context.Context) {
	w.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: w.clients.Kube.CoreV1().Events("")})
	defer w.events.Shutdown()
	var wg sync.WaitGroup
	for range patchWorkers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for w.next(context.WithoutCancel(ctx)) {
			}
		}()
	}
	<-ctx.Done()
	w.queue.ShutDown()
	wg.Wait()
}

// Patch queues a patch.
func (w *Writer) Patch(p assign.Patch) {
	w.mu.Lock()
	w.pending[p.Ref] = p
	w.mu.Unlock()
	w.queue.Add(p.Ref)
}

// Report makes a Kubernetes Event of a problem.
func (w *Writer) Report(p cluster.Problem) {
	w.recorder.Event(&corev1.ObjectReference{
		Kind: string(p.Ref.Kind), Namespace: p.Ref.Name.Namespace, Name: p.Ref.Name.Name, UID: types.UID(p.UID), APIVersion: apiVersion(p.Ref.Kind),
	}, corev1.EventTypeWarning, p.Reason, p.Message)
}

func apiVersion(k cluster.Kind) string {
	if k == cluster.KindEndpointSlice {
		return "discovery.k8s.io/v1"
	}
	return "v1"
}

// next sends one patch; false when the queue was shut down.
func (w *Writer) next(ctx context.Context) bool {
	ref, down := w.queue.Get()
	if down {
		return false
	}
	defer w.queue.Done(ref)
	w.mu.Lock()
	p, ok := w.pending[ref]
	delete(w.pending, ref)
	w.mu.Unlock()
	if !ok {
		return true
	}
	err := w.send(ctx, p)
	switch {
	case err == nil:
		w.metrics.Patches.WithLabelValues(string(ref.Kind), "ok").Inc()
		w.queue.Forget(ref)
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err) && w.queue.NumRequeues(ref) >= conflictAttempts:
		// The object is gone, or is another of the same name: the patch was not
		// meant for that.
		w.metrics.Patches.WithLabelValues(string(ref.Kind), "dropped").Inc()
		w.queue.Forget(ref)
	default:
		w.metrics.Patches.WithLabelValues(string(ref.Kind), "retried").Inc()
		w.log.Warn("writing annotations", "object", ref.String(), "error", err, "attempt", w.queue.NumRequeues(ref)+1)
		w.mu.Lock()
		if _, newer := w.pending[ref]; !newer {
			w.pending[ref] = p
		}
		w.mu.Unlock()
		w.queue.AddRateLimited(ref)
	}
	return true
}

// send patches an object's annotations. A pod's go through the status
// subresource, which admission webhooks for pods do not hold up.
func (w *Writer) send(ctx context.Context, p assign.Patch) error {
	body, err := patchBody(p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	if p.Ref.Kind == cluster.KindPod {
		pods := w.clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(p.Ref.Name.Namespace)
		_, err = pods.Patch(ctx, p.Ref.Name.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		return err
	}
	nodes := w.clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
	_, err = nodes.Patch(ctx, p.Ref.Name.Name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// patchBody is a merge patch (RFC 7386). The UID in it makes the API server
// refuse it for another object of the same name.
func patchBody(p assign.Patch) ([]byte, error) {
	annotations := map[string]any{}
	for k, v := range p.Annotations {
		annotations[k] = v
	}
	for _, k := range p.Remove {
		annotations[k] = nil
	}
	meta := map[string]any{"annotations": annotations}
	if p.UID != "" {
		meta["uid"] = p.UID
	}
	return json.Marshal(map[string]any{"metadata": meta})
}
