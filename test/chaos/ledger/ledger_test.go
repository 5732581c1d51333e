package ledger

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/test/scale/load"
)

// The ledger sees an address that changes, that two living pods have, and that is given again too early, and nothing
// else.
func TestLedger(t *testing.T) {
	l := newLedger()
	pod := func(name, value string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			Annotations: map[string]string{load.PodNetworks: value}}}
	}
	const (
		one  = `{"default":{"ip_addresses":["10.1.0.3/24","fd01::3/64"]}}`
		two  = `{"default":{"ip_addresses":["10.1.0.4/24"]}}`
		red  = `{"default":{"ip_addresses":["10.1.0.5/24"]},"red.own/ovn-udn1":{"ip_addresses":["10.1.0.3/24"]}}`
		blue = `{"default":{"ip_addresses":["10.1.0.6/24"]},"blue.own/ovn-udn1":{"ip_addresses":["10.1.0.3/24"]}}`
	)
	expect := func(what string, want ...string) {
		t.Helper()
		if got := l.Take(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	l.see(pod("a", ""))
	l.see(pod("a", one))
	l.see(pod("a", one))
	l.see(pod("b", two))
	expect("two pods with addresses of their own")
	l.see(pod("a", two))
	expect("a change", `pod a: its annotation changed from `+one+` to `+two)
	l.see(pod("c", two))
	expect("an address twice", "pod c has address 10.1.0.4 of living pod b")
	l.gone("a")
	for a, ago := range map[string]time.Duration{"10.1.0.3": time.Hour, "fd01::3": quarantine + time.Second} {
		l.freed[address{clusterNetwork, netip.MustParseAddr(a)}] = release{at: time.Now().Add(-ago)}
	}
	l.see(pod("d", one))
	expect("addresses that were freed long ago")
	if living, reused := l.Counts(); living != 3 || reused != 2 {
		t.Errorf("%d living pods and %d addresses given again, want 3 and 2", living, reused)
	}
	l.resumed = time.Now().Add(-moment) // the test's first event is long ago
	l.gone("d")
	l.see(pod("e", one))
	if wrong := l.Take(); len(wrong) != 2 {
		t.Errorf("addresses that were freed a moment ago: %q, want two findings", wrong)
	}
	l.missed("e")
	l.see(pod("i", one))
	expect("addresses of a pod that went while the watch was away")
	l.last = time.Now().Add(-quarantine)
	l.gone("i")
	l.see(pod("j", one))
	expect("addresses of a pod that may have gone when the watch fell silent")
	l.gone("j")
	l.freed = map[address]release{}
	l.see(pod("k", one))
	l.see(pod("l", two)) // b and c have it
	l.Take()
	l.gone("k")
	l.Interrupted()
	l.gone("l")
	l.see(pod("m", one))
	expect("addresses that a master gave a moment before it was killed")
	l.gone("m")
	l.freed = map[address]release{}
	l.see(pod("f", red))
	l.see(pod("g", blue))
	expect("the same address in two networks")
	l.see(pod("h", strings.Replace(red, "10.1.0.5", "10.1.0.7", 1)))
	expect("an address twice in a network", "pod h has address 10.1.0.3 of network red.own of living pod f")
}
