package lease

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// newKeeper is a Keeper of node n1, whose UID owner tells, with an API server.
func newKeeper(owner func() (string, bool)) (*fake.Clientset, *Keeper) {
	c := fake.NewClientset()
	return c, NewKeeper(&client.Clients{Kube: c}, "n1", "test", owner, slog.New(slog.DiscardHandler))
}

// A Lease is renewed as long as the node is a gateway. After a refusal it is tried less often. Time is the test's own.
func TestKeepLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, k := newKeeper(func() (string, bool) { return "node-uid", true })
		var tries, refused atomic.Int64
		var alive, may atomic.Bool
		client.PrependReactor("patch", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
			if tries.Add(1); may.Load() {
				return false, nil, nil
			}
			refused.Add(1)
			return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), "ovn-gateway.n1",
				errors.New("not yours"))
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); k.Run(ctx, alive.Load) }()
		pass := func(what string, d time.Duration, wantTries, wantRefused int64) {
			t.Helper()
			tries.Store(0)
			refused.Store(0)
			time.Sleep(d)
			synctest.Wait()
			if n, no := tries.Load(), refused.Load(); n != wantTries || no != wantRefused {
				t.Errorf("%s: %d tries, %d refused; want %d, %d", what, n, no, wantTries, wantRefused)
			}
		}
		pass("no gateway", 21*time.Second, 0, 0)
		alive.Store(true)
		pass("not allowed", time.Minute, 2, 2)
		may.Store(true)
		pass("allowed", 30*time.Second, 15, 0)
		alive.Store(false)
		pass("no gateway any more", 20*time.Second, 0, 0)
		cancel()
		<-done
		if _, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "ovn-gateway.n1",
			metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// A Lease is made, and then renewed; whatever somebody did to it is put right.
func TestRenewLease(t *testing.T) {
	there := true
	client, k := newKeeper(func() (string, bool) { return "node-uid", there })
	leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 3 {
		now := start.Add(time.Duration(i) * time.Second)
		if err := k.renew(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		got, err := leases.Get(t.Context(), "ovn-gateway.n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !got.Spec.RenewTime.Time.Equal(now) || *got.Spec.LeaseDurationSeconds != 15 ||
			*got.Spec.HolderIdentity != "n1" || got.Labels["k8s.ovn.org/lease"] != "gateway" ||
			len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != "node-uid" ||
			got.OwnerReferences[0].Kind != "Node" {
			t.Errorf("lease %+v", got)
		}
		got.Labels, got.Spec.LeaseDurationSeconds = nil, nil
		if _, err := leases.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	there = false
	if err := k.renew(t.Context(), start); err == nil || !strings.Contains(err.Error(), `there is no Node "n1"`) {
		t.Errorf("without a Node: %v", err)
	}
}
