package reflector

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// names is a Sink of names alone. listed has a value after each list.
type names struct {
	mu     sync.Mutex
	there  map[cluster.Name]bool
	listed chan time.Time
}

func newNames() *names {
	return &names{there: map[cluster.Name]bool{}, listed: make(chan time.Time, 100)}
}

func (n *names) Known() iter.Seq[cluster.Name] { return maps.Keys(n.there) }

func (n *names) Decode(kinds.Object) (any, error) { return nil, nil }

func (n *names) Put(came []Item, gone []cluster.Name, listed bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, it := range came {
		n.there[it.Name] = true
	}
	for _, g := range gone {
		delete(n.there, g)
	}
	if listed {
		n.listed <- time.Now()
	}
	return nil
}

// services is the row of services with an API server that the test plays.
func services(list func(metav1.ListOptions) (*corev1.ServiceList, error),
	w func() (watch.Interface, error)) kinds.Kind {
	k := kinds.Service()
	k.ListWatch = func(*client.Clients) *cache.ListWatch {
		return &cache.ListWatch{
			ListWithContextFunc:  func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(o) },
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return w() },
		}
	}
	return k
}

func serviceList(of ...string) *corev1.ServiceList {
	out := &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, n := range of {
		out.Items = append(out.Items, corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: n}})
	}
	return out
}

// withoutPauses has client-go log errors without a pause after each, which goes by a clock that is not the test's own.
func withoutPauses(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = handlers[:1]
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
}

// After an outage of the API server, however long, a watch is back within seconds. Time is the test's own.
func TestBackAfterOutage(t *testing.T) {
	withoutPauses(t)
	for name, refusal := range map[string]error{
		"no connection": errors.New("connection reset by peer"),
		"overloaded":    apierrors.NewTooManyRequestsError("later"),
		"booting":       apierrors.NewForbidden(corev1.Resource("services"), "", errors.New("not yet")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var away atomic.Bool
				var tries atomic.Int64
				current := watch.NewFake()
				k := services(func(metav1.ListOptions) (*corev1.ServiceList, error) {
					if tries.Add(1); away.Load() {
						return nil, refusal
					}
					return serviceList("a"), nil
				}, func() (watch.Interface, error) {
					if tries.Add(1); away.Load() {
						return nil, refusal
					}
					return current, nil
				})
				ctx, cancel := context.WithCancel(t.Context())
				sink := newNames()
				var running sync.WaitGroup
				var said, logged strings.Builder
				refused := Refusals{Log: slog.New(slog.NewTextHandler(&said, nil))}
				refusals := 0
				w := Watch{
					Kind: k, Sink: sink, Refused: refused.Of(k, func() { refusals++ }),
					Log: slog.New(slog.NewTextHandler(&logged, nil)),
				}
				running.Go(func() { w.Run(ctx, &client.Clients{Kube: fake.NewClientset()}) })
				<-sink.listed
				synctest.Wait() // it watches
				away.Store(true)
				ended := current
				current = watch.NewFake()
				ended.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := tries.Load(); n > 10*60 {
					t.Errorf("%d tries in 10 minutes, want at most one a second", n)
				}
				forbidden := apierrors.IsForbidden(refusal)
				if len(sink.there) != 1 || (refusals == 1) != forbidden || (refused.Err() != nil) != forbidden {
					t.Errorf("during the outage %v are known, after %d refusals", sink.there, refusals)
				}
				if n := strings.Count(logged.String(), "Failed to watch"); n < 7 || n > 11 {
					t.Errorf("%d failures are logged in 10 minutes, want the 1st, 2nd, 4th and so on:\n%s", n, logged.String())
				}
				if n := strings.Count(said.String(), "kind=services"); (n == 1) != forbidden {
					t.Errorf("the refusal is logged %d times, want once:\n%s", n, said.String())
				}
				away.Store(false)
				back := time.Now()
				if took := (<-sink.listed).Sub(back); took > 3*time.Second {
					t.Errorf("the watch is back after %s, want at most 3 s", took)
				}
				cancel()
				running.Wait()
				if strings.Contains(said.String(), "refuses a kind no more") != forbidden {
					t.Errorf("the end of the refusal is not logged, or of none:\n%s", said.String())
				}
			})
		})
	}
}

// An empty list removes nothing unless a second look agrees; a selector goes along with every request.
func TestEmptyListIsLookedAtTwice(t *testing.T) {
	withoutPauses(t)
	synctest.Test(t, func(t *testing.T) {
		var step atomic.Int64 // 0: two services; 1: lists lie; 2: one service; 3: none
		watches := make(chan *watch.FakeWatcher, 1)
		k := services(func(o metav1.ListOptions) (*corev1.ServiceList, error) {
			if o.FieldSelector != "spec.clusterIP!=None" {
				t.Errorf("listed with selector %q", o.FieldSelector)
			}
			switch s := step.Load(); {
			case s == 0, s == 1 && o.Limit == 1:
				return serviceList("a", "b"), nil
			case s == 2:
				return serviceList("b"), nil
			}
			return serviceList(), nil
		}, func() (watch.Interface, error) {
			w := watch.NewFake()
			watches <- w
			return w, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		sink := newNames()
		var running sync.WaitGroup
		w := Watch{Kind: k, Sink: sink, Selector: "spec.clusterIP!=None"}
		running.Go(func() { w.Run(ctx, &client.Clients{Kube: fake.NewClientset()}) })
		<-sink.listed
		relist := func(s int64) {
			step.Store(s)
			(<-watches).Error(&apierrors.NewResourceExpired("too old").ErrStatus)
		}
		relist(1)
		time.Sleep(time.Minute)
		if len(sink.there) != 2 || len(sink.listed) > 0 {
			t.Errorf("after a list that lies: %v, want both", sink.there)
		}
		step.Store(2)
		<-sink.listed
		if len(sink.there) != 1 {
			t.Errorf("after a list of one: %v", sink.there)
		}
		relist(3)
		<-sink.listed
		if len(sink.there) != 0 {
			t.Errorf("after the end of all: %v", sink.there)
		}
		cancel()
		running.Wait()
	})
}

// A watch ends if the list that it streamed is not taken. The next watch goes on.
func TestRefusedStreamEnds(t *testing.T) {
	withoutPauses(t)
	synctest.Test(t, func(t *testing.T) {
		watches := make(chan *watch.FakeWatcher, 2)
		k := services(func(metav1.ListOptions) (*corev1.ServiceList, error) {
			return serviceList("a"), nil // unlike the stream
		}, func() (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(1, false)
			end := &corev1.Service{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
			end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			w.Action(watch.Bookmark, end)
			watches <- w
			return w, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		sink := newNames()
		var running sync.WaitGroup
		w := Watch{Kind: k, Sink: sink, Log: slog.New(slog.DiscardHandler)}
		streams := struct{ kubernetes.Interface }{fake.NewClientset()} // hides that a fake can't stream lists
		running.Go(func() { w.Run(ctx, &client.Clients{Kube: streams}) })
		<-sink.listed
		if !(<-watches).IsStopped() {
			t.Error("the watch whose list was not taken goes on")
		}
		if (<-watches).IsStopped() {
			t.Error("the next watch has ended")
		}
		cancel()
		running.Wait()
	})
}
