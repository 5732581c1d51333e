package policy_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/northbound-net/northbound/go-controller/internal/testkit/policytest"
)

// This file states what the API of ClusterNetworkPolicies promises (sigs.k8s.io/network-policy-api, v1alpha2).

// tierDecides tells whether the policies of a tier accept or deny a connection of an end.
func (k *kube) tierDecides(tier v1alpha2.Tier, e end, direction networkingv1.PolicyType, other end, c connection,
) (decided, allowed bool) {
	_, action := k.tierRule(tier, e, direction, other, c)
	accepted := action == v1alpha2.ClusterNetworkPolicyRuleActionAccept
	return accepted || action == v1alpha2.ClusterNetworkPolicyRuleActionDeny, accepted
}

// clusterRule is the rule of a ClusterNetworkPolicy that ends the search for one, "" for none.
func (k *kube) clusterRule(e end, direction networkingv1.PolicyType, other end, c connection) string {
	if decided, _ := k.tierDecides(v1alpha2.AdminTier, e, direction, other, c); decided {
		rule, _ := k.tierRule(v1alpha2.AdminTier, e, direction, other, c)
		return rule
	}
	if isolated, _ := k.networkPoliciesDecide(e, direction, other, c); isolated {
		return ""
	}
	rule, _ := k.tierRule(v1alpha2.BaselineTier, e, direction, other, c)
	return rule
}

// tierRule is the first rule of a tier that matches a connection of an end, and its action. Policies with the lowest
// priority are asked first, and within a policy the first rule.
func (k *kube) tierRule(tier v1alpha2.Tier, e end, direction networkingv1.PolicyType, other end, c connection,
) (rule string, action v1alpha2.ClusterNetworkPolicyRuleAction) {
	var policies []*v1alpha2.ClusterNetworkPolicy
	for _, p := range k.ClusterPolicies {
		if s := p.Spec.Subject; p.Spec.Tier == tier && k.isAmong(s.Namespaces, s.Pods, e) {
			policies = append(policies, p)
		}
	}
	slices.SortFunc(policies, func(a, b *v1alpha2.ClusterNetworkPolicy) int {
		// "There is no way for the user to determine" the order of equals. Here the age and the name do.
		return cmp.Or(cmp.Compare(a.Spec.Priority, b.Spec.Priority), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range policies {
		for i, r := range clusterRules(p, direction) {
			if !slices.ContainsFunc(r.To, func(peer v1alpha2.ClusterNetworkPolicyEgressPeer) bool {
				return k.isClusterPeer(peer, other)
			}) || !k.isClusterPort(p, r, c) {
				continue
			}
			return fmt.Sprintf("cnp/%s spec.%s[%d]", p.Name, strings.ToLower(string(direction)), i), r.Action
		}
	}
	return "", ""
}

// clusterRules lists the rules of one direction as those of egress.
func clusterRules(p *v1alpha2.ClusterNetworkPolicy, direction networkingv1.PolicyType,
) []v1alpha2.ClusterNetworkPolicyEgressRule {
	if direction == networkingv1.PolicyTypeEgress {
		return p.Spec.Egress
	}
	var out []v1alpha2.ClusterNetworkPolicyEgressRule
	for _, r := range p.Spec.Ingress {
		rule := v1alpha2.ClusterNetworkPolicyEgressRule{Action: r.Action, Protocols: r.Protocols}
		for _, f := range r.From {
			rule.To = append(rule.To, v1alpha2.ClusterNetworkPolicyEgressPeer{Namespaces: f.Namespaces, Pods: f.Pods})
		}
		out = append(out, rule)
	}
	return out
}

// isAmong tells whether a selector of namespaces, or of pods of namespaces, selects an end: "host-networked pods are
// not included".
func (k *kube) isAmong(namespaces *metav1.LabelSelector, pods *v1alpha2.NamespacedPod, e end) bool {
	switch {
	case e.Pod == nil:
		return false
	case namespaces != nil:
		return selects(namespaces, k.labelsOf(e.Pod.Namespace))
	}
	return selects(&pods.NamespaceSelector, k.labelsOf(e.Pod.Namespace)) && selects(&pods.PodSelector, e.Pod.Labels)
}

func (k *kube) isClusterPeer(p v1alpha2.ClusterNetworkPolicyEgressPeer, e end) bool {
	taken := slices.ContainsFunc(k.ranges, func(p netip.Prefix) bool { return p.Contains(e.Addr) })
	switch {
	case p.Networks == nil && p.Namespaces == nil && p.Pods == nil && taken:
		return false
	case p.Nodes != nil: // "the nodeIPs"; Northbound takes the management port for one of them
		return e.Pod == nil && slices.ContainsFunc(k.Nodes, func(n *corev1.Node) bool {
			return n.Name == e.Node && selects(p.Nodes, n.Labels)
		})
	case p.DomainNames != nil:
		return e.Pod == nil && e.Node == "" && !inside(e.Addr) && slices.ContainsFunc(p.DomainNames,
			func(d v1alpha2.DomainName) bool {
				return slices.Contains(policytest.Domains()[string(d)], e.Addr.String())
			})
	case p.Networks != nil:
		return slices.ContainsFunc(p.Networks, func(c v1alpha2.CIDR) bool {
			return netip.MustParsePrefix(string(c)).Contains(e.Addr)
		})
	}
	return k.isAmong(p.Namespaces, p.Pods, e)
}

// inside is true for an address of the cluster's ranges. Open in Kubernetes: whoever writes the records of a name must
// not open these.
func inside(a netip.Addr) bool {
	return netip.MustParsePrefix("10.128.0.0/14").Contains(a) || netip.MustParsePrefix("fd01::/48").Contains(a)
}

// isClusterPort tells whether a rule of a policy is about the port of a connection. "If unspecified, protocol-specific
// attributes will not be used to match traffic."
func (k *kube) isClusterPort(p *v1alpha2.ClusterNetworkPolicy, r v1alpha2.ClusterNetworkPolicyEgressRule, c connection,
) bool {
	in := func(p *v1alpha2.Port) bool {
		if p.Range != nil {
			return p.Range.Start <= c.Port && c.Port <= p.Range.End
		}
		return p.Number == c.Port
	}
	return len(r.Protocols) == 0 || slices.ContainsFunc(r.Protocols, func(m v1alpha2.ClusterNetworkPolicyProtocol) bool {
		switch {
		case m.DestinationNamedPort != "":
			return k.hasNamedPort(p, m.DestinationNamedPort, c)
		case m.TCP != nil:
			return c.Protocol == corev1.ProtocolTCP && in(m.TCP.DestinationPort)
		case m.UDP != nil:
			return c.Protocol == corev1.ProtocolUDP && in(m.UDP.DestinationPort)
		}
		return c.Protocol == corev1.ProtocolSCTP && in(m.SCTP.DestinationPort)
	})
}

// hasNamedPort tells whether a name stands for the port of a connection. For a pod that reaches itself, Northbound
// takes the numbers of all pods of the network that the policy is about.
func (k *kube) hasNamedPort(p *v1alpha2.ClusterNetworkPolicy, name string, c connection) bool {
	if !c.Itself() {
		return c.To.Pod != nil && slices.Contains(namedPorts(c.To.Pod, name, c.Protocol), c.Port)
	}
	return slices.ContainsFunc(k.Ends(c.To.Addr.Is4()), func(e end) bool {
		return k.isAmong(p.Spec.Subject.Namespaces, p.Spec.Subject.Pods, e) &&
			(len(k.ranges) == 0 || e.Pod.Namespace == c.To.Pod.Namespace) && // it is in the network
			slices.Contains(namedPorts(e.Pod, name, c.Protocol), c.Port)
	})
}
