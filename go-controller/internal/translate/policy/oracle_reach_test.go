package policy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/northbound-net/northbound/go-controller/internal/reach"
	"github.com/northbound-net/northbound/go-controller/internal/testkit/policytest"
)

// asked is the answer of package reach about a connection: that of a question about this port, or about all ports.
func asked(r *reach.Cluster, c connection, all bool) (reach.Answer, error) {
	name := func(e end) string {
		if e.Pod != nil {
			return e.Name
		}
		return e.Addr.String()
	}
	to := name(c.To)
	if !all && c.To.Pod == nil {
		to = "[" + to + "]"
	}
	switch {
	case all:
	case c.Protocol == icmp:
		to += ":/icmp"
	default:
		to = fmt.Sprintf("%s:%d/%s", to, c.Port, c.Protocol)
	}
	q, err := reach.Ask(name(c.From), to)
	if err != nil {
		return reach.Answer{}, err
	}
	check, err := r.Check(q)
	if err != nil {
		return reach.Answer{}, err
	}
	for _, way := range check.Connections {
		if way.From.Addr != c.From.Addr || way.To.Addr != c.To.Addr {
			continue
		}
		for _, a := range way.Answers {
			if hasPort(a.Ports.String(), string(c.Protocol), uint16(c.Port)) {
				return a, nil
			}
		}
	}
	return reach.Answer{}, fmt.Errorf("%s: no answer about it in %+v", c, check)
}

// hasPort tells whether a set of ports as text has a port.
func hasPort(set, protocol string, port uint16) bool {
	for _, part := range strings.Fields(set) {
		p, ports, some := strings.Cut(part, "/")
		if p != "all" && p != strings.ToLower(protocol) {
			continue
		}
		if !some {
			return true
		}
		for _, text := range strings.Split(ports, ",") {
			first, last, ranged := strings.Cut(text, "-")
			if !ranged {
				last = first
			}
			from, err := strconv.ParseUint(first, 10, 16)
			to, err2 := strconv.ParseUint(last, 10, 16)
			if err == nil && err2 == nil && uint16(from) <= port && port <= uint16(to) {
				return true
			}
		}
	}
	return false
}

// wrong is what an answer has wrong about one direction, "" for nothing: whether it is allowed, which rule allows it,
// and which policies deny it.
func (k *kube) wrong(d reach.Decision, e end, t networkingv1.PolicyType, other end, c connection) string {
	if d.Allowed != k.lets(e, t, other, c) {
		return fmt.Sprintf("Kubernetes says allowed %v", !d.Allowed)
	}
	if want, apart := k.tenantsApart(e, t, other, c); apart {
		return map[bool]string{false: "want " + want}[d.Reason == want && d.Object == ""]
	}
	reason, after, _ := strings.Cut(d.Reason, ", after ")
	if want := k.passedOn(e, t, other, c); after != want {
		return "want after " + want
	}
	if e.Pod == nil {
		return map[bool]string{false: "want no rule"}[d.Object == ""]
	}
	if rule := k.clusterRule(e, t, other, c); rule != "" && reason != rule {
		return "want " + rule
	} else if rule != "" {
		return ""
	}
	var isolating []string
	for _, p := range k.Policies {
		if p.Namespace != e.Pod.Namespace || !selects(&p.Spec.PodSelector, e.Pod.Labels) || !affects(p, t) {
			continue
		}
		isolating = append(isolating, "np/"+p.Namespace+"/"+p.Name)
		for i, r := range rulesOf(p, t) {
			if d.Object == isolating[len(isolating)-1] && d.Field == fmt.Sprintf("spec.%s[%d]", strings.ToLower(string(t)), i) {
				if r.lets(k, p, other, c) {
					return ""
				}
				return "the rule does not allow it"
			}
		}
	}
	slices.Sort(isolating)
	want := "isolated by " + strings.Join(isolating, ", ") + ", and no rule allows this"
	if d.Object != "" || !d.Allowed && reason != want {
		return "want " + want
	}
	if none := reason == "no policy selects it"; d.Allowed && none && k.anySelects(e) {
		return "a policy selects it"
	}
	return ""
}

// passedOn is what a decision says of the rule of tier Admin that leaves it to others, "" when none does.
func (k *kube) passedOn(e end, t networkingv1.PolicyType, other end, c connection) string {
	if rule, action := k.tierRule(v1alpha2.AdminTier, e, t, other, c); action ==
		v1alpha2.ClusterNetworkPolicyRuleActionPass {
		return rule + " passed it on"
	}
	return ""
}

// anySelects tells whether any policy selects an end, whatever its directions.
func (k *kube) anySelects(e end) bool {
	return slices.ContainsFunc(k.Policies, func(p *networkingv1.NetworkPolicy) bool {
		return p.Namespace == e.Pod.Namespace && selects(&p.Spec.PodSelector, e.Pod.Labels)
	}) || slices.ContainsFunc(k.ClusterPolicies, func(p *v1alpha2.ClusterNetworkPolicy) bool {
		return k.isAmong(p.Spec.Subject.Namespaces, p.Spec.Subject.Pods, e)
	})
}

// What package reach answers about random clusters is what Kubernetes promises, and the rule that it names is one that
// allows the connection.
func TestAnswersAreWhatKubernetesPromises(t *testing.T) {
	const rounds, connections = 500, 50
	seen := map[string]int{}
	for seed := range uint64(rounds) {
		d := policytest.NewDice(seed, 29)
		k := random(d)
		r := k.asker(t)
		for range connections {
			c := d.Connection(k.Cluster)
			if c.From.Pod != nil && c.From.Pod == c.To.Pod {
				continue // golden tests ask about it
			}
			a, err := asked(r, c, d.Chance(40))
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, k.Text())
			}
			for what, wrong := range map[string]string{"answer": "",
				"egress":  k.wrong(a.Egress, c.From, networkingv1.PolicyTypeEgress, c.To, c),
				"ingress": k.wrong(a.Ingress, c.To, networkingv1.PolicyTypeIngress, c.From, c)} {
				if wrong != "" || a.Allowed != k.allowed(c) {
					t.Fatalf("seed %d: %s: %s: %s\n%+v\n%s", seed, c, what, wrong, a, k.Text())
				}
			}
			for _, e := range []reach.Decision{a.Egress, a.Ingress} {
				seen[fmt.Sprintf("allowed %v, by a rule %v", e.Allowed, e.Object != "")]++
			}
		}
	}
	t.Log(seen)
	for what, least := range map[string]int{"allowed true, by a rule true": 800, "allowed false, by a rule false": 2000,
		"allowed true, by a rule false": 20000} {
		if seen[what] < least {
			t.Errorf("%s: %d times, want %d or more: the clusters prove too little", what, seen[what], least)
		}
	}
}

// asker asks package reach about a cluster.
func (k *kube) asker(t *testing.T) *reach.Cluster {
	t.Helper()
	translated, err := k.translated()
	if err != nil {
		t.Fatalf("%v\n%s", err, k.Text())
	}
	db, errs := translated.Database()
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return reach.New(translated.Core, db)
}

// table is the ports in cells, by pods.
type table struct {
	class map[string]string
	cells map[[2]string]string
}

func newTable(classes []*reach.Class, cells []reach.Cell) table {
	out := table{map[string]string{}, map[[2]string]string{}}
	for _, c := range classes {
		for _, pod := range c.Pods {
			out.class[pod] = c.Name
		}
	}
	for _, c := range cells {
		out.cells[[2]string{c.From, c.To}] = c.Ports
	}
	return out
}

// has tells whether a connection between pods is in the cells.
func (t table) has(c connection) bool {
	ports := t.cells[[2]string{t.class[c.From.Name], t.class[c.To.Name]}]
	if v4, v6, differ := strings.Cut(ports, "; IPv6 "); differ && c.From.Addr.Is4() {
		ports = strings.TrimPrefix(v4, "IPv4 ")
	} else if differ {
		ports = v6
	}
	return hasPort(ports, string(c.Protocol), uint16(c.Port))
}

// All pods of a class may connect, and be connected to, as the matrix says.
func TestMatrixIsWhatKubernetesPromises(t *testing.T) {
	const rounds, connections = 100, 100
	seen := map[bool]int{}
	for seed := range uint64(rounds) {
		d := policytest.NewDice(seed, 37)
		k := random(d)
		m, err := k.asker(t).Matrix(nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		matrix := newTable(m.Classes, m.Cells)
		for range connections {
			c := d.Connection(k.Cluster)
			if c.From.Pod == nil || c.To.Pod == nil || c.From.Pod == c.To.Pod {
				continue
			}
			if matrix.has(c) != k.allowed(c) {
				t.Fatalf("seed %d: %s: the matrix says %v\n%s", seed, c, matrix.has(c), k.Text())
			}
			seen[k.allowed(c)]++
		}
		for _, outside := range m.Classes {
			_, text, _ := strings.Cut(strings.TrimSuffix(outside.Name, ")"), "outside (as ")
			addr, err := netip.ParseAddr(text)
			if err != nil {
				continue
			}
			matrix.class[text] = outside.Name
			for _, pod := range k.Ends(addr.Is4()) {
				c := connection{From: pod, To: end{Name: text, Addr: addr}, Protocol: corev1.ProtocolTCP, Port: 80}
				if pod.Pod != nil && matrix.has(c) != k.allowed(c) {
					t.Fatalf("seed %d: %s: the matrix says %v\n%s", seed, c, matrix.has(c), k.Text())
				}
			}
		}
	}
	if t.Log(seen); seen[true] < 500 || seen[false] < 200 {
		t.Errorf("%v: the clusters prove too little", seen)
	}
}

// A difference has the connections that Kubernetes promises after a change of policies and not before, or the other way
// round.
func TestDiffIsWhatKubernetesPromises(t *testing.T) {
	const rounds, connections = 60, 100
	seen := map[string]int{}
	for seed := range uint64(rounds) {
		d := policytest.NewDice(seed, 41)
		old := random(d)
		now := &kube{Cluster: old.Clone()}
		now.Policies = nil
		for i := range old.Policies {
			if p := old.Policies[i]; d.Chance(70) {
				now.Policies = append(now.Policies, p)
			}
		}
		for i := range d.IntN(3) {
			now.Policies = append(now.Policies, d.Policy(100+i))
		}
		now.ClusterPolicies = slices.DeleteFunc(now.ClusterPolicies, func(*v1alpha2.ClusterNetworkPolicy) bool {
			return d.Chance(30)
		})
		for i := range d.IntN(3) {
			now.ClusterPolicies = append(now.ClusterPolicies, d.ClusterPolicy(100+i))
		}
		diff, err := now.asker(t).DiffFrom(old.asker(t), nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		gained, lost := newTable(diff.Classes, diff.Gained), newTable(diff.Classes, diff.Lost)
		for range connections {
			c := d.Connection(old.Cluster)
			if c.From.Pod == nil || c.To.Pod == nil || c.From.Pod == c.To.Pod {
				continue
			}
			was, is := old.allowed(c), now.allowed(c)
			if gained.has(c) != (is && !was) || lost.has(c) != (was && !is) {
				t.Fatalf("seed %d: %s: was allowed %v, is allowed %v; in the difference gained %v, lost %v\n%s\nnow\n%s", seed, c,
					was, is, gained.has(c), lost.has(c), old.Text(), now.Text())
			}
			seen[fmt.Sprintf("was %v, is %v", was, is)]++
		}
	}
	if t.Log(seen); seen["was true, is false"] < 30 || seen["was false, is true"] < 30 {
		t.Errorf("%v: the clusters prove too little", seen)
	}
}
