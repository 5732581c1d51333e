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

// manyFurther is how many networks there are: the last is one of several namespaces, the others are of ns0.
const manyFurther = 3

func further(i int) names.Network {
	if i == manyFurther-1 {
		return names.Defined("", "shared")
	}
	return names.Defined("ns0", fmt.Sprint("d", i))
}

// definition is an object that describes one of these networks, or that describes none.
func (p policyPath) definition() cluster.Object {
	n := further(p.r.IntN(manyFurther))
	name, _ := cluster.DefinitionOf(n)
	if name.Namespace == "" {
		u := &cluster.UserNetwork{Name: name}
		if p.some(80) {
			u.Network = &cluster.Network{Name: n, Topology: cluster.Layer2, MTU: p.r.IntN(2), UserDefined: true}
		}
		return u
	}
	d := &cluster.NetworkDefinition{Name: name}
	if p.some(80) {
		d.Network = &cluster.Network{Name: n, Topology: cluster.Layer2, MTU: p.r.IntN(2), Primary: p.some(60)}
	}
	return d
}

// furtherStep changes what policies of further networks depend on.
func (p policyPath) furtherStep(t *testing.T, s *cluster.State) cluster.Change {
	t.Helper()
	ns, n := fmt.Sprint("ns", p.r.IntN(3)), further(p.r.IntN(manyFurther))
	pod := cluster.Name{Namespace: ns, Name: fmt.Sprint("p", p.r.IntN(4))}
	port := cluster.PodPort{Pod: pod, Interface: fmt.Sprint("net", p.r.IntN(3))}
	var o cluster.Object
	switch k := p.r.IntN(15); {
	case k < 1:
		o = &cluster.Namespace{Name: "ns0", Labels: p.namespaceLabels()}
	case k < 3:
		o = p.definition()
	case k < 7:
		q := &cluster.Pod{Name: pod, Node: "n", Labels: p.labels(), Finished: p.some(10)}
		for i := range 3 {
			if p.some(60) {
				q.Attachments = append(q.Attachments, cluster.Attachment{Network: further(p.r.IntN(manyFurther)),
					Interface: fmt.Sprint("net", i)})
			}
		}
		o = q
	case k < 10 && s.Networks[n] != nil:
		if p.some(50) { // of the primary network
			port = cluster.PodPort{Pod: cluster.Name{Namespace: "ns0", Name: pod.Name}, Interface: names.PrimaryInterface}
		}
		// No two ports ever hold one address.
		i := pod.Name[1]*8 + (port.Interface[len(port.Interface)-1]&3)*2 + byte(p.r.IntN(2))
		if port.Interface == names.PrimaryInterface {
			ns = "nsp"
		}
		return s.GrantPod(n, port, &annotation.PodNetwork{IPs: []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, ns[2], i}), 16)}})
	case k < 12:
		q := &cluster.MultiNetworkPolicy{NetworkPolicy: cluster.NetworkPolicy{UID: fmt.Sprint(p.r.Uint64()),
			Name: cluster.Name{Namespace: ns, Name: fmt.Sprint("np", p.r.IntN(3))},
			Pods: p.selector(), Ingress: p.rules(ns), Egress: p.rules(ns)}}
		for i := range manyFurther {
			if p.some(60) {
				q.Networks = append(q.Networks, further(i))
			}
		}
		o = q
	case k < 13:
		o = &cluster.TieredPolicy{Name: fmt.Sprint("cnp", p.r.IntN(3)), UID: fmt.Sprint(p.r.Uint64()),
			Pods:    cluster.PodSelector{Namespaces: p.selector(), Pods: p.selector()},
			Ingress: p.tieredRules(ns), Egress: p.tieredRules(ns)}
	default:
		return p.step(t, s)
	}
	e := cluster.Event{Ref: o.Ref(), New: o}
	if p.some(25) {
		e.New = nil
	}
	c, _ := s.Apply(e)
	return c
}

func (p policyPath) tieredRules(namespace string) (out []cluster.TieredRule) {
	for _, r := range p.rules(namespace).Rules {
		out = append(out, cluster.TieredRule{Action: cluster.Deny, PolicyRule: r})
	}
	return out
}

func (x *FurtherPolicies) answers(s *cluster.State) map[names.Network]map[cluster.Topic]string {
	out := map[names.Network]map[cluster.Topic]string{}
	for i := range manyFurther {
		n := further(i)
		out[n] = answers(s, x.In(n))
		if x.In(n).Tiered() {
			out[n][cluster.Topic{Subject: NetworkTiersUsed, Key: cluster.Name{Name: string(n)}}] = "tiered"
		}
	}
	for policy := range s.ClusterNetworkPolicies {
		for _, n := range x.About(policy) {
			out[n][cluster.Topic{Subject: PolicyWritten, Key: cluster.Name{Name: policy}}] += " about it"
		}
	}
	return out
}

// After any path of changes the answers about each network are those of an index that is made anew. Each answer that a
// change altered has a topic.
func TestFurtherPoliciesFollow(t *testing.T) {
	for seed := range uint64(30) {
		s, p := NewState(config.DefaultCluster()), policyPath{rand.New(rand.NewPCG(seed, 8))}
		before := FurtherPoliciesOf(s).answers(s)
		for i := range 400 {
			c := p.furtherStep(t, s)
			now := FurtherPoliciesOf(s).answers(s)
			for n := range now {
				for _, side := range []map[cluster.Topic]string{before[n], now[n]} {
					for topic := range side {
						own := topic.Subject == PodPoliciesOf && factsOf(s, n, topic.Key) == nil || topic.Subject ==
							MultiPolicyWritten && c.Ref == cluster.Ref{Kind: cluster.KindMultiNetworkPolicy, Name: topic.Key}
						own = own || topic.Subject == PolicyWritten && moved(c, topic.Key)
						if before[n][topic] != now[n][topic] && !own && !slices.Contains(c.Topics, topic) {
							t.Fatalf("seed %d, step %d, %s, network %s: %v was %q and is %q, without a topic", seed, i, c.Ref, n,
								topic, before[n][topic], now[n][topic])
						}
					}
				}
			}
			before = now
		}
		fresh := newFurtherPolicies()
		for _, k := range fresh.Kinds() {
			for o := range s.Objects(k) {
				fresh.After(s, o.Ref())
			}
		}
		for n, want := range fresh.answers(s) {
			if !maps.Equal(before[n], want) {
				t.Fatalf("seed %d, network %s: %v, made anew %v", seed, n, before[n], want)
			}
		}
		for n := range s.MultiNetworkPolicies {
			remove(t, s, cluster.Ref{Kind: cluster.KindMultiNetworkPolicy, Name: n})
		}
		for n := range s.NetworkPolicies {
			remove(t, s, cluster.Ref{Kind: cluster.KindNetworkPolicy, Name: n})
		}
		for n := range s.ClusterNetworkPolicies {
			remove(t, s, cluster.Ref{Kind: cluster.KindClusterNetworkPolicy, Name: cluster.Name{Name: n}})
		}
		if x := FurtherPoliciesOf(s); len(x.networks)+len(x.about)+len(x.selected) != 0 {
			t.Fatalf("seed %d: without policies there is something left over: %+v", seed, x)
		}
	}
}
