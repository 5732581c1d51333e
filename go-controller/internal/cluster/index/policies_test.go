package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// answers is everything that Policies says, by the topic that tells of a change of it.
func answers(s *cluster.State, x *Policies) map[cluster.Topic]string {
	subject, key := x.exist()
	out := map[cluster.Topic]string{{Subject: subject, Key: key}: fmt.Sprint(x.Any())}
	for pod := range s.Pods {
		if p := x.OfPod(pod); !p.equal(PodPolicies{}) {
			out[cluster.Topic{Subject: PodPoliciesOf, Key: pod}] = fmt.Sprint(p)
		}
	}
	for _, sel := range x.Selections() {
		if !sel.Subject() && !sel.Peer() && len(sel.PortNames()) == 0 {
			continue // of policies that only isolate: nothing is made of it
		}
		text := fmt.Sprint(sel.Selector, sel.Subject(), sel.Peer(), sel.Addresses(true), sel.Addresses(false))
		for _, n := range sel.PortNames() {
			for _, number := range sel.Numbers(n) {
				text += fmt.Sprint(n, number, sel.AddressesAt(n, number, true), sel.AddressesAt(n, number, false))
			}
		}
		out[cluster.Topic{Subject: PodsSelected, Key: cluster.Name{Name: sel.Hash}}] = text
	}
	for policy, uses := range x.uses {
		written := PolicyWritten
		if policy.Kind == cluster.KindMultiNetworkPolicy {
			written = MultiPolicyWritten
		}
		for _, u := range uses {
			if numbers := x.Selection(x.Hash(u.selector)).Numbers(u.port); len(numbers) > 0 {
				out[cluster.Topic{Subject: written, Key: policy.Name}] += fmt.Sprint(u.selector, u.port, numbers)
			}
		}
	}
	return out
}

// policyPath is random changes of what policies depend on.
type policyPath struct{ r *rand.Rand }

func (p policyPath) some(percent int) bool { return p.r.IntN(100) < percent }

func (p policyPath) labels() cluster.Labels {
	out := map[string]string{}
	for _, k := range []string{"a", "b"} {
		if p.some(50) {
			out[k] = fmt.Sprint(p.r.IntN(2))
		}
	}
	return cluster.NewLabels(out)
}

// namespaceLabels are those of a namespace, whose pods may be in a primary network.
func (p policyPath) namespaceLabels() cluster.Labels {
	out := maps.Collect(p.labels().All())
	if p.some(30) {
		out[names.PrimaryLabel] = ""
	}
	return cluster.NewLabels(out)
}

func (p policyPath) selector() cluster.LabelSelector {
	return []cluster.LabelSelector{{},
		cluster.NewLabelSelector(cluster.Requirement{Key: "a", Operator: cluster.In, Values: []string{"1"}}),
		cluster.NewLabelSelector(cluster.Requirement{Key: "b", Operator: cluster.NotIn, Values: []string{"0"}}),
		cluster.NewLabelSelector(cluster.Requirement{Key: "a", Operator: cluster.DoesNotExist}),
	}[p.r.IntN(4)]
}

func (p policyPath) rules(namespace string) cluster.PolicyRules {
	out := cluster.PolicyRules{Isolates: p.some(70)}
	for range p.r.IntN(3) {
		r := cluster.PolicyRule{AnyPeer: p.some(20), AnyPort: p.some(30)}
		for range p.r.IntN(3) {
			peer := &cluster.PodSelector{Pods: p.selector(), Namespaces: p.selector()}
			if p.some(50) {
				peer = &cluster.PodSelector{Pods: p.selector(), Namespace: namespace}
			}
			r.Peers = append(r.Peers, cluster.PolicyPeer{Pods: peer})
		}
		if p.some(60) {
			r.Ports = append(r.Ports, cluster.PolicyPort{Protocol: cluster.TCP, Name: []string{"web", "api"}[p.r.IntN(2)]})
		}
		if p.some(60) {
			r.Ports = append(r.Ports, cluster.PolicyPort{Protocol: cluster.TCP, First: 80, Last: 80})
		}
		out.Rules = append(out.Rules, r)
	}
	return out
}

// step changes the State.
func (p policyPath) step(t *testing.T, s *cluster.State) cluster.Change {
	t.Helper()
	ns := fmt.Sprint("ns", p.r.IntN(3))
	pod := cluster.Name{Namespace: ns, Name: fmt.Sprint("p", p.r.IntN(4))}
	var o cluster.Object
	switch n := p.r.IntN(10); {
	case n < 2:
		n := &cluster.Namespace{Name: ns, Labels: p.namespaceLabels()}
		if o = n; p.some(50) {
			n.Logging.Deny = cluster.SeverityAlert
		}
	case n < 5:
		o = &cluster.Pod{Name: pod, Node: "n", Labels: p.labels(), Finished: p.some(10), HostNetwork: p.some(10),
			Ports: cluster.NewNamedPorts(map[cluster.PortName]uint16{
				{Protocol: cluster.TCP, Name: "web"}: uint16(8080 + p.r.IntN(2)),
			})}
	case n < 7:
		i := pod.Name[1]*2 + byte(p.r.IntN(2)) // no two pods ever hold one address
		return s.GrantPod(names.Own, cluster.PodPort{Pod: pod}, &annotation.PodNetwork{IPs: []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, ns[2], i}), 24),
			netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 14: ns[2], 15: i}), 64)}})
	default:
		o = &cluster.NetworkPolicy{Name: cluster.Name{Namespace: ns, Name: fmt.Sprint("np", p.r.IntN(4))},
			UID: fmt.Sprint(p.r.Uint64()), Pods: p.selector(), Ingress: p.rules(ns), Egress: p.rules(ns)}
	}
	if p.some(25) {
		c, _ := s.Apply(cluster.Event{Ref: o.Ref()})
		return c
	}
	c, _ := s.Apply(cluster.Event{Ref: o.Ref(), New: o})
	return c
}

// After any path of changes the answers are those of an index that is made anew, and each answer that a change altered
// has a topic.
func TestPoliciesFollow(t *testing.T) {
	for seed := range uint64(30) {
		s, p := NewState(config.DefaultCluster()), policyPath{rand.New(rand.NewPCG(seed, 7))}
		before := answers(s, PoliciesOf(s))
		for i := range 400 {
			c := p.step(t, s)
			now := answers(s, PoliciesOf(s))
			for _, side := range []map[cluster.Topic]string{before, now} {
				for topic := range side {
					gone := topic.Subject == PodPoliciesOf && factsOf(s, names.Own, topic.Key) == nil // its own change tells
					gone = gone || topic.Subject == PolicyWritten && moved(c, topic.Key)
					if before[topic] != now[topic] && !gone && !slices.Contains(c.Topics, topic) {
						t.Fatalf("seed %d, step %d, %s: %v was %q and is %q, without a topic", seed, i, c.Ref, topic,
							before[topic], now[topic])
					}
				}
			}
			before = now
		}
		for pod, kept := range PoliciesOf(s).pods {
			if len(kept.in) == 0 {
				t.Fatalf("seed %d: what policies need of %s is kept, and none selects it", seed, pod)
			}
		}
		fresh := newPolicies()
		for _, k := range fresh.Kinds() {
			for o := range s.Objects(k) {
				fresh.After(s, o.Ref())
			}
		}
		if want := answers(s, fresh); !maps.Equal(before, want) {
			for topic := range want {
				if before[topic] != want[topic] {
					t.Errorf("seed %d: %v is %q, made anew %q", seed, topic, before[topic], want[topic])
				}
			}
			t.Fatalf("seed %d: %d answers, made anew %d", seed, len(before), len(want))
		}
	}
}

// moved is true for a change that tells by itself that a NetworkPolicy or ClusterNetworkPolicy has other rows.
func moved(c cluster.Change, policy cluster.Name) bool {
	return c.Ref == cluster.Ref{Kind: cluster.KindClusterNetworkPolicy, Name: policy} ||
		c.Ref == cluster.Ref{Kind: cluster.KindNetworkPolicy, Name: policy} ||
		slices.Contains(c.About(PrimaryOf), cluster.Name{Name: policy.Namespace})
}

// When the last policy goes, nothing is left of any.
func TestPoliciesEnd(t *testing.T) {
	s, p := NewState(config.DefaultCluster()), policyPath{rand.New(rand.NewPCG(1, 7))}
	for range 300 {
		p.step(t, s)
	}
	for n := range s.NetworkPolicies {
		remove(t, s, cluster.Ref{Kind: cluster.KindNetworkPolicy, Name: n})
	}
	x := PoliciesOf(s)
	if x.Any() || len(x.Selections()) != 0 || len(x.scoped) != 0 || len(x.across) != 0 || len(x.uses) != 0 {
		t.Errorf("left over: %+v", x)
	}
	if len(x.pods) != 0 || len(x.podsIn) != 0 {
		t.Errorf("%d pods are left over", len(x.pods))
	}
}
