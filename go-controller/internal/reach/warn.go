package reach

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// warnings says what is probably not meant in the policies that an older cluster has not, or has otherwise.
func (c *Cluster) warnings(old *Cluster) []string {
	var out []string
	policies := slices.SortedFunc(maps.Values(c.State.NetworkPolicies), comparePolicies)
	for _, p := range policies {
		if before := old.State.NetworkPolicies[p.Name]; before != nil && before.Equal(p) {
			continue
		}
		n, ok := c.State.PolicyNetwork(p.Name.Namespace)
		w := warner{c, p.Subject(), "np/" + p.Name.String(), &out, []names.Network{n}}
		if !ok {
			w.warn("metadata.namespace", "its pods wait for a primary network, and it has no effect until then")
			continue
		}
		if !w.selectsAny(p.Subject()) {
			w.warn("spec.podSelector", "selects no pod: %s", p.Subject())
			continue
		}
		for _, d := range []direction{ingress, egress} {
			for i, r := range rulesOf(p, d) {
				w.rule(d, i, r)
				w.decided(d, i, r, c.tiered(), nil)
			}
			w.hidden(d, p, policies)
		}
		if p.Egress.Isolates {
			w.dns(false)
		}
	}
	return append(out, c.tieredWarnings(old)...)
}

func comparePolicies(a, b *cluster.NetworkPolicy) int { return cluster.CompareNames(a.Name, b.Name) }

// rulesOf lists the rules of a policy that count in a direction.
func rulesOf(p *cluster.NetworkPolicy, d direction) []cluster.PolicyRule {
	rules := d.of(p)
	if !rules.Isolates {
		return nil
	}
	return rules.Rules
}

// warner warns about one policy.
type warner struct {
	*Cluster
	subject cluster.PodSelector
	name    string
	out     *[]string
	within  []names.Network // the networks that the policy is about
}

func (w warner) warn(field, format string, args ...any) {
	*w.out = append(*w.out, fmt.Sprintf("%s %s: %s", w.name, field, fmt.Sprintf(format, args...)))
}

// field is where the rules of a direction are.
func field(d direction) string { return fmt.Sprintf("spec.%s", d) }

func fieldOf(d direction, i int) string { return fmt.Sprintf("%s[%d]", field(d), i) }

// selectsAny is true when a selector selects a pod that has an address.
func (w warner) selectsAny(s cluster.PodSelector) bool {
	return w.selection(s, func(sel *index.Selection) bool {
		return len(sel.Addresses(true))+len(sel.Addresses(false)) > 0
	})
}

// selection is true when something holds for a selector in any network that the policy is about.
func (w warner) selection(s cluster.PodSelector, is func(*index.Selection) bool) bool {
	return slices.ContainsFunc(w.selections(w.within, s), is)
}

// selections are what a selector of policies selects in networks.
func (c *Cluster) selections(networks []names.Network, s cluster.PodSelector) (out []*index.Selection) {
	for _, n := range networks {
		p := index.PoliciesIn(c.State, n)
		if sel := p.Selection(p.Hash(s)); sel != nil {
			out = append(out, sel)
		}
	}
	return out
}

// rule warns about selectors that select nothing, and named ports that nobody has.
func (w warner) rule(d direction, i int, r cluster.PolicyRule) {
	for _, peer := range r.PodPeers() {
		if !w.selectsAny(peer) && !w.selectsDNS(peer) {
			w.warn(fieldOf(d, i), "selects no pod: %s", peer)
		}
	}
	servers, whose := r.Servers(), "that the rule names"
	if d == ingress {
		servers, whose = []cluster.PodSelector{w.subject}, "that the policy selects"
	}
	for _, name := range r.PortNames() {
		if !slices.ContainsFunc(servers, func(s cluster.PodSelector) bool {
			return w.selection(s, func(sel *index.Selection) bool { return len(sel.Numbers(name)) > 0 })
		}) {
			w.warn(fieldOf(d, i)+".ports", "no pod %s has a container port %s/%s", whose, name.Name, name.Protocol)
		}
	}
}

// hidden warns about rules that allow nothing that another rule does not allow to the same pods.
func (w warner) hidden(d direction, p *cluster.NetworkPolicy, policies []*cluster.NetworkPolicy) {
	for i := range rulesOf(p, d) {
		if by, at := hiding(d, p, i, policies); by != nil {
			w.warn(fieldOf(d, i), "np/%s %s allows all of it", by.Name, fieldOf(d, at))
		}
	}
}

// hiding finds the rule that hides one. Of rules that allow the same to the same pods, the first hides the others.
func hiding(d direction, p *cluster.NetworkPolicy, i int, policies []*cluster.NetworkPolicy,
) (by *cluster.NetworkPolicy, at int) {
	r := rulesOf(p, d)[i]
	for _, other := range policies {
		same := other.Pods.String() == p.Pods.String()
		if other.Name.Namespace != p.Name.Namespace || !same && !other.Pods.All() {
			continue
		}
		for at, s := range rulesOf(other, d) {
			order := cmp.Or(comparePolicies(other, p), cmp.Compare(at, i))
			if order != 0 && covers(s, r) && (order < 0 || !same || !covers(r, s)) {
				return other, at
			}
		}
	}
	return nil, 0
}

// decided warns about a rule when a rule of a ClusterNetworkPolicy that is asked before clearly decides about all that
// it is about. policies are in the order in which they are asked. p is the one of the rule, nil for a NetworkPolicy's.
func (w warner) decided(d direction, i int, r cluster.PolicyRule, policies []*cluster.TieredPolicy,
	p *cluster.TieredPolicy,
) {
	for _, q := range policies {
		if p == nil && q.Tier != cluster.AdminTier {
			return
		}
		for at, s := range tieredRules(q, d) {
			if q == p && at == i {
				return
			}
			asks := s.Action == cluster.Pass && (p == nil || q.Tier != p.Tier)
			if !asks && (q.Pods.All() || q.Pods.String() == w.subject.String()) && covers(s.PolicyRule, r) {
				w.warn(fieldOf(d, i), "%s %s decides about all of it before", tieredName(q), fieldOf(d, at))
				return
			}
		}
	}
}

// covers is true when a rule is clearly about all that another rule is about.
func covers(r, s cluster.PolicyRule) bool {
	peers := r.AnyPeer || !s.AnyPeer && !slices.ContainsFunc(s.Peers, func(p cluster.PolicyPeer) bool {
		return !slices.ContainsFunc(r.Peers, func(q cluster.PolicyPeer) bool { return coversPeer(q, p) })
	})
	ports := r.AnyPort || !s.AnyPort && !slices.ContainsFunc(s.Ports, func(p cluster.PolicyPort) bool {
		return !slices.ContainsFunc(r.Ports, func(q cluster.PolicyPort) bool {
			return q.Protocol == p.Protocol && q.Name == p.Name &&
				(q.First == 0 && q.Name == "" || q.First <= p.First && p.Last <= q.Last && p.First > 0 || q == p)
		})
	})
	return peers && ports
}

func coversPeer(q, p cluster.PolicyPeer) bool {
	switch {
	case p.Pods != nil:
		return q.Pods != nil && (q.Pods.All() || q.Pods.String() == p.Pods.String())
	case p.Nodes != nil:
		return q.Nodes != nil && q.Nodes.String() == p.Nodes.String()
	case p.Domain != "":
		return q.Domain == p.Domain
	}
	return !slices.ContainsFunc(p.Addresses, func(a netip.Prefix) bool {
		return !slices.ContainsFunc(q.Addresses, func(b netip.Prefix) bool {
			return b.Bits() <= a.Bits() && b.Contains(a.Addr())
		})
	})
}
