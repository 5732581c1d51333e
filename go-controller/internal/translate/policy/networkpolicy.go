package policy

import (
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/config"
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
		Kinds: append(dnsKinds(), cluster.KindNetworkPolicy),
		Subjects: []cluster.Subject{index.PolicyWritten, index.LoggingOf, index.PrimaryOf, index.NetworkTiersUsed,
			tiersUsed},
	}
}

// Affected implements translate.Translator. The first ClusterNetworkPolicy concerns every policy, and so does the end
// of the last: in a primary network, every policy there. What the cluster's DNS is concerns those of namespaces with a
// primary network.
func (t NetworkPolicy) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	if c.Concerns(tiersUsed) {
		out = t.Owners(s)
	}
	for _, n := range c.About(index.NetworkTiersUsed) {
		out = append(out, policiesIn(s, names.Network(n.Name), cluster.KindNetworkPolicy, owner)...)
	}
	for _, namespace := range c.About(index.LoggingOf) {
		n, _ := s.PolicyNetwork(namespace.Name)
		for _, policy := range index.PoliciesIn(s, n).In(namespace.Name) {
			if policy.Kind == cluster.KindNetworkPolicy {
				out = append(out, owner(policy.Name))
			}
		}
	}
	dns, moved := dnsChanged(s, c), c.About(index.PrimaryOf)
	if dns || len(moved) > 0 {
		for policy := range s.NetworkPolicies {
			n, _ := s.PolicyNetwork(policy.Namespace)
			if dns && n.Further() || slices.Contains(moved, cluster.Name{Name: policy.Namespace}) {
				out = append(out, owner(policy))
			}
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

// Rows implements translate.Translator. A policy is about the network in which its pods have their default routes.
func (t NetworkPolicy) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	p := s.NetworkPolicies[cluster.ParseName(o.Name)]
	if p == nil {
		return translate.Rows{}, nil
	}
	n, ok := s.PolicyNetwork(p.Name.Namespace)
	if !ok {
		_, why := s.Primary(p.Name.Namespace)
		return translate.Rows{Reports: waiting(p, why)}, nil
	}
	policies := index.PoliciesIn(s, n)
	r := policyRows{
		Maker: translate.Maker{Schema: t.Schema, Owner: o, UID: p.UID}, state: s, policies: policies,
		network: n, subject: policies.Hash(p.Subject()), families: familiesIn(s, n), dns: dnsIn(s, n.Further()),
	}
	var logging cluster.Logging
	if ns := s.Namespaces[p.Name.Namespace]; ns != nil {
		logging = ns.Logging
	}
	r.isolate(ingress(), p.Ingress, logging)
	r.isolate(egress(), p.Egress, logging)
	out := translate.Rows{Rows: r.rows, Reports: overShare(p.Ref(), p, s.Config.Policies)}
	if why := missing(s, n); why != "" { // the rows hold from the moment on when the network is there
		out.Reports = append(out.Reports, waiting(p, fmt.Sprintf("network %s: %s", slashed(n), why))...)
	}
	return out, nil
}

// overShare reports that the policies of the namespace name too much, so that no rule of this one is in effect.
func overShare(ref cluster.Ref, p *cluster.NetworkPolicy, c config.Policies) []cluster.Problem {
	if p.Written == nil {
		return nil
	}
	return []cluster.Problem{{Ref: ref, UID: p.UID, Reason: cluster.ReasonNamespaceLimit,
		Message: fmt.Sprintf("spec.ingress and spec.egress: with them and older policies, namespace %s has more than "+
			"--max-namespace-policy-selectors %d or --max-namespace-policy-terms %d: no rule of this policy is in effect, and "+
			"what other policies do not allow is denied; have fewer policies, or smaller ones",
			p.Name.Namespace, c.MaxNamespaceSelectors, c.MaxNamespaceTerms)}}
}

// isolate makes the ACLs of what the policy says about a direction.
func (r *policyRows) isolate(d direction, p cluster.PolicyRules, logging cluster.Logging) {
	if !p.Isolates {
		return
	}
	v := ruling{action: nbdb.ACLActionAllowRelated, priority: names.ACLPolicyAllow, tier: tierIn(r.state, r.network),
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
	network  names.Network
	subject  string // the hash of the selector of its own pods
	families []names.Family
	dns      *exitService // nil where it is as any other service
	rows     []nb.Row
}

// ruling is what the ACLs of a rule do.
type ruling struct {
	action         string
	priority, tier int
	name           string // of the rule, may be ""
	tiered         bool   // the rule is that of a ClusterNetworkPolicy
	severity       cluster.Severity
}

// tierIn is the tier of NetworkPolicies and MultiNetworkPolicies in a network.
func tierIn(s *cluster.State, n names.Network) int {
	if tieredIn(s, n) {
		return names.TierLast
	}
	return 0
}

// familiesIn lists the address families that policies are about in a network. Those of another network need not be the
// cluster's.
func familiesIn(s *cluster.State, n names.Network) []names.Family {
	if !n.Further() {
		return s.Config.Families()
	}
	return []names.Family{names.IPv4, names.IPv6}
}

// rule makes the ACLs of a rule: one for each address family and protocol. One ACL for several of them would cost more
// flows: ovn-controller multiplies what "||" joins of different fields.
func (r *policyRows) rule(d direction, number int, rule cluster.PolicyRule, v ruling) {
	a := ruleACLs{r, d, v, number}
	if v.tiered && d == egress() {
		a.exitServices(rule)
	}
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
	if d == egress() {
		a.namedDNS(rule)
	}
}
