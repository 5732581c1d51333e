package reflector

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// askAgain is how long an optional kind that the API server does not serve is taken to have no objects, unless the API
// server tells that it serves other kinds than before.
const askAgain = time.Minute

// optionalListWatch is lw for a kind that the API server may not serve. As long as it does not know the kind there are
// no objects, and it is asked again after a while. Once it has served the kind, "no such kind" is an error at first: an
// API server that boots may not know yet what it served before, and that must not remove the objects. If it says
// nothing else for as long as that, somebody has removed the kind. A refusal is always an error: there may be objects.
// existed, unless nil, is asked at the first "no such kind" whether the kind was served before this program started.
// served may end the wait early.
func optionalListWatch(
	lw *cache.ListWatch, none func() runtime.Object, again time.Duration, existed func(context.Context) bool,
	served *Served,
) *cache.ListWatch {
	k := optionalKind{again: again, existed: existed}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := lw.ListWithContext(ctx, o)
			if k.absent(ctx, err) {
				return none(), nil
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := lw.WatchWithContext(ctx, o)
			// A watch that is to send all objects first must fail, so that the reflector lists instead.
			if !k.absent(ctx, err) || o.SendInitialEvents != nil {
				return w, err
			}
			quiet := watch.NewFake()
			go func() {
				served.wait(ctx, again)
				quiet.Stop()
			}()
			return quiet, nil
		},
	}
}

// optionalKind is what an API server said of a kind.
type optionalKind struct {
	again   time.Duration
	existed func(context.Context) bool
	first   sync.Once // asks existed

	mu      sync.Mutex
	served  bool
	missing time.Time // since when it has known no such kind any more; zero while it does
}

// absent takes the outcome of a list or a watch, and tells whether the API server has no such kind.
func (k *optionalKind) absent(ctx context.Context, err error) bool {
	before := false
	if NotServed(err) && k.existed != nil {
		k.first.Do(func() { before = k.existed(ctx) })
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.served = k.served || before
	if !NotServed(err) {
		k.served, k.missing = k.served || err == nil, time.Time{}
		return false
	}
	if k.missing.IsZero() {
		k.missing = time.Now()
	}
	k.served = k.served && time.Since(k.missing) < k.again
	return !k.served
}

// NotServed tells whether an API server does not know a kind.
func NotServed(err error) bool { return apierrors.IsNotFound(err) }
