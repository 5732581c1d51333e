package kubeio

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// askAgain is how long a kind that the API server does not have, or does not
// let us see, is taken to have no objects.
const askAgain = time.Minute

// perhaps is lw for a kind that an API server need not have, as it is older than
// the kind, or need not let us see: there are no such objects then, until it is asked
// again. none is the empty list.
func perhaps(lw *cache.ListWatch, none runtime.Object, again time.Duration) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := lw.ListWithContext(ctx, o)
			if withheld(err) {
				return none.DeepCopyObject(), nil
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := lw.WatchWithContext(ctx, o)
			if !withheld(err) || o.SendInitialEvents != nil { // who asks for those waits for their end, and lists if there is none to have
				return w, err
			}
			quiet := watch.NewFake()
			time.AfterFunc(again, quiet.Stop)
			return quiet, nil
		},
	}
}

func withheld(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }
