package policy

import (
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Reasons of reports about MultiNetworkPolicies.
const (
	ReasonNoNetwork   = "PolicyNetworkMissing"
	ReasonNoAddresses = "PolicyNeedsAddresses"
)

// MultiNetworkPolicy translates what policies allow in networks other than the cluster's own. What they deny follows
// from the NetworkIsolation.
type MultiNetworkPolicy struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (MultiNetworkPolicy) Kind() names.Kind { return names.KindMultiPolicy }

func multiOwner(n cluster.Name) nb.Owner {
	return nb.Owner{Kind: names.KindMultiPolicy, Name: n.String()}
}

// Atomic implements translate.Atomic.
func (MultiNetworkPolicy) Atomic() translate.Atomicity { return translate.OfAll }

// Owners implements translate.Translator.
func (MultiNetworkPolicy) Owners(s *cluster.State) []nb.Owner {
	return nb.Owners(names.KindMultiPolicy, s.MultiNetworkPolicies, cluster.Name.String)
}

// Depends implements translate.Translator.
func (MultiNetworkPolicy) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds: append(dnsKinds(), cluster.KindMultiNetworkPolicy, cluster.KindNetworkDefinition,
			cluster.KindUserNetwork, cluster.KindClusterUserNetwork),
		Subjects: []cluster.Subject{index.MultiPolicyWritten, index.NetworkTiersUsed},
	}
}

// Affected implements translate.Translator. A network's definition says whether its pods have addresses.
func (t MultiNetworkPolicy) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	switch c.Ref.Kind {
	case cluster.KindMultiNetworkPolicy:
		out = append(out, multiOwner(c.Ref.Name))
	case cluster.KindNetworkDefinition, cluster.KindUserNetwork, cluster.KindClusterUserNetwork:
		network := names.Defined(c.Ref.Name.Namespace, c.Ref.Name.Name)
		out = append(out, policiesIn(s, network, cluster.KindMultiNetworkPolicy, multiOwner)...)
	}
	for _, n := range c.About(index.NetworkTiersUsed) {
		out = append(out, policiesIn(s, names.Network(n.Name), cluster.KindMultiNetworkPolicy, multiOwner)...)
	}
	if dnsChanged(s, c) {
		out = append(out, t.Owners(s)...)
	}
	for _, policy := range c.About(index.MultiPolicyWritten) {
		out = append(out, multiOwner(policy))
	}
	return out
}

// policiesIn lists the owners of the policies of a kind that are about a network other than the cluster's own.
func policiesIn(s *cluster.State, n names.Network, k cluster.Kind, owner func(cluster.Name) nb.Owner) (out []nb.Owner) {
	for _, policy := range index.FurtherPoliciesOf(s).In(n).All() {
		if policy.Kind == k {
			out = append(out, owner(policy.Name))
		}
	}
	return out
}

// Rows implements translate.Translator. A policy has rows for each network that it is about.
func (t MultiNetworkPolicy) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	p := s.MultiNetworkPolicies[cluster.ParseName(o.Name)]
	if p == nil {
		return translate.Rows{}, nil
	}
	out := translate.Rows{Reports: overShare(p.Ref(), &p.NetworkPolicy, s.Config.Policies)}
	report := func(reason, format string, args ...any) {
		out.Reports = append(out.Reports, cluster.Problem{Ref: p.Ref(), UID: p.UID, Reason: reason,
			Message: fmt.Sprintf(format, args...)})
	}
	for _, n := range p.Networks {
		if why := missing(s, n); why != "" {
			report(ReasonNoNetwork, "network %s: %s: the policy has no effect there", slashed(n), why)
		}
		policies, network := index.FurtherPoliciesOf(s).In(n), s.Networks[n]
		r := policyRows{Maker: translate.Maker{Schema: t.Schema, Owner: o, UID: p.UID}, state: s, policies: policies,
			network: n, subject: policies.Hash(p.Subject()), families: familiesIn(s, n),
			dns: dnsIn(s, network != nil && network.Primary)}
		in, eg := p.Ingress, p.Egress
		if network != nil && len(network.Subnets) == 0 {
			var left []string
			in.Rules = addressed(in.Rules, ingress(), &left)
			eg.Rules = addressed(eg.Rules, egress(), &left)
			if len(left) > 0 {
				report(ReasonNoAddresses, "network %s has no subnets, so that the addresses of its pods are not known: %s: "+
					"podSelector, namespaceSelector and names of ports allow nothing there, want ipBlock and numbers",
					slashed(n), listedFew(left))
			}
		}
		r.isolate(ingress(), in, cluster.Logging{})
		r.isolate(egress(), eg, cluster.Logging{})
		out.Rows = append(out.Rows, r.rows...)
	}
	return out, nil
}

// missing is why a network is not there; "" when it is.
func missing(s *cluster.State, n names.Network) string {
	name, _ := cluster.DefinitionOf(n)
	d := s.NetworkDefinitions[name]
	switch network := s.Networks[n]; {
	case network != nil:
		return ""
	case d == nil && s.UserNetwork(name) != nil:
		return fmt.Sprintf("its %s can't be used", s.UserNetwork(name).Ref().Kind)
	case d == nil:
		return "there is no such NetworkAttachmentDefinition or UserDefinedNetwork, and no such " +
			"ClusterUserDefinedNetwork that selects the namespace"
	case d.Foreign:
		return "another plugin serves it"
	case d.Invalid != "":
		return "its definition can't be used: " + d.Invalid
	}
	return "it is refused"
}

// slashed is the name of a network as the annotation has it.
func slashed(n names.Network) string {
	name, _ := cluster.DefinitionOf(n)
	return name.String()
}

// addressed is the rules without what needs the addresses of pods; left gets the rules that lack something then.
func addressed(rules []cluster.PolicyRule, d direction, left *[]string) []cluster.PolicyRule {
	out := slices.Clone(rules)
	for i, r := range rules {
		out[i] = r.WithoutPods()
		if len(out[i].Peers) != len(r.Peers) || len(out[i].Ports) != len(r.Ports) {
			*left = append(*left, fmt.Sprintf("spec.%s[%d]", d.role, i))
		}
	}
	return out
}

// listedFew is a list in words, with an end.
func listedFew(all []string) string {
	l := &listed{}
	for _, text := range all {
		l.add("%s", text)
	}
	return l.text
}
