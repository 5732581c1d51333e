package reflector

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A kind that is not served has no objects, and has them once it is. Of one that is refused nothing is known.
func TestOptionalListWatch(t *testing.T) {
	what := schema.GroupResource{Group: "networking.k8s.io", Resource: "servicecidrs"}
	for name, c := range map[string]struct {
		refusal error
		none    bool
	}{
		"an older server": {apierrors.NewNotFound(what, ""), true},
		"no right":        {apierrors.NewForbidden(what, "", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			refusal := c.refusal
			var allowed atomic.Bool
			there := networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more", ResourceVersion: "1"}}
			lw := optionalListWatch(&cache.ListWatch{
				ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					if !allowed.Load() {
						return nil, refusal
					}
					return &networkingv1.ServiceCIDRList{Items: []networkingv1.ServiceCIDR{there}}, nil
				},
				WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
					if o.SendInitialEvents != nil {
						return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
					}
					if !allowed.Load() {
						return nil, refusal
					}
					w := watch.NewFakeWithChanSize(1, false)
					w.Add(&there)
					return w, nil
				},
			}, noRanges, time.Millisecond, nil, &Served{})
			informer := cache.NewSharedIndexInformer(lw, &networkingv1.ServiceCIDR{}, 0, nil)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); informer.RunWithContext(ctx) }()
			defer func() { cancel(); <-done }()
			if c.none && !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) || len(informer.GetStore().List()) != 0 {
				t.Fatalf("there are %v, want none", informer.GetStore().List())
			}
			if list, err := lw.ListWithContext(ctx, metav1.ListOptions{}); (err == nil) != c.none {
				t.Fatalf("listing: %v, %v; want an error unless the kind is not served", list, err)
			}
			allowed.Store(true)
			testkit.Eventually(t, "the object", func() string {
				if len(informer.GetStore().List()) == 0 {
					return "none"
				}
				return ""
			})
		})
	}
}

// A kind that is removed has no objects once the API server has said so for a while, and it may come back.
func TestOptionalListWatchOfRemovedKind(t *testing.T) {
	refusal := apierrors.NewNotFound(networkingv1.Resource("servicecidrs"), "")
	there, err := &networkingv1.ServiceCIDRList{Items: make([]networkingv1.ServiceCIDR, 1)}, error(nil)
	lw := optionalListWatch(&cache.ListWatch{
		ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return there, err },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, err },
	}, noRanges, 20*time.Millisecond, nil, &Served{})
	items := func() int {
		list, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			return -1
		}
		return len(list.(*networkingv1.ServiceCIDRList).Items)
	}
	for range 2 {
		if err = nil; items() != 1 {
			t.Fatalf("%d items, want 1", items())
		}
		if err = refusal; items() != -1 {
			t.Errorf("%d items at the first refusal, want an error", items())
		}
		testkit.Eventually(t, "no items", func() string {
			if n := items(); n != 0 {
				return fmt.Sprint(n)
			}
			return ""
		})
	}
}

func noRanges() runtime.Object { return &networkingv1.ServiceCIDRList{} }

// An API server that boots does not know yet what it served before. That is no empty list.
func TestOptionalListWatchOfServedKind(t *testing.T) {
	var refusal error
	lw := optionalListWatch(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return noRanges(), refusal
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, refusal },
	}, noRanges, time.Hour, nil, &Served{})
	if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	refusal = apierrors.NewNotFound(networkingv1.Resource("servicecidrs"), "")
	if list, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, refusal) {
		t.Errorf("listing: %v, %v; want the refusal", list, err)
	}
	if w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, refusal) {
		t.Errorf("watching: %v, %v; want the refusal", w, err)
	}
}

// A kind that had objects before the program started counts as served. So an API server that boots removes nothing, and
// one from which the kind was removed is believed after a while.
func TestOptionalListWatchOfEarlierKind(t *testing.T) {
	down, refusal := apierrors.NewServiceUnavailable("etcd"), apierrors.NewNotFound(networkingv1.Resource("x"), "")
	for _, existed := range []bool{true, false} {
		var err error
		asked := 0
		lw := optionalListWatch(&cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return noRanges(), err },
		}, noRanges, 20*time.Millisecond, func(context.Context) bool { asked++; return existed }, &Served{})
		err = down
		if _, got := lw.ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(got, down) || asked != 0 {
			t.Errorf("existed %v: error %v, asked %d times", existed, got, asked)
		}
		err = refusal
		if _, got := lw.ListWithContext(t.Context(), metav1.ListOptions{}); errors.Is(got, refusal) != existed || asked != 1 {
			t.Errorf("existed %v: error %v, asked %d times", existed, got, asked)
		}
		testkit.Eventually(t, "an empty list", func() string {
			if _, got := lw.ListWithContext(t.Context(), metav1.ListOptions{}); got != nil {
				return got.Error()
			}
			return ""
		})
		if asked != 1 {
			t.Errorf("existed %v: asked %d times", existed, asked)
		}
	}
}

// A reflector first asks for a watch that sends all objects. That a kind without any is not served there is no refusal.
func TestAbsentKindIsNotRefused(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, "")
	k := services(func(metav1.ListOptions) (*corev1.ServiceList, error) { return nil, missing },
		func() (watch.Interface, error) { return nil, missing })
	k.Optional, k.NewList = true, func() runtime.Object { return &corev1.ServiceList{} }
	var refusals []error
	w := Watch{Kind: k, Refused: func(err error) { refusals = append(refusals, err) }}
	lw, initial := w.listWatch(&client.Clients{Kube: fake.NewClientset()}), true
	_, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: &initial})
	if !NotServed(err) {
		t.Errorf("a watch of all objects: %v, want %v, so that the reflector lists", err, missing)
	}
	if list, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil || list == nil {
		t.Errorf("listing: %v, %v; want an empty list", list, err)
	}
	if len(refusals) != 1 || refusals[0] != nil {
		t.Errorf("told of %v, want one that there is no refusal", refusals)
	}
}
