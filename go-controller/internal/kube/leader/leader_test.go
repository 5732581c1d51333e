package leader

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

const (
	duration  = 15 * time.Second
	namespace = "kube-system"
	name      = "northbound-master"
)

// link is a master's connection to the API server.
type link struct {
	typed.LeasesGetter
	cut      atomic.Bool // requests get no answer
	conflict atomic.Bool // updates are refused, as after somebody else's
}

func (k *link) Leases(namespace string) typed.LeaseInterface {
	return &leases{k.LeasesGetter.Leases(namespace), k}
}

type leases struct {
	typed.LeaseInterface
	link *link
}

func (l *leases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	if l.link.cut.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.LeaseInterface.Get(ctx, name, o)
}

func (l *leases) Update(
	ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	if l.link.cut.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if l.link.conflict.Load() {
		return nil, apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name, nil)
	}
	return l.LeaseInterface.Update(ctx, lease, o)
}

// candidate is a master that runs.
type candidate struct {
	*Leader
	link   *link
	began  chan time.Time // when it began to work
	ended  chan time.Time // when its work ended
	result chan error     // of Run
}

// start runs a master whose work takes some time to end.
func start(ctx context.Context, t *testing.T, api *fake.Clientset, ending time.Duration) *candidate {
	t.Helper()
	l, err := New(&client.Clients{Kube: api},
		config.LeaderElection{Enabled: true, Namespace: namespace, Name: name, Lease: duration},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := &candidate{Leader: l, link: &link{LeasesGetter: api.CoordinationV1()}, began: make(chan time.Time, 1),
		ended: make(chan time.Time, 1), result: make(chan error, 1)}
	l.lease.Client = c.link
	go func() {
		c.result <- l.Run(ctx, func(ctx context.Context) error {
			c.began <- time.Now()
			<-ctx.Done()
			time.Sleep(ending)
			c.ended <- time.Now()
			return nil
		})
	}()
	return c
}

// startTwo runs a leader and then a standby.
func startTwo(ctx context.Context, t *testing.T, api *fake.Clientset) (leader, standby *candidate) {
	t.Helper()
	leader = start(ctx, t, api, 0)
	<-leader.began
	return leader, start(ctx, t, api, 0)
}

// holder is who holds the Lease.
func holder(t *testing.T, api *fake.Clientset) string {
	t.Helper()
	l, err := api.CoordinationV1().Leases(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *l.Spec.HolderIdentity
}

// A standby says that it can't read the Lease, and why, once it has not for as long as the Lease lasts.
func TestStandbyWithoutAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		api := fake.NewClientset()
		a, b := startTwo(ctx, t, api)
		time.Sleep(time.Second)
		b.link.cut.Store(true)
		time.Sleep(duration - time.Second)
		if err := b.Watches(); err != nil {
			t.Errorf("before the Lease could have expired: %v", err)
		}
		time.Sleep(3 * time.Second)
		if err := b.Watches(); err == nil || !strings.Contains(err.Error(), "northbound-master was not read for 1") ||
			!strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
			t.Errorf("after the Lease could have expired: %v", err)
		}
		b.link.cut.Store(false)
		time.Sleep(5 * time.Second)
		if err := b.Watches(); err != nil {
			t.Errorf("when the API server answers again: %v", err)
		}
		cancel()
		<-a.result
		<-b.result
	})
}

// A leader that can't renew stops at its deadline. The next one leads within the duration of the Lease and a second.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		api := fake.NewClientset()
		a, b := startTwo(ctx, t, api)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if err := a.Holds(); err != nil || b.Holds() == nil || holder(t, api) != a.Identity() {
			t.Fatalf("after a minute: %v, %v", err, b.Holds())
		}
		if h, err := b.Holder(ctx); h != a.Identity() || err != nil {
			t.Errorf("the standby sees %q, %v", h, err)
		}
		if err := b.Watches(); err != nil {
			t.Errorf("the standby: %v", err)
		}
		a.link.cut.Store(true)
		cut := time.Now()
		stopped, began := <-a.ended, <-b.began
		if d := stopped.Sub(cut); d > duration*2/3 {
			t.Errorf("the leader worked for %s without a renewal", d)
		}
		if d := began.Sub(cut); d > duration+time.Second || began.Before(stopped) {
			t.Errorf("the next one leads after %s, want at most %s; the first stopped after %s", d, duration+time.Second,
				stopped.Sub(cut))
		}
		if err := <-a.result; err == nil || !strings.Contains(err.Error(), "was not renewed for 10s") {
			t.Errorf("the first one ended with %v", err)
		}
		if got := holder(t, api); got != b.Identity() || a.Holds() == nil {
			t.Errorf("%q holds the Lease, want the second; the first: %v", got, a.Holds())
		}
		cancel()
		if err := <-b.result; err != nil {
			t.Error(err)
		}
	})
}

// A leader stops at the first sight of another holder, and leaves the Lease alone.
func TestAnotherHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset()
		a := start(t.Context(), t, api, 0)
		<-a.began
		other := "other"
		l, err := api.CoordinationV1().Leases(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l.Spec.HolderIdentity = &other
		if _, err := api.CoordinationV1().Leases(namespace).Update(t.Context(), l, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		a.link.conflict.Store(true)
		taken := time.Now()
		if d := (<-a.ended).Sub(taken); d > duration/7+2*look {
			t.Errorf("the leader worked for %s beside another", d)
		}
		if err := <-a.result; err == nil || !strings.Contains(err.Error(), `master "other" holds it`) {
			t.Errorf("it ended with %v", err)
		}
		if got := holder(t, api); got != other {
			t.Errorf("%q holds the Lease, want the other", got)
		}
	})
}

// A leader that is told to end holds the Lease until its work has ended. Then another leads within a second.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset()
		ctx, cancel := context.WithCancel(t.Context())
		all, cancelAll := context.WithCancel(t.Context())
		a := start(ctx, t, api, 3*time.Second)
		<-a.began
		b := start(all, t, api, 0)
		time.Sleep(time.Second)
		cancel()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := holder(t, api); got != a.Identity() || a.Holds() != nil {
			t.Errorf("while the work ends %q holds the Lease: %v", got, a.Holds())
		}
		ended, began := <-a.ended, <-b.began
		if d := began.Sub(ended); d < 0 || d > time.Second {
			t.Errorf("the next one leads %s after the first has ended", d)
		}
		if err := <-a.result; err != nil {
			t.Error(err)
		}
		cancelAll()
		<-b.result
	})
}

// Without election a master leads at once, and a standby that is told to end does not begin.
func TestWithoutElection(t *testing.T) {
	l, err := New(&client.Clients{Kube: fake.NewClientset()}, config.LeaderElection{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	worked := false
	if err := l.Run(t.Context(), func(context.Context) error { worked = true; return nil }); err != nil || !worked {
		t.Errorf("worked: %t, %v", worked, err)
	}
	if h, err := l.Holder(t.Context()); h != l.Identity() || err != nil || l.Holds() != nil {
		t.Errorf("%q leads, %v, %v", h, err, l.Holds())
	}
}
