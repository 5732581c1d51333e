package kubeio

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// LocalPod is what a node agent needs to know of a pod.
type LocalPod struct {
	Namespace, Name string
	UID             string // of the Pod object
	StaticUID       string // for the mirror of a static pod, the UID by which the kubelet calls it; else ""
	Network         string // value of the pod-networks annotation, "" until the master has written it
	Before          string // UID of the pod of this name that went last, "" unless that was not long ago
}

// HasUID tells whether the kubelet may mean this pod by uid; "" is any.
func (p LocalPod) HasUID(uid string) bool {
	return uid == "" || uid == p.UID || uid == p.StaticUID
}

// LocalNode is what a node agent needs to know of its own Node.
type LocalNode struct {
	UID         string
	Labels      map[string]string
	Annotations map[string]string
	InternalIPs []string // status.addresses of type InternalIP, in their order
}

// Local watches one node's pods and its Node object: of these the load on the
// API server of a thousand agents is that of one watcher of the whole. And it
// watches all services, and all EndpointSlices once somebody asks for them. Of
// other Nodes it reads those whose addresses somebody asks for.
type Local struct {
	client    kubernetes.Interface
	leases    coordinationv1client.LeasesGetter
	node      string
	log       *slog.Logger
	pods      cache.SharedIndexInformer
	nodes     cache.SharedIndexInformer
	changed   chan struct{}
	podEvents localEvents
	podsGone  localGone

	services       *localObjects[*cluster.Service]
	serviceWatch   cache.SharedIndexInformer
	serviceHandler cache.ResourceEventHandlerRegistration
	ranges         localRanges
	slices         localSlices
	peers          *localPeers
}

// NewLocal prepares the watches of node; Run starts them.
func NewLocal(client kubernetes.Interface, node string, log *slog.Logger) (*Local, error) {
	l := &Local{client: client, leases: client.CoordinationV1(), node: node, log: log, changed: make(chan struct{}, 1), podEvents: newLocalEvents(), podsGone: newLocalGone(), services: newLocalObjects[*cluster.Service](), peers: newLocalPeers()}
	mine := fields.OneTermEqualSelector("spec.nodeName", node).String()
	podWatch := localListWatch(client, mine, client.CoreV1().Pods(metav1.NamespaceAll).List, client.CoreV1().Pods(metav1.NamespaceAll).Watch)
	self := fields.OneTermEqualSelector("metadata.name", node).String()
	nodeWatch := localListWatch(client, self, client.CoreV1().Nodes().List, client.CoreV1().Nodes().Watch)
	l.pods = cache.NewSharedIndexInformer(podWatch, &corev1.Pod{}, 0, nil)
	l.nodes = cache.NewSharedIndexInformer(nodeWatch, &corev1.Node{}, 0, nil)
	l.serviceWatch = cache.NewSharedIndexInformer(l.serviceListWatch(), &corev1.Service{}, 0, nil)
	for _, setUp := range []func() error{
		func() error { return l.pods.SetTransform(localStrip) },
		func() error { return l.nodes.SetTransform(localStrip) },
		func() error { return l.serviceWatch.SetTransform(localStrip) },
		func() error { return l.pods.SetWatchErrorHandlerWithContext(l.watchError("pods")) },
		func() error { return l.nodes.SetWatchErrorHandlerWithContext(l.watchError("nodes")) },
		func() error { return l.serviceWatch.SetWatchErrorHandlerWithContext(l.watchError("services")) },
		func() error {
			_, err := l.pods.AddEventHandler(l.podsGone.before(localHandler(l.podEvent, sameLocalPod)))
			return err
		},
		func() error { _, err := l.nodes.AddEventHandler(localHandler(l.nodeEvent, sameLocalNode)); return err },
		func() (err error) {
			l.serviceHandler, err = l.serviceWatch.AddEventHandler(l.serviceEvents())
			return err
		},
		l.prepareRanges,
		l.prepareSlices,
	} {
		if err := setUp(); err != nil {
			return nil, fmt.Errorf("preparing the watches of node %q: %w", node, err)
		}
	}
	return l, nil
}

// Local is NewLocal for these clients.
func (c *Clients) Local(node string, log *slog.Logger) (*Local, error) {
	l, err := NewLocal(c.Kube, node, log)
	if err != nil {
		return nil, err
	}
	l.leases = c.leases
	return l, nil
}

// localListWatch lists and watches what selector accepts.
func localListWatch[L runtime.Object](client kubernetes.Interface, selector string,
	list func(context.Context, metav1.ListOptions) (L, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return follow(ctx, o)
		},
	}, client)
}

// Run watches until ctx ends.
func (l *Local) Run(ctx context.Context) {
	var watches sync.WaitGroup
	watches.Go(func() { l.nodes.RunWithContext(ctx) })
	watches.Go(func() { l.pods.RunWithContext(ctx) })
	watches.Go(func() { l.serviceWatch.RunWithContext(ctx) })
	watches.Go(func() { l.ranges.watch.RunWithContext(ctx) })
	watches.Go(func() { l.runSlices(ctx) })
	watches.Go(func() { l.runPeers(ctx) })
	for _, synced := range []cache.InformerSynced{l.Synced, l.serviceHandler.HasSynced, l.ranges.handler.HasSynced} {
		watches.Go(func() { l.tellSynced(ctx, synced) })
	}
	watches.Wait()
}

// tellSynced has the first list told as a change.
func (l *Local) tellSynced(ctx context.Context, synced cache.InformerSynced) {
	if cache.WaitForCacheSync(ctx.Done(), synced) {
		l.nodeEvent("")
	}
}

// Synced tells whether the first lists of pods and Nodes have arrived.
func (l *Local) Synced() bool { return l.pods.HasSynced() && l.nodes.HasSynced() }

// Changed delivers one value after the Node, a service, or what Endpoints or
// Peers tell has changed, and when first lists are there; several changes
// may be told at once.
func (l *Local) Changed() <-chan struct{} { return l.changed }

// Node is the agent's own Node; ok is false when there is none. The maps in it
// must not be modified.
func (l *Local) Node() (n LocalNode, ok bool) {
	obj, ok, err := l.nodes.GetStore().GetByKey(l.node)
	node, is := obj.(*corev1.Node)
	if !ok || err != nil || !is {
		return n, false
	}
	return localNode(node), true
}

// Pod is a pod of this node; ok is false when the watch has not seen it, or has
// seen it go: only Before is set then.
func (l *Local) Pod(namespace, name string) (p LocalPod, ok bool) {
	key := namespace + "/" + name
	obj, ok, err := l.pods.GetStore().GetByKey(key)
	pod, is := obj.(*corev1.Pod)
	if !ok || err != nil || !is {
		return LocalPod{Before: l.podsGone.uid(key)}, false
	}
	return LocalPod{
		Namespace: namespace, Name: name, UID: string(pod.UID),
		StaticUID: pod.Annotations[corev1.MirrorPodAnnotationKey], Network: pod.Annotations[annotation.PodNetworks],
		Before: l.podsGone.uid(key),
	}, true
}

// WaitPod returns once accept is content with the pod; it is asked at once and
// after each change of the pod. When ctx ends first, the result is its error.
func (l *Local) WaitPod(ctx context.Context, namespace, name string, accept func(p LocalPod, ok bool) bool) error {
	for {
		woken := l.podEvents.next(namespace + "/" + name) // before looking, so that no change falls between
		p, ok := l.Pod(namespace, name)
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

// PatchNode sets annotations of the agent's own Node, all in one patch.
func (l *Local) PatchNode(ctx context.Context, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("building the patch of node %q: %w", l.node, err)
	}
	_, err = l.client.CoreV1().Nodes().Patch(ctx, l.node, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "ovnkube-node"})
	if err != nil {
		return fmt.Errorf("patching annotations of node %q: %w", l.node, err)
	}
	return nil
}

func (l *Local) podEvent(key string) { l.podEvents.fire(key) }

func (l *Local) nodeEvent(string) {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *Local) watchError(what string) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() == nil {
			l.log.Warn("watch ended, it will be started again", "resource", what, "error", err)
		}
	}
}

// localHandler calls f with the key of every object that changes so that same
// is false. A Node's heartbeat, or a pod's new status, is no such change.
func localHandler(f func(key string), same func(before, after any) bool) cache.ResourceEventHandler {
	call := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			f(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: call,
		UpdateFunc: func(before, after any) {
			if !same(before, after) {
				call(after)
			}
		},
		DeleteFunc: call,
	}
}

func sameLocalNode(before, after any) bool {
	b, ok1 := before.(*corev1.Node)
	a, ok2 := after.(*corev1.Node)
	return ok1 && ok2 && b.UID == a.UID && maps.Equal(b.Annotations, a.Annotations) && maps.Equal(b.Labels, a.Labels) && slices.Equal(b.Status.Addresses, a.Status.Addresses)
}

func sameLocalPod(before, after any) bool {
	b, ok1 := before.(*corev1.Pod)
	a, ok2 := after.(*corev1.Pod)
	return ok1 && ok2 && b.UID == a.UID && maps.Equal(b.Annotations, a.Annotations)
}

// localStrip keeps of an object what Pod and Node read.
func localStrip(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Pod:
		kept := map[string]string{}
		for _, k := range []string{annotation.PodNetworks, corev1.MirrorPodAnnotationKey} {
			if v, ok := o.Annotations[k]; ok {
				kept[k] = v
			}
		}
		return &corev1.Pod{ObjectMeta: localMeta(o.ObjectMeta, kept)}, nil
	case *corev1.Node:
		meta := localMeta(o.ObjectMeta, o.Annotations)
		meta.Labels = o.Labels
		return &corev1.Node{ObjectMeta: meta, Status: corev1.NodeStatus{Addresses: o.Status.Addresses}}, nil
	case *corev1.Service:
		return stripService(o), nil
	}
	return obj, nil
}

func localMeta(m metav1.ObjectMeta, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Annotations: annotations,
	}
}
