package policy

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// NetworkPolicy translates what policies allow. What they deny follows from a pod's Isolation.
type NetworkPolicy struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (NetworkPolicy) Kind() names.Kind { return names.KindPolicy }

func owner(n cluster.Name) nb.Owner { return nb.Owner{Kind: names.KindPolicy, Name: n.String()} }

// Atomic implements translate.Atomic.
func (NetworkPolicy) Atomic() translate.Atomicity { return translate.OfAll }

// Owners implements translate.Translator.
func (NetworkPolicy) Owners(s *cluster.State) []nb.Owner {
	return nb.Owners(names.KindPolicy, s.NetworkPolicies, cluster.Name.String)
}

// Depends implements translate.Translator.
func (NetworkPolicy) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds:    []cluster.Kind{cluster.KindNetworkPolicy},
		Subjects: []cluster.Subject{index.PolicyWritten, index.LoggingOf, index.PrimaryOf, tiersUsed},
	}
}

// Affected implements translate.Translator. The first ClusterNetworkPolicy concerns every policy, and so does the end
// of the last.
func (t NetworkPolicy) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	if c.Concerns(tiersUsed) {
		out = t.Owners(s)
	}
	for _, namespace := range append(c.About(index.LoggingOf), c.About(index.PrimaryOf)...) {
		for policy := range index.PoliciesOf(s).In(namespace.Name) {
			out = append(out, owner(policy))
		}
	}
	if c.Ref.Kind == cluster.KindNetworkPolicy {
		out = append(out, owner(c.Ref.Name))
	}
	for _, policy := range c.About(index.PolicyWritten) {
		if policy.Namespace != "" {
			out = append(out, owner(policy))
		}
	}
	return out
}

// Rows implements translate.Translator.
func (t NetworkPolicy) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	p := s.NetworkPolicies[cluster.ParseName(o.Name)]
	if p == nil {
		return translate.Rows{}, nil
	}
	if ns := s.Namespaces[p.Name.Namespace]; ns != nil && ns.InPrimary() {
		return translate.Rows{Reports: unserved(p)}, nil
	}
	r := policyRows{
		Maker: translate.Maker{Schema: t.Schema, Owner: o, UID: p.UID}, state: s, policies: index.PoliciesOf(s),
		subject: index.SelectorHash(p.Subject()),
	}
	var logging cluster.Logging
	if ns := s.Namespaces[p.Name.Namespace]; ns != nil {
		logging = ns.Logging
	}
	r.isolate(ingress(), p.Ingress, logging)
	r.isolate(egress(), p.Egress, logging)
	return translate.Rows{Rows: r.rows}, nil
}

// ReasonPrimary is the reason of the report that a policy has no effect, since its pods are in a primary network.
const ReasonPrimary = "PolicyNotServed"

// unserved reports that a policy of a namespace with a primary network has no effect.
func unserved(p *cluster.NetworkPolicy) []cluster.Problem {
	return []cluster.Problem{{Ref: p.Ref(), UID: p.UID, Reason: ReasonPrimary, Message: "the pods of the namespace are " +
		"in a primary network, for which policies are not served: the policy has no effect: all pods of the network reach " +
		"each other, and nobody else connects to them"}}
}

// isolate makes the ACLs of what the policy says about a direction.
func (r *policyRows) isolate(d direction, p cluster.PolicyRules, logging cluster.Logging) {
	if !p.Isolates {
		return
	}
	v := ruling{action: nbdb.ACLActionAllowRelated, priority: names.ACLPolicyAllow, tier: tierOf(r.state),
		severity: logging.Allow}
	for i, rule := range p.Rules {
		r.rule(d, i, rule, v)
	}
	if logging.Deny != "" {
		r.logDenied(d, logging.Deny)
	}
}

// policyRows makes the rows of one policy.
type policyRows struct {
	translate.Maker
	state    *cluster.State
	policies *index.Policies
	subject  string // the hash of the selector of its own pods
	rows     []nb.Row
}

// ruling is what the ACLs of a rule do.
type ruling struct {
	action         string
	priority, tier int
	name           string // of the rule, may be ""
	itself         bool   // the rule decides about a pod that reaches itself through a service
	severity       cluster.Severity
}

// tierOf is the tier of NetworkPolicies.
func tierOf(s *cluster.State) int {
	if tiered(s) {
		return names.TierLast
	}
	return 0
}

// rule makes the ACLs of a rule: one for each address family and protocol. One ACL for several of them would cost more
// flows: ovn-controller multiplies what "||" joins of different fields.
func (r *policyRows) rule(d direction, number int, rule cluster.PolicyRule, v ruling) {
	a := ruleACLs{r, d, v, number}
	if rule.AnyPort {
		a.anyPort(rule)
		return
	}
	for _, p := range cluster.Protocols() {
		var numbers []cluster.PolicyPort
		for _, port := range rule.Ports {
			if port.Protocol == p && port.Name == "" {
				numbers = append(numbers, port)
			}
		}
		if len(numbers) > 0 {
			a.numbers(rule, p, ports(p, numbers))
		}
	}
	for _, name := range rule.PortNames() {
		if d == ingress() {
			a.ownPort(rule, name)
		} else {
			a.theirPort(rule, name)
		}
	}
}
