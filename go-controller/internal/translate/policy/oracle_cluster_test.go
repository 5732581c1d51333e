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
)

// This file states what the API of ClusterNetworkPolicies promises (sigs.k8s.io/network-policy-api, v1alpha2), and
// makes random ones.

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
	for _, p := range k.clusterPolicies {
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
	case e.pod == nil:
		return false
	case namespaces != nil:
		return selects(namespaces, k.labelsOf(e.pod.Namespace))
	}
	return selects(&pods.NamespaceSelector, k.labelsOf(e.pod.Namespace)) && selects(&pods.PodSelector, e.pod.Labels)
}

func (k *kube) isClusterPeer(p v1alpha2.ClusterNetworkPolicyEgressPeer, e end) bool {
	switch {
	case p.Nodes != nil: // "the nodeIPs"; Northbound takes the management port for one of them
		return e.pod == nil && slices.ContainsFunc(k.nodes, func(n *corev1.Node) bool {
			return n.Name == e.node && selects(p.Nodes, n.Labels)
		})
	case p.DomainNames != nil:
		return e.pod == nil && e.node == "" && !inside(e.addr) && slices.ContainsFunc(p.DomainNames,
			func(d v1alpha2.DomainName) bool { return slices.Contains(domains()[string(d)], e.addr.String()) })
	case p.Networks != nil:
		return slices.ContainsFunc(p.Networks, func(c v1alpha2.CIDR) bool {
			return netip.MustParsePrefix(string(c)).Contains(e.addr)
		})
	}
	return k.isAmong(p.Namespaces, p.Pods, e)
}

// domains is what DNS says of names. The second has addresses of the cluster's own.
func domains() map[string][]string {
	return map[string][]string{
		"one.example.org": {"192.0.2.1", "2001:db8:2::1"},
		"two.example.org": {"198.51.100.7", "10.128.0.200", "10.128.0.3", "10.128.0.2", "172.18.0.10", "2001:db8:18::a",
			"fd01::200", "fd01::3", "fd01::2", "2001:db8:9::1"},
		"three.example.org": nil,
	}
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
			return p.Range.Start <= c.port && c.port <= p.Range.End
		}
		return p.Number == c.port
	}
	return len(r.Protocols) == 0 || slices.ContainsFunc(r.Protocols, func(m v1alpha2.ClusterNetworkPolicyProtocol) bool {
		switch {
		case m.DestinationNamedPort != "":
			return k.hasNamedPort(p, m.DestinationNamedPort, c)
		case m.TCP != nil:
			return c.protocol == corev1.ProtocolTCP && in(m.TCP.DestinationPort)
		case m.UDP != nil:
			return c.protocol == corev1.ProtocolUDP && in(m.UDP.DestinationPort)
		}
		return c.protocol == corev1.ProtocolSCTP && in(m.SCTP.DestinationPort)
	})
}

// hasNamedPort tells whether a name stands for the port of a connection. For a pod that reaches itself, Northbound
// takes the numbers of all pods that the policy is about.
func (k *kube) hasNamedPort(p *v1alpha2.ClusterNetworkPolicy, name string, c connection) bool {
	if !c.itself() {
		return c.to.pod != nil && slices.Contains(namedPorts(c.to.pod, name, c.protocol), c.port)
	}
	return slices.ContainsFunc(k.ends(c.to.addr.Is4()), func(e end) bool {
		return k.isAmong(p.Spec.Subject.Namespaces, p.Spec.Subject.Pods, e) &&
			slices.Contains(namedPorts(e.pod, name, c.protocol), c.port)
	})
}

// clusterPolicy is a random ClusterNetworkPolicy. Some have the priority of another.
func (d dice) clusterPolicy(i int) *v1alpha2.ClusterNetworkPolicy {
	p := &v1alpha2.ClusterNetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha2.GroupVersion.String(), Kind: "ClusterNetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cluster%d", i), UID: "u", Annotations: d.logging()}}
	p.Spec.Tier = pick(d, v1alpha2.AdminTier, v1alpha2.BaselineTier)
	p.Spec.Priority = pick(d, int32(0), 1, 2, 500, 999, 1000)
	p.Spec.Subject.Namespaces, p.Spec.Subject.Pods = d.clusterPods()
	for j := range d.IntN(4) {
		var from []v1alpha2.ClusterNetworkPolicyIngressPeer
		for range 1 + d.IntN(2) {
			namespaces, pods := d.clusterPods()
			from = append(from, v1alpha2.ClusterNetworkPolicyIngressPeer{Namespaces: namespaces, Pods: pods})
		}
		p.Spec.Ingress = append(p.Spec.Ingress, v1alpha2.ClusterNetworkPolicyIngressRule{Name: fmt.Sprint("rule ", j),
			Action: d.action(), From: from, Protocols: d.protocols(true)})
	}
	for range d.IntN(4) {
		r := v1alpha2.ClusterNetworkPolicyEgressRule{Action: d.action()}
		named := true
		for range 1 + d.IntN(2) {
			peer, pods := d.egressPeer(r.Action)
			r.To, named = append(r.To, peer), named && pods
		}
		r.Protocols = d.protocols(named)
		p.Spec.Egress = append(p.Spec.Egress, r)
	}
	return p
}

func (d dice) action() v1alpha2.ClusterNetworkPolicyRuleAction {
	return pick(d, v1alpha2.ClusterNetworkPolicyRuleActionAccept, v1alpha2.ClusterNetworkPolicyRuleActionDeny,
		v1alpha2.ClusterNetworkPolicyRuleActionDeny, v1alpha2.ClusterNetworkPolicyRuleActionPass)
}

func (d dice) clusterPods() (namespaces *metav1.LabelSelector, pods *v1alpha2.NamespacedPod) {
	if d.chance(50) {
		return d.namespaces(), nil
	}
	return nil, &v1alpha2.NamespacedPod{NamespaceSelector: *d.namespaces(), PodSelector: d.selector("app", "tier")}
}

func (d dice) egressPeer(a v1alpha2.ClusterNetworkPolicyRuleAction) (peer v1alpha2.ClusterNetworkPolicyEgressPeer,
	pods bool) {
	if a == v1alpha2.ClusterNetworkPolicyRuleActionAccept && d.chance(40) { // others may not have names
		peer.DomainNames = pick(d, []v1alpha2.DomainName{"one.example.org"}, []v1alpha2.DomainName{"two.example.org"},
			[]v1alpha2.DomainName{"three.example.org", "one.example.org"})
		return peer, false
	}
	switch d.IntN(4) {
	case 0:
		peer.Networks = pick(d, []v1alpha2.CIDR{"0.0.0.0/0", "::/0"}, []v1alpha2.CIDR{"192.0.2.1/24", "2001:db8:2::/48"},
			[]v1alpha2.CIDR{"10.128.0.0/22", "fd01::/63"}, []v1alpha2.CIDR{"10.128.0.5/32"})
		return peer, false
	case 1:
		peer.Nodes = pick(d, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
			&metav1.LabelSelector{MatchLabels: map[string]string{"app": "b"}})
		return peer, false
	}
	peer.Namespaces, peer.Pods = d.clusterPods()
	return peer, true
}

func (d dice) protocols(named bool) []v1alpha2.ClusterNetworkPolicyProtocol {
	var out []v1alpha2.ClusterNetworkPolicyProtocol
	for range d.IntN(3) {
		port := &v1alpha2.Port{Number: pick(d, int32(80), 443, 8080, 53)}
		if d.chance(30) {
			port = &v1alpha2.Port{Range: &v1alpha2.PortRange{Start: pick(d, int32(1), 80), End: pick(d, int32(443), 65535)}}
		}
		var p v1alpha2.ClusterNetworkPolicyProtocol
		switch d.IntN(6) {
		case 0:
			p.UDP = &v1alpha2.ClusterNetworkPolicyProtocolUDP{DestinationPort: port}
		case 1:
			p.SCTP = &v1alpha2.ClusterNetworkPolicyProtocolSCTP{DestinationPort: port}
		case 2, 3:
			if named {
				p.DestinationNamedPort = pick(d, "http", "dns", "metrics", "nobodys")
				break
			}
			fallthrough
		default:
			p.TCP = &v1alpha2.ClusterNetworkPolicyProtocolTCP{DestinationPort: port}
		}
		out = append(out, p)
	}
	return out
}

// clusterEdits lists ways to have fewer ClusterNetworkPolicies, or smaller ones.
func (k *kube) clusterEdits() []func(*kube) {
	var out []func(*kube)
	for i, p := range k.clusterPolicies {
		out = append(out, func(k *kube) { drop(&k.clusterPolicies, i) })
		for j, r := range p.Spec.Ingress {
			out = append(out, func(k *kube) { drop(&k.clusterPolicies[i].Spec.Ingress, j) })
			if len(r.Protocols) > 0 {
				out = append(out, func(k *kube) { k.clusterPolicies[i].Spec.Ingress[j].Protocols = nil })
			}
		}
		for j, r := range p.Spec.Egress {
			out = append(out, func(k *kube) { drop(&k.clusterPolicies[i].Spec.Egress, j) })
			if len(r.Protocols) > 0 {
				out = append(out, func(k *kube) { k.clusterPolicies[i].Spec.Egress[j].Protocols = nil })
			}
		}
	}
	return out
}
