package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/reflector"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestServiceRanges(t *testing.T) {
	l, client := startLocal(t)
	api := client.NetworkingV1().ServiceCIDRs()
	await := func(want ...string) {
		t.Helper()
		var ps []netip.Prefix
		for _, w := range want {
			ps = append(ps, netip.MustParsePrefix(w))
		}
		for have, ok := l.ServiceRanges(); !ok || !slices.Equal(have, ps); have, ok = l.ServiceRanges() {
			select {
			case <-l.Changed():
			case <-t.Context().Done():
				t.Fatalf("ranges %v %v, want %v", have, ok, ps)
			}
		}
	}
	add := func(name string, cidrs ...string) {
		t.Helper()
		r := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs}}
		if _, err := api.Create(t.Context(), r, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	await()
	add("kubernetes", "fd02::/112", "10.96.0.0/16")
	add("more", "192.0.2.0/24")
	add("again", "192.0.2.0/24")
	await("10.96.0.0/16", "192.0.2.0/24", "fd02::/112")
	if err := api.Delete(t.Context(), "kubernetes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("192.0.2.0/24")
}

// An API server that does not serve ServiceCIDRs has none. One that refuses to list them may have some: they are not
// known, and the refusal is reported until it ends.
func TestServiceRangesRefused(t *testing.T) {
	what := schema.GroupResource{Group: "networking.k8s.io", Resource: "servicecidrs"}
	for name, c := range map[string]struct {
		refusal error
		known   bool
	}{
		"an older server": {apierrors.NewNotFound(what, ""), true},
		"no right":        {apierrors.NewForbidden(what, "", errors.New("no RBAC policy matched")), false},
	} {
		t.Run(name, func(t *testing.T) {
			var allowed atomic.Bool
			api := fake.NewClientset()
			api.PrependReactor("list", "servicecidrs", func(k8stesting.Action) (bool, runtime.Object, error) {
				return !allowed.Load(), nil, c.refusal
			})
			l, err := New(&client.Clients{Kube: api}, kinds.All(), "n1", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := l.ServiceRanges(); ok {
				t.Error("the ranges are known before anybody asked")
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); l.Run(ctx) }()
			defer func() { cancel(); <-done }()
			until := func(what string, done func() bool) {
				t.Helper()
				testkit.Eventually(t, what, func() string {
					return map[bool]string{false: fmt.Sprint(l.Refusals.Err())}[done()]
				})
			}
			known := func() bool { have, ok := l.ServiceRanges(); return ok && len(have) == 0 }
			if !c.known {
				until("the refusal", func() bool { return errors.Is(l.Refusals.Err(), reflector.ErrRefused) })
				if have, ok := l.ServiceRanges(); ok {
					t.Errorf("the ranges are known to be %v, though the API server refuses to list them", have)
				}
				if err := l.Refusals.Err(); !strings.Contains(err.Error(), "servicecidrs.networking.k8s.io") {
					t.Errorf("the refusal %q does not name what is refused", err)
				}
				allowed.Store(true)
			}
			until("the ranges", func() bool { return known() && l.Refusals.Err() == nil })
		})
	}
}
