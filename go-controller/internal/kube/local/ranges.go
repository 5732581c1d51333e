package kubeio

import (
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// localRanges is the watch of the ranges of ClusterIPs that the API has
// ServiceCIDRs for.
type localRanges struct {
	objects *localObjects[*cluster.ServiceCIDR]
	watch   cache.SharedIndexInformer
	handler cache.ResourceEventHandlerRegistration
}

// prepareRanges sets the watch up.
func (l *Local) prepareRanges() (err error) {
	api := l.client.NetworkingV1().ServiceCIDRs()
	lw := cache.ToListWatcherWithWatchListSemantics(perhaps(listWatch(api.List, api.Watch), &networkingv1.ServiceCIDRList{}, askAgain), l.client)
	l.ranges = localRanges{objects: newLocalObjects[*cluster.ServiceCIDR](), watch: cache.NewSharedIndexInformer(lw, &networkingv1.ServiceCIDR{}, 0, nil)}
	if err := l.ranges.watch.SetTransform(stripRange); err != nil {
		return err
	}
	if err := l.ranges.watch.SetWatchErrorHandlerWithContext(l.watchError("servicecidrs")); err != nil {
		return err
	}
	l.ranges.handler, err = l.ranges.watch.AddEventHandler(l.ranges.objects.handler(localRange, func() { l.nodeEvent("") }))
	return err
}

func stripRange(obj any) (any, error) {
	if r, ok := obj.(*networkingv1.ServiceCIDR); ok {
		return &networkingv1.ServiceCIDR{ObjectMeta: localMeta(r.ObjectMeta, nil), Spec: r.Spec}, nil
	}
	return obj, nil
}

func localRange(obj any) (*cluster.ServiceCIDR, bool) {
	r, ok := obj.(*networkingv1.ServiceCIDR)
	if !ok {
		return nil, false
	}
	now, _ := decodeServiceCIDR(r)
	return now, true
}

// ServiceRanges are the ranges of ClusterIPs that the API has ServiceCIDRs for,
// sorted, each once; none when it has no such objects, or they are not this
// agent's to see. ok is false until that is known.
func (l *Local) ServiceRanges() (all []netip.Prefix, ok bool) {
	list, _ := l.ranges.objects.all()
	for _, r := range list {
		all = append(all, r.CIDRs...)
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all), l.ranges.handler.HasSynced()
}
