package local

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
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

// An API server that has no ServiceCIDRs, or doesn't show them, has none.
func TestServiceRangesRefused(t *testing.T) {
	what := schema.GroupResource{Group: "networking.k8s.io", Resource: "servicecidrs"}
	for name, refusal := range map[string]error{
		"an older server": apierrors.NewNotFound(what, ""), "no right": apierrors.NewForbidden(what, "", nil),
	} {
		api := fake.NewClientset()
		api.PrependReactor("list", "servicecidrs", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil,
				refusal
		})
		l, err := New(&client.Clients{Kube: api}, kinds.All(), "n1", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := l.ServiceRanges(); ok {
			t.Errorf("%s: the ranges are known before anybody asked", name)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); l.Run(ctx) }()
		for have, ok := l.ServiceRanges(); !ok || len(have) > 0; have, ok = l.ServiceRanges() {
			<-l.Changed()
		}
		cancel()
		<-done
	}
}
