package kubeio

import (
	"context"
	"net/netip"
	"slices"
	"sync/atomic"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// localRanges are the ranges of ClusterIPs that the API has ServiceCIDRs for.
type localRanges struct {
	watch   cache.SharedIndexInformer
	stop    context.CancelFunc // of the watch; set by run before it begins
	refused atomic.Bool        // the API server has none for us
}

// newLocalRanges prepares the watch, which calls changed after each change. An
// API server that has no ServiceCIDRs, before Kubernetes 1.33, is not asked
// again.
func newLocalRanges(client kubernetes.Interface, changed func(), ended cache.WatchErrorHandlerWithContext) (*localRanges, error) {
	api := client.NetworkingV1().ServiceCIDRs()
	r := &localRanges{watch: cache.NewSharedIndexInformer(localListWatch(client, "", api.List, api.Watch), &networkingv1.ServiceCIDR{}, 0, nil)}
	if err := r.watch.SetTransform(stripRange); err != nil {
		return nil, err
	}
	err := r.watch.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) {
			r.stop()
		} else {
			ended(ctx, reflector, err)
		}
		if (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) && !r.refused.Swap(true) {
			changed()
		}
	})
	if err != nil {
		return nil, err
	}
	_, err = r.watch.AddEventHandler(localHandler(func(string) { changed() }, func(before, after any) bool {
		b, ok1 := before.(*networkingv1.ServiceCIDR)
		a, ok2 := after.(*networkingv1.ServiceCIDR)
		return ok1 && ok2 && slices.Equal(b.Spec.CIDRs, a.Spec.CIDRs)
	}))
	return r, err
}

func (r *localRanges) run(ctx context.Context) {
	ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	r.watch.RunWithContext(ctx)
}

func stripRange(obj any) (any, error) {
	if r, ok := obj.(*networkingv1.ServiceCIDR); ok {
		return &networkingv1.ServiceCIDR{ObjectMeta: localMeta(r.ObjectMeta, nil), Spec: r.Spec}, nil
	}
	return obj, nil
}

// ServiceRanges are the ranges of ClusterIPs that the API has ServiceCIDRs for,
// sorted, each once; none when it has no such objects, or they are not this
// agent's to see. ok is false until that is known.
func (l *Local) ServiceRanges() (all []netip.Prefix, ok bool) {
	for _, obj := range l.ranges.watch.GetStore().List() {
		r, ok := obj.(*networkingv1.ServiceCIDR)
		if !ok {
			continue
		}
		for _, text := range r.Spec.CIDRs {
			if p, err := netip.ParsePrefix(text); err == nil { // the API server lets no other in
				all = append(all, p.Masked())
			}
		}
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all), l.ranges.watch.HasSynced() || l.ranges.refused.Load()
}
