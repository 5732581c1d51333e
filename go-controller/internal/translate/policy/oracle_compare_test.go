package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/testkit/policytest"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// theSchema is one for all tests: reading it from the database's schema takes milliseconds.
var theSchema = sync.OnceValue(nb.NewSchema)

// random is a cluster that dice make.
func random(d policytest.Dice) *kube { return &kube{Cluster: d.Cluster()} }

// translated is what the master makes of a cluster.
func (k *kube) translated() (*offline.Cluster, error) { return k.Translated(theSchema()) }

// rows evaluates the rows that the master makes of a cluster.
func (k *kube) rows() (*verdict.Evaluator, error) { return k.Rows(theSchema()) }

// shrink is the smallest cluster that was found in which Kubernetes and the rows differ about a connection.
func (k *kube) shrink(c connection) (*kube, connection) {
	small, again := k.Shrink(c, func(smaller *policytest.Cluster, c connection) bool {
		try := &kube{Cluster: smaller}
		rows, err := try.rows()
		return err == nil && try.difference(rows, c) != ""
	})
	return &kube{Cluster: small}, again
}

// difference is what Kubernetes and the rows say of a connection, "" when they agree and no ACL is void.
func (k *kube) difference(e *verdict.Evaluator, c connection) string {
	v, err := policytest.Ask(e, c)
	if err != nil {
		return fmt.Sprintf("%s: %v", c, err)
	}
	void, out := false, fmt.Sprintf("%s: Kubernetes says allowed %v, the rows %v", c, k.allowed(c), v.Allowed)
	for _, s := range v.Steps {
		if s.ACL != nil {
			out += fmt.Sprintf("\n  %s, %s: %s of %d %s", s.Switch, s.Stage, s.ACL.Action, s.ACL.Priority, s.ACL.Match)
		}
		for _, acl := range s.Void {
			void = true
			out += fmt.Sprintf("\n  %s, %s: void: %s", s.Switch, s.Stage, acl.Match)
		}
	}
	if v.Allowed == k.allowed(c) && !void {
		return ""
	}
	return out
}

// compare compares what Kubernetes promises with what the rows do, for connections of a random cluster.
func compare(t *testing.T, seed uint64, connections int, seen map[string]int) {
	t.Helper()
	d := policytest.NewDice(seed, 23)
	k := random(d)
	rows, err := k.rows()
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, k.Text())
	}
	for range connections {
		c := d.Connection(k.Cluster)
		if k.difference(rows, c) != "" {
			small, again := k.shrink(c)
			rows, err := small.rows()
			if err != nil {
				t.Fatal(err)
			}
			t.Fatalf("seed %d: %s\n%s", seed, small.difference(rows, again), small.Text())
		}
		k.count(c, seen)
	}
}

// count counts the cases that could have gone wrong.
func (k *kube) count(c connection, seen map[string]int) {
	what := "denied"
	if k.allowed(c) {
		what = "allowed"
	}
	seen[what]++
	if len(k.Families) == 2 && c.From.Addr.Is6() {
		seen[what+" IPv6 of two families"]++
	}
	for _, e := range []struct {
		own, other end
		direction  networkingv1.PolicyType
	}{{c.From, c.To, networkingv1.PolicyTypeEgress}, {c.To, c.From, networkingv1.PolicyTypeIngress}} {
		if e.own.Pod == nil || c.From.Name == c.To.Name {
			continue
		}
		if e.direction == networkingv1.PolicyTypeIngress && k.Multitenant {
			seen[fmt.Sprintf("tenants let in %v", k.tenantLets(e.own, e.other, c))]++
		}
		without := &kube{Cluster: &policytest.Cluster{Namespaces: k.Namespaces}}
		for _, p := range k.Policies {
			without.Policies = append(without.Policies, &networkingv1.NetworkPolicy{ObjectMeta: p.ObjectMeta,
				Spec: networkingv1.NetworkPolicySpec{PodSelector: p.Spec.PodSelector, PolicyTypes: policyTypes(p)}})
		}
		_, lets := k.networkPoliciesDecide(e.own, e.direction, e.other, c)
		if isolated, allowed := without.networkPoliciesDecide(e.own, e.direction, e.other, c); isolated && !allowed {
			seen[fmt.Sprintf("%s: isolated, rules allow %v", e.direction, lets)]++
		}
		for _, tier := range []v1alpha2.Tier{v1alpha2.AdminTier, v1alpha2.BaselineTier} {
			if decided, allowed := k.tierDecides(tier, e.own, e.direction, e.other, c); decided {
				seen[fmt.Sprintf("%s: tier %s allows %v", e.direction, tier, allowed)]++
			}
		}
	}
}

// policyTypes is what holds for a policy that may not say so.
func policyTypes(p *networkingv1.NetworkPolicy) []networkingv1.PolicyType {
	return slices.DeleteFunc([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		func(t networkingv1.PolicyType) bool { return !affects(p, t) })
}

// The rows of random policies do what Kubernetes promises.
func TestRowsDoWhatKubernetesPromises(t *testing.T) {
	const rounds, connections = 2000, 100
	seen := map[string]int{}
	for seed := range uint64(rounds) {
		compare(t, seed, connections, seen)
	}
	fresh := rand.Uint64()
	t.Logf("a new seed: %d", fresh)
	compare(t, fresh, connections, seen)
	t.Logf("in %d clusters: %v", rounds+1, seen)
	for what, least := range map[string]int{"allowed": 50000, "denied": 10000, "denied IPv6 of two families": 3000,
		"Ingress: isolated, rules allow true": 2000, "Egress: isolated, rules allow true": 1500,
		"Ingress: tier Admin allows true": 500, "Egress: tier Admin allows false": 1000,
		"Ingress: tier Baseline allows false": 500, "Egress: tier Baseline allows true": 500,
		"tenants let in false": 3000, "tenants let in true": 8000} {
		if seen[what] < least {
			t.Errorf("%s: %d times in %d clusters, want %d or more: the clusters prove too little", what, seen[what], rounds,
				least)
		}
	}
}
