package reach

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// ordering lists the ClusterNetworkPolicies that select a pod, in the order in which they are asked.
func (c *Cluster) ordering(p *cluster.Pod) []*cluster.TieredPolicy {
	var out []*cluster.TieredPolicy
	if c.State.WithoutTiers || p.HostNetwork {
		return nil // such policies have no effect
	}
	for _, q := range c.State.ClusterNetworkPolicies {
		if selects(c.State, q.Pods, p) {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, compareTiered) // "Admin" is before "Baseline"
	return out
}

// tiered lists all ClusterNetworkPolicies that have an effect, in the order in which they are asked.
func (c *Cluster) tiered() []*cluster.TieredPolicy {
	if c.State.WithoutTiers {
		return nil
	}
	return slices.SortedFunc(maps.Values(c.State.ClusterNetworkPolicies), compareTiered)
}

func compareTiered(a, b *cluster.TieredPolicy) int {
	return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Created, b.Created),
		cmp.Compare(a.Name, b.Name))
}

// selects is true when a selector selects a pod.
func selects(s *cluster.State, of cluster.PodSelector, p *cluster.Pod) bool {
	return of.In(p.Name.Namespace, s.Namespaces[p.Name.Namespace]) && of.Pods.Selects(p.Labels)
}

// tieredRules lists the rules of a ClusterNetworkPolicy for a direction.
func tieredRules(p *cluster.TieredPolicy, d direction) []cluster.TieredRule {
	if d == egress {
		return p.Egress
	}
	return p.Ingress
}

// ruling lists those of the policies that have rules for a direction.
func ruling(all []*cluster.TieredPolicy, d direction) []*cluster.TieredPolicy {
	return slices.DeleteFunc(slices.Clone(all), func(p *cluster.TieredPolicy) bool { return len(tieredRules(p, d)) == 0 })
}

// listTiered names policies: "cnp/a, cnp/b".
func listTiered(policies []*cluster.TieredPolicy) string {
	var out []string
	for _, p := range policies {
		out = append(out, tieredName(p))
	}
	return strings.Join(out, ", ")
}

func tieredName(p *cluster.TieredPolicy) string { return "cnp/" + p.Name }

// tieredNetworks lists the networks that a ClusterNetworkPolicy is about.
func tieredNetworks(s *cluster.State, policy string) []names.Network {
	return append([]names.Network{names.Own}, index.FurtherPoliciesOf(s).About(policy)...)
}

// tieredWarnings says what is probably not meant in the ClusterNetworkPolicies that an older cluster has not, or has
// otherwise.
func (c *Cluster) tieredWarnings(old *Cluster) []string {
	var out []string
	policies := c.tiered()
	for _, p := range policies {
		if before := old.State.ClusterNetworkPolicies[p.Name]; before != nil && before.Equal(p) {
			continue
		}
		w := warner{c, p.Pods, tieredName(p), &out, tieredNetworks(c.State, p.Name)}
		if !w.selectsAny(p.Pods) {
			w.warn("spec.subject", "selects no pod: %s", p.Pods)
			continue
		}
		for _, d := range []direction{ingress, egress} {
			for i, r := range tieredRules(p, d) {
				w.rule(d, i, r.PolicyRule)
				w.decided(d, i, r.PolicyRule, policies, p)
			}
		}
		if slices.ContainsFunc(p.Egress, func(r cluster.TieredRule) bool { return r.Action == cluster.Deny }) {
			w.dns(true)
		}
	}
	return out
}
