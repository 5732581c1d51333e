package reflector

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// askAgain is how long an optional kind that the API server withholds is taken to have no objects.
const askAgain = time.Minute

// optionalListWatch is lw for a kind that the API server may not serve, or may not let us see. As long as it withholds
// the kind there are no objects, and it is asked again after a while. Once objects are known, a refusal is an error:
// an API server that boots refuses for some seconds what it served before, and that must not remove the objects.
func optionalListWatch(
	lw *cache.ListWatch, none func() runtime.Object, again time.Duration, known func() bool,
) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := lw.ListWithContext(ctx, o)
			if Withheld(err) && !known() {
				return none(), nil
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := lw.WatchWithContext(ctx, o)
			// A watch that is to send all objects first must fail, so that the reflector lists instead.
			if !Withheld(err) || known() || o.SendInitialEvents != nil {
				return w, err
			}
			quiet := watch.NewFake()
			time.AfterFunc(again, quiet.Stop)
			return quiet, nil
		},
	}
}

// Withheld tells whether an API server refused because it does not serve the kind, or does not let us see it.
func Withheld(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }
