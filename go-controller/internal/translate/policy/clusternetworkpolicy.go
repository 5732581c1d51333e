package policy

import (
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Reasons of reports about ClusterNetworkPolicies.
const (
	ReasonTiersMissing  = "TiersMissing"
	ReasonPriorityClash = "PriorityClash"
)

// ClusterNetworkPolicy translates what administrators accept, deny and pass.
type ClusterNetworkPolicy struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (ClusterNetworkPolicy) Kind() names.Kind { return names.KindClusterPolicy }

// Atomic implements translate.Atomic.
func (ClusterNetworkPolicy) Atomic() translate.Atomicity { return translate.OfAll }

// Indexes implements translate.Indexed.
func (ClusterNetworkPolicy) Indexes() []cluster.Index { return []cluster.Index{newClusterPolicies()} }

func clusterOwner(name string) nb.Owner { return nb.Owner{Kind: names.KindClusterPolicy, Name: name} }

// Owners implements translate.Translator.
func (ClusterNetworkPolicy) Owners(s *cluster.State) []nb.Owner {
	return nb.Owners(names.KindClusterPolicy, s.ClusterNetworkPolicies, func(name string) string { return name })
}

// Depends implements translate.Translator.
func (ClusterNetworkPolicy) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds: append(dnsKinds(), cluster.KindNode, cluster.KindClusterNetworkPolicy, cluster.KindNetworkDefinition,
			cluster.KindUserNetwork, cluster.KindClusterUserNetwork),
		Subjects: []cluster.Subject{index.PolicyWritten, placed},
	}
}

// Affected implements translate.Translator. The ranges of a primary network concern the policies that are about it, and
// so do the services of exits.
func (ClusterNetworkPolicy) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	x, exits := index.FurtherPoliciesOf(s), exitsChanged(s, c)
	switch {
	case c.Ref.Kind == cluster.KindClusterNetworkPolicy:
		out = append(out, clusterOwner(c.Ref.Name.Name))
	case exits || c.Ref.Kind.Defines():
		n := names.Defined(c.Ref.Name.Namespace, c.Ref.Name.Name)
		for policy := range s.ClusterNetworkPolicies {
			if about := x.About(policy); exits && len(about) > 0 || slices.Contains(about, n) {
				out = append(out, clusterOwner(policy))
			}
		}
	}
	for _, policy := range c.About(index.PolicyWritten) {
		if policy.Namespace == "" {
			out = append(out, clusterOwner(policy.Name))
		}
	}
	for _, policy := range c.About(placed) {
		out = append(out, clusterOwner(policy.Name))
	}
	return out
}

// Rows implements translate.Translator.
func (t ClusterNetworkPolicy) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	p := s.ClusterNetworkPolicies[o.Name]
	if p == nil {
		return translate.Rows{}, nil
	}
	if s.WithoutTiers {
		missing := []cluster.Problem{{Ref: p.Ref(), UID: p.UID, Reason: ReasonTiersMissing,
			Message: "the Northbound database has no tiers of ACLs: the policy has no effect; update OVN to 23.06 or later, " +
				"with its database schema"}}
		return translate.Rows{Reports: missing, Judged: accepted(p, slices.Concat(missing, p.Problems), nil)}, nil
	}
	before, after := clusterPoliciesOf(s).around(p)
	named, pending := domainNames(s, p)
	made := translate.Rows{Reports: slices.Concat(clash(p, before, after), named)}
	for _, n := range append([]names.Network{names.Own}, index.FurtherPoliciesOf(s).About(p.Name)...) {
		policies := index.PoliciesIn(s, n)
		r := policyRows{Maker: translate.Maker{Schema: t.Schema, Owner: o, UID: p.UID}, state: s, network: n,
			policies: policies, subject: policies.Hash(p.Pods), families: s.Config.Families()}
		r.clusterRules(p, before)
		made.Rows = append(made.Rows, r.rows...)
	}
	if !pending { // a new master does not judge a policy otherwise for a moment
		made.Judged = accepted(p, p.Problems, made.Reports)
	}
	return made, nil
}

// clash reports policies with the same tier and priority. The API leaves open which of them decides.
func clash(p *cluster.TieredPolicy, before, after []*cluster.TieredPolicy) []cluster.Problem {
	if len(before)+len(after) == 0 {
		return nil
	}
	relation, others := "after", before
	if len(before) == 0 {
		relation, others = "before", after
	}
	text := fmt.Sprintf("spec.priority: %d policies of tier %s have %d: this one is asked %s %s, by age; give each a "+
		"number of its own", 1+len(before)+len(after), p.Tier, p.Priority, relation, others[0].Name)
	in, out := len(p.Ingress), len(p.Egress)
	for _, q := range slices.Concat(before, after) {
		in, out = in+len(q.Ingress), out+len(q.Egress)
	}
	if max(in, out) > names.ClusterPolicyPlaces {
		text += fmt.Sprintf("; they have more than %d rules for a direction: which of the last rules decides is left to OVN",
			names.ClusterPolicyPlaces)
	}
	return []cluster.Problem{{Ref: p.Ref(), UID: p.UID, Reason: ReasonPriorityClash, Message: text}}
}

// clusterRules makes the ACLs of a policy in one network. before is the policies that are asked before.
func (r *policyRows) clusterRules(p *cluster.TieredPolicy, before []*cluster.TieredPolicy) {
	in, out := 0, 0 // places that these take
	for _, q := range before {
		in, out = in+len(q.Ingress), out+len(q.Egress)
	}
	for i, rule := range p.Ingress {
		r.clusterRule(ingress(), i, in+i, p, rule)
	}
	for i, rule := range p.Egress {
		r.clusterRule(egress(), i, out+i, p, rule)
	}
}

// clusterRule makes the ACLs of a rule. place is the rule's among those of the same tier, priority and direction.
func (r *policyRows) clusterRule(d direction, number, place int, p *cluster.TieredPolicy,
	rule cluster.TieredRule,
) {
	v := ruling{action: nbdb.ACLActionAllowRelated, priority: names.ClusterPolicyACL(p.Priority, place),
		tier: names.TierAdmin, name: rule.Name, tiered: true, severity: p.Logging.Of(rule.Action)}
	if p.Tier == cluster.BaselineTier {
		v.tier = names.TierLast
	}
	switch {
	case rule.Action == cluster.Deny:
		v.action = nbdb.ACLActionDrop
	case rule.Action == cluster.Pass && v.tier < names.TierLast: // behind the last tier everything is allowed
		v.action = nbdb.ACLActionPass
	}
	r.rule(d, number, rule.PolicyRule, v)
}
