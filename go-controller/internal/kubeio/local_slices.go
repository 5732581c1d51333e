package kubeio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// localSlices is the watch of EndpointSlices, which runs when it is needed. Its
// objects are those of services that clients from outside reach locally, and of
// others those with endpoints on this node, with just these: what happens
// elsewhere to the many other services is no change.
type localSlices struct {
	mu      *sync.Mutex     // of local, and what becomes of a slice by it
	local   map[string]bool // those services, by namespace/name
	objects *localObjects[*cluster.EndpointSlice]
	keep    cache.ResourceEventHandler // of objects; call it with mu
	watch   cache.SharedIndexInformer
	handler cache.ResourceEventHandlerRegistration
	needed  chan struct{} // closed by need
	need    func()
	refused *atomic.Pointer[error] // what the API server said last, if that was that this agent may not
}

// ErrNotAllowed tells that the API server does not let this agent read what it
// needs.
var ErrNotAllowed = errors.New("this agent may not list and watch endpointslices.discovery.k8s.io: grant it that, such as by the ClusterRole system:node-proxier")

// errSlicesAwaited tells that there is no list yet.
var errSlicesAwaited = errors.New("the API server has not listed the endpoint slices yet")

// prepareSlices sets the watch up.
func (l *Local) prepareSlices() (err error) {
	all := l.client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll)
	s := localSlices{
		mu: &sync.Mutex{}, local: map[string]bool{},
		objects: newLocalObjects[*cluster.EndpointSlice](), needed: make(chan struct{}), refused: &atomic.Pointer[error]{},
		watch: cache.NewSharedIndexInformer(localListWatch(l.client, "", all.List, all.Watch), &discoveryv1.EndpointSlice{}, 0, cache.Indexers{sliceService: sliceServiceKey}),
	}
	s.need = sync.OnceFunc(func() { close(s.needed) })
	l.slices = s
	if err := s.watch.SetTransform(l.stripSlice); err != nil {
		return err
	}
	if err := s.watch.SetWatchErrorHandlerWithContext(l.slicesError); err != nil {
		return err
	}
	l.slices.keep = s.objects.handler(l.localSlice, func() { l.nodeEvent("") })
	locked := func(f func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		f()
	}
	l.slices.handler, err = s.watch.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { locked(func() { l.slices.keep.OnAdd(obj, false) }) },
		UpdateFunc: func(before, after any) { locked(func() { l.slices.keep.OnUpdate(before, after) }) },
		DeleteFunc: func(obj any) { locked(func() { l.slices.keep.OnDelete(obj) }) },
	})
	return err
}

// sliceService is the index of slices by sliceServiceKey.
const sliceService = "service"

// sliceServiceKey is the namespace/name of the service that a slice belongs to.
func sliceServiceKey(obj any) ([]string, error) {
	if s, ok := obj.(*discoveryv1.EndpointSlice); ok {
		return []string{s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]}, nil
	}
	return nil, nil
}

// followService keeps of a service's slices what is to be kept of them, after
// the service has come, changed or gone.
func (l *Local) followService(key string) {
	service, _ := l.services.get(key)
	local := service != nil && service.LocalFromOutside()
	l.slices.mu.Lock()
	defer l.slices.mu.Unlock()
	if l.slices.local[key] == local {
		return
	}
	delete(l.slices.local, key)
	if local {
		l.slices.local[key] = true
	}
	list, err := l.slices.watch.GetIndexer().ByIndex(sliceService, key)
	if err != nil {
		l.log.Error("endpoint slices are not indexed", "service", key, "error", err) // prepareSlices has seen to it that they are
		return
	}
	for _, obj := range list {
		l.slices.keep.OnUpdate(nil, obj)
	}
}

func (l *Local) runSlices(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-l.slices.needed:
		var told sync.WaitGroup
		told.Go(func() { l.tellSynced(ctx, l.slices.handler.HasSynced) })
		l.slices.watch.RunWithContext(ctx)
		told.Wait()
	}
}

// slicesError remembers a refusal: that is told to who asks for endpoints.
func (l *Local) slicesError(ctx context.Context, r *cache.Reflector, err error) {
	l.watchError("endpointslices")(ctx, r, err)
	if apierrors.IsForbidden(err) && l.slices.refused.Swap(&err) == nil {
		l.nodeEvent("")
	}
}

// Endpoints are EndpointSlices by service: of services that clients from outside
// reach locally (cluster.Service.LocalFromOutside) all; of others those with
// endpoints on this node, with just these. version is another number whenever
// they are others. The first call has them watched. The error says why they are
// not known; it is ErrNotAllowed if waiting won't help.
func (l *Local) Endpoints() (byService map[cluster.Name][]*cluster.EndpointSlice, version uint64, err error) {
	l.slices.need()
	if !l.slices.handler.HasSynced() {
		if refused := l.slices.refused.Load(); refused != nil {
			return nil, 0, fmt.Errorf("%w (%w)", ErrNotAllowed, *refused)
		}
		return nil, 0, errSlicesAwaited
	}
	list, version := l.slices.objects.all()
	slices.SortFunc(list, func(a, b *cluster.EndpointSlice) int { return cluster.CompareNames(a.Name, b.Name) })
	byService = map[cluster.Name][]*cluster.EndpointSlice{}
	for _, s := range list {
		n := cluster.Name{Namespace: s.Name.Namespace, Name: s.Service}
		byService[n] = append(byService[n], s)
	}
	return byService, version, nil
}

// stripSlice keeps of a slice what localSlice reads. There are very many.
func (l *Local) stripSlice(obj any) (any, error) {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return obj, nil
	}
	out := &discoveryv1.EndpointSlice{ObjectMeta: localMeta(s.ObjectMeta, nil), AddressType: s.AddressType}
	if _, headless := s.Labels[corev1.IsHeadlessService]; headless {
		return out, nil // for DNS
	}
	for _, e := range s.Endpoints {
		if name := shared(deref(e.NodeName)); name != "" && len(e.Addresses) > 0 {
			out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{Addresses: e.Addresses[:1:1], Conditions: e.Conditions, NodeName: &name})
		}
	}
	if len(out.Endpoints) > 0 {
		out.Ports = s.Ports
		out.Labels = map[string]string{discoveryv1.LabelServiceName: s.Labels[discoveryv1.LabelServiceName]}
		keepServiceLabels(&out.ObjectMeta, s.Labels)
	}
	return out, nil
}

// localSlice keeps the slices that belong to a service and have endpoints: of a
// service that is reached locally any, of others endpoints here. Call it with
// slices.mu.
func (l *Local) localSlice(obj any) (*cluster.EndpointSlice, bool) {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok || s.Labels[discoveryv1.LabelServiceName] == "" {
		return nil, false
	}
	if key, _ := sliceServiceKey(s); !l.slices.local[key[0]] {
		here := *s
		here.Endpoints = nil
		for _, e := range s.Endpoints {
			if deref(e.NodeName) == l.node {
				here.Endpoints = append(here.Endpoints, e)
			}
		}
		s = &here
	}
	now, _ := decodeSlice(s)
	return now, len(now.Endpoints) > 0
}
