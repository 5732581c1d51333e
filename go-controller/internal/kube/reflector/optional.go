package reflector

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// askAgain is how long an optional kind that the API server does not serve is taken to have no objects.
const askAgain = time.Minute

// optionalListWatch is lw for a kind that the API server may not serve. As long as it does not know the kind there are
// no objects, and it is asked again after a while. Once it has served the kind, "no such kind" is an error: an API
// server that boots may not know yet what it served before, and that must not remove the objects. A refusal is always
// an error: there may be objects.
func optionalListWatch(
	lw *cache.ListWatch, none func() runtime.Object, again time.Duration,
) *cache.ListWatch {
	var served atomic.Bool
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := lw.ListWithContext(ctx, o)
			if NotServed(err) && !served.Load() {
				return none(), nil
			}
			served.CompareAndSwap(false, err == nil)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := lw.WatchWithContext(ctx, o)
			// A watch that is to send all objects first must fail, so that the reflector lists instead.
			if !NotServed(err) || served.Load() || o.SendInitialEvents != nil {
				served.CompareAndSwap(false, err == nil)
				return w, err
			}
			quiet := watch.NewFake()
			time.AfterFunc(again, quiet.Stop)
			return quiet, nil
		},
	}
}

// NotServed tells whether an API server does not know a kind.
func NotServed(err error) bool { return apierrors.IsNotFound(err) }
