package core_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
	"github.com/northbound-net/northbound/go-controller/internal/translate/service"
)

// Services that have each as much as a Service may have are served as far as the limit of their namespace goes, the
// oldest first. Those of other namespaces do not notice.
func TestServicesOfANamespace(t *testing.T) {
	w := newWorld(t)
	var objects []cluster.Object
	for i := range 25 {
		s := hostile(i, 39, 100) // 4,000 VIPs
		s.Created = int64(100 - i)
		objects = append(objects, s)
	}
	other := serviceOf("a", 200, "192.0.2.1")
	w.put(append(objects, other)...)
	const whole, bare = 4000, 100
	check := func(what string, oldest int) {
		t.Helper()
		vips, _ := w.balanced()
		sum := 0
		for i := range 25 {
			n := vips[fmt.Sprintf("Service_evil0/hostile%d_TCP", i)]
			if i >= oldest-3 && i <= oldest && n != whole || i > oldest && n != 0 {
				t.Errorf("%s: hostile%d has %d VIPs", what, i, n)
			}
			sum += n
		}
		if limit := config.DefaultServices().MaxNamespaceVIPs; sum > limit || sum <= limit-bare {
			t.Errorf("%s: %d VIPs in the namespace, want almost %d", what, sum, limit)
		}
		if n := vips["Service_default/a_TCP"]; n != 2 {
			t.Errorf("%s: the service of another namespace has %d VIPs, want 2", what, n)
		}
	}
	check("all", 24)
	told := map[string]bool{}
	for _, p := range w.reports {
		told[p.Ref.Name.String()] = p.Reason == service.ReasonTooManyVIPs &&
			strings.Contains(p.Message, "--max-namespace-vips 16384")
	}
	if len(told) != 21 || !told["evil0/hostile0"] || told["default/a"] {
		t.Errorf("told are %v", told)
	}
	for i := 24; i > 20; i-- {
		w.drop(objects[i])
		check("without the oldest", i-1)
	}
	again := core.New(config.DefaultCluster(), nb.NewSchema(), all.Translators(nb.NewSchema()))
	for _, o := range append(objects[:21:21], other) {
		again.Step([]cluster.Event{{Ref: o.Ref(), New: o}})
	}
	again.Start()
	for name, s := range w.State.Services {
		if got := again.State.Services[name]; got.Cut != s.Cut {
			t.Errorf("%s lacks %d classes after a restart, %d before", name, got.Cut, s.Cut)
		}
	}
}

// manyTerms is a policy with so many ranges of addresses.
func manyTerms(namespace string, i, ranges int) *cluster.NetworkPolicy {
	name := fmt.Sprintf("p%02d", i)
	p := &cluster.NetworkPolicy{Name: cluster.Name{Namespace: namespace, Name: name}, UID: "uid-" + name, Created: 1,
		Ingress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{AnyPort: true}}}}
	for j := range ranges {
		a := netip.AddrFrom4([4]byte{byte(100 + i), byte(j >> 8), byte(j), 1})
		p.Ingress.Rules[0].Peers = append(p.Ingress.Rules[0].Peers,
			cluster.PolicyPeer{Addresses: []netip.Prefix{netip.PrefixFrom(a, 32)}})
	}
	return p
}

// allowing counts the ACLs that name an address of a policy of manyTerms.
func (w *world) allowing(i int) (n int) {
	address := fmt.Sprintf("%d.0.0.1", 100+i)
	for _, m := range w.db.Rows(nbdb.ACLTable) {
		if strings.Contains(m.(*nbdb.ACL).Match, address) {
			n++
		}
	}
	return n
}

// Policies of a namespace are in effect as far as its limit goes, the oldest first. One that is not isolates its pods
// and allows nothing. Those of other namespaces do not notice, and MultiNetworkPolicies have a limit of their own.
func TestPoliciesOfANamespace(t *testing.T) {
	w := newWorld(t)
	var objects []cluster.Object
	for i := range 10 {
		objects = append(objects, manyTerms("evil", i, 4000))
	}
	multi := &cluster.MultiNetworkPolicy{NetworkPolicy: *manyTerms("evil", 21, 10)}
	w.put(append(objects, manyTerms("shop", 20, 10), multi)...)
	check := func(what string, first, last int) {
		t.Helper()
		for i := range 10 {
			want := 0
			if i >= first && i <= last {
				want = 1
			}
			if got := w.allowing(i); got != want {
				t.Errorf("%s: %d ACLs of policy %d, want %d", what, got, i, want)
			}
		}
		if n := w.allowing(20); n != 1 {
			t.Errorf("%s: %d ACLs of the policy of another namespace, want 1", what, n)
		}
		if p := w.State.MultiNetworkPolicies[multi.Name]; len(p.Ingress.Rules) != 1 {
			t.Errorf("%s: the MultiNetworkPolicy has no rules", what)
		}
		for _, p := range w.State.NetworkPolicies {
			if !p.Ingress.Isolates {
				t.Errorf("%s: policy %s does not isolate", what, p.Name)
			}
		}
	}
	check("all", 0, 3)
	told := 0
	for _, p := range w.reports {
		if p.Reason == cluster.ReasonNamespaceLimit && p.Ref.Name.Namespace == "evil" &&
			strings.Contains(p.Message, "--max-namespace-policy-terms 20000") {
			told++
		}
	}
	if told != 6 {
		t.Errorf("%d policies were told, want 6: %v", told, w.reports)
	}
	w.drop(objects[0])
	check("without the oldest", 1, 4)
	older := manyTerms("evil", 0, 4000)
	older.Created = 0
	w.put(older)
	check("with an older one", 0, 3)
	w.put(manyTerms("evil", 4, 3000)) // there is room for this one
	check("with a smaller one", 0, 4)
}
