package kubeio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// localSlices is the watch of EndpointSlices, which runs when it is needed.
type localSlices struct {
	objects *localObjects[*cluster.EndpointSlice]
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
		objects: newLocalObjects[*cluster.EndpointSlice](), needed: make(chan struct{}), refused: &atomic.Pointer[error]{},
		watch: cache.NewSharedIndexInformer(localListWatch(l.client, "", all.List, all.Watch), &discoveryv1.EndpointSlice{}, 0, nil),
	}
	s.need = sync.OnceFunc(func() { close(s.needed) })
	l.slices = s
	if err := s.watch.SetTransform(l.stripSlice); err != nil {
		return err
	}
	if err := s.watch.SetWatchErrorHandlerWithContext(l.slicesError); err != nil {
		return err
	}
	l.slices.handler, err = s.watch.AddEventHandler(s.objects.handler(localSlice, func() { l.nodeEvent("") }))
	return err
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

// Endpoints are the EndpointSlices of services that have endpoints on this node,
// with just these, by service, and a number that is another one whenever they
// are. The first call has them watched. The error says why they are not known;
// it is ErrNotAllowed if waiting won't help.
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

// stripSlice keeps of a slice what localSlice reads: the endpoints of this node.
func (l *Local) stripSlice(obj any) (any, error) {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return obj, nil
	}
	out := &discoveryv1.EndpointSlice{ObjectMeta: localMeta(s.ObjectMeta, nil), AddressType: s.AddressType}
	for _, e := range s.Endpoints {
		if deref(e.NodeName) == l.node {
			out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{Addresses: e.Addresses, Conditions: e.Conditions, NodeName: e.NodeName})
		}
	}
	if len(out.Endpoints) > 0 {
		out.Ports = s.Ports
		out.Labels = map[string]string{discoveryv1.LabelServiceName: s.Labels[discoveryv1.LabelServiceName]}
		keepServiceLabels(&out.ObjectMeta, s.Labels)
	}
	return out, nil
}

// localSlice keeps the slices that have endpoints here and belong to a service.
func localSlice(obj any) (*cluster.EndpointSlice, bool) {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, false
	}
	now, _ := decodeSlice(s)
	return now, len(now.Endpoints) > 0 && now.Service != ""
}
