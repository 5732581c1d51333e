package local

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/lease"
	"github.com/northbound-net/northbound/go-controller/internal/kube/reflector"
)

// fieldManager signs what an agent writes.
const fieldManager = "ovnkube-node"

// Watcher watches one node's pods and its Node object. A thousand agents together load the API server with that as one
// watcher of the whole does. It also watches all services, and all EndpointSlices once somebody asks for them. Of other
// Nodes it reads those whose addresses somebody asks for.
type Watcher struct {
	clients *client.Clients
	node    string
	log     *slog.Logger
	changed chan struct{}
	watches []reflector.Watch // which run from the start
	slices  *endpointSlices
	api     *apiServer
	// Refusals is what the API server refuses to list or watch, apart from EndpointSlices: see Endpoints.
	Refusals reflector.Refusals
	contacts reflector.Contacts // without EndpointSlices, for which an agent may lack the right

	nodes    *table[Node]
	pods     *table[Pod]
	services *table[*cluster.Service]
	ranges   *table[*cluster.ServiceCIDR]
	peers    *peers

	podEvents events
	podsGone  gone
}

// New prepares the watches of a node; Run starts them.
func New(c *client.Clients, rows []kinds.Kind, node string, log *slog.Logger) (*Watcher, error) {
	w := &Watcher{
		clients: c, node: node, log: log, changed: make(chan struct{}, 1),
		podsGone: newGone(), peers: newPeers(),
	}
	row := func(kind cluster.Kind) kinds.Kind {
		k, _ := kinds.Find(rows, kind) // prepare refuses rows that lack it
		return k
	}
	w.nodes = newTable(decodeNode, Node.Equal, w.nodeChanged, w.notify)
	w.pods = newTable(decodePod, func(a, b Pod) bool { return a == b }, w.podsChanged, w.notify)
	w.services = newTable(decodeWith[*cluster.Service](row(cluster.KindService)), equal, w.servicesChanged, w.notify)
	w.ranges = newTable(decodeWith[*cluster.ServiceCIDR](row(cluster.KindServiceCIDR)), equal,
		func([]change[*cluster.ServiceCIDR]) { w.notify() }, w.notify)
	w.slices = newEndpointSlices(node, row(cluster.KindEndpointSlice), w.notify)
	w.api = newAPIServer(row(cluster.KindEndpointSlice), w.notify)
	w.api.watch.Log = log
	if err := w.prepare(rows); err != nil {
		return nil, fmt.Errorf("preparing the watches of node %q: %w", node, err)
	}
	return w, nil
}

// prepare makes a watch of each kind that agents watch.
func (w *Watcher) prepare(rows []kinds.Kind) error {
	watches := map[cluster.Kind]reflector.Watch{
		cluster.KindNode: {Sink: w.nodes, Selector: fields.OneTermEqualSelector("metadata.name", w.node).String()},
		cluster.KindPod:  {Sink: w.pods, Selector: fields.OneTermEqualSelector("spec.nodeName", w.node).String()},
		// Headless services do not concern a node.
		cluster.KindService:       {Sink: w.services, Selector: "spec.clusterIP!=" + corev1.ClusterIPNone},
		cluster.KindServiceCIDR:   {Sink: w.ranges},
		cluster.KindEndpointSlice: {Sink: w.slices.all, Refused: w.slices.refuse},
	}
	for _, k := range kinds.WatchedBy(rows, kinds.Agent) {
		watch, ok := watches[k.Kind]
		if !ok {
			return fmt.Errorf("kind %s: WatchedBy has the node agent, which does not know what to keep of it", k.Kind)
		}
		watch.Kind, watch.Log = k, w.log
		if delete(watches, k.Kind); k.Kind == cluster.KindEndpointSlice {
			w.slices.watch = watch
		} else {
			watch.Refused, watch.Heard = w.Refusals.Of(k, w.notify), w.contacts.Of(k)
			w.watches = append(w.watches, watch)
		}
	}
	for kind := range watches {
		return fmt.Errorf("kind %s: there is no row of it, or its WatchedBy lacks the node agent", kind)
	}
	return nil
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, watch := range w.watches {
		running.Go(func() { watch.Run(ctx, w.clients) })
	}
	running.Go(func() { w.runSlices(ctx) })
	running.Go(func() { w.api.run(ctx, w) })
	running.Go(func() { w.runPeers(ctx) })
	running.Wait()
}

// Synced tells whether the first lists of pods and Nodes have arrived.
func (w *Watcher) Synced() bool { return w.pods.isListed() && w.nodes.isListed() }

// Behind is why changes in the cluster may not be known; nil when all is well.
func (w *Watcher) Behind() error { return w.contacts.Behind() }

// Changed delivers a value after a change of the Node, of a service, or of what Endpoints, ServiceRanges or Peers
// return, and when a first list has arrived. Values merge.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

func (w *Watcher) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Node is the agent's own Node; ok is false when there is none. Its maps must not be modified.
func (w *Watcher) Node() (n Node, ok bool) { return w.nodes.get(cluster.Name{Name: w.node}) }

// Pod is a pod of this node. ok is false when the watch has not seen it, or has seen it go; only Before is set then.
func (w *Watcher) Pod(namespace, name string) (p Pod, ok bool) {
	n := cluster.Name{Namespace: namespace, Name: name}
	p, ok = w.pods.get(n)
	p.Before = w.podsGone.uid(n)
	return p, ok
}

// LocalPods are the pods of this node, in no order.
func (w *Watcher) LocalPods() []Pod {
	pods, _ := w.pods.all()
	return pods
}

// WaitPod returns once accept is content with the pod. It asks accept at once and after each change of the pod. When
// ctx ends first, the result is the context's error.
func (w *Watcher) WaitPod(ctx context.Context, namespace, name string, accept func(p Pod, ok bool) bool) error {
	for {
		// Before looking, so that no change falls between.
		woken := w.podEvents.next(cluster.Name{Namespace: namespace, Name: name})
		p, ok := w.Pod(namespace, name)
		if accept(p, ok) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-woken:
		}
	}
}

// nodeChanged takes in where the exits of primary networks are.
func (w *Watcher) nodeChanged(changes []change[Node]) {
	for _, c := range changes {
		w.slices.join(c.now.Annotations[annotation.GatewayJoinAddrs])
	}
	w.notify()
}

// podsChanged remembers the pods that are gone, and wakes those who wait for a pod.
func (w *Watcher) podsChanged(changes []change[Pod]) {
	for _, c := range changes {
		if c.was.UID != "" && c.was.UID != c.now.UID {
			w.podsGone.note(c.name, c.was.UID)
		}
		w.slices.lock(c.name, c.was, c.now)
		w.podEvents.fire(c.name)
	}
}

// PatchNode sets annotations of the agent's own Node, all in one patch. It fails if the Node was made anew since.
func (w *Watcher) PatchNode(ctx context.Context, uid string, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, "annotations": annotations}})
	if err != nil {
		return fmt.Errorf("building the patch of node %q: %w", w.node, err)
	}
	options := metav1.PatchOptions{FieldManager: fieldManager}
	if _, err = w.clients.Kube.CoreV1().Nodes().Patch(ctx, w.node, types.MergePatchType, patch, options); err != nil {
		return fmt.Errorf("patching annotations of node %q: %w", w.node, err)
	}
	return nil
}

// KeepLease renews this node's Lease as a gateway until ctx ends, at times when alive is true.
func (w *Watcher) KeepLease(ctx context.Context, alive func() bool) {
	owner := func() (uid string, ok bool) {
		n, ok := w.Node()
		return n.UID, ok
	}
	lease.NewKeeper(w.clients, w.node, fieldManager, owner, w.log).Run(ctx, alive)
}
