package oracles

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// This file writes policies and pods in other words, which mean the same to the API.

// defaulted is a policy as an API server has it, with defaults and without empty lists. Libraries count on that.
func defaulted(p *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy {
	p = p.DeepCopy()
	if len(p.Spec.Ingress) == 0 {
		p.Spec.Ingress = nil
	}
	if len(p.Spec.Egress) == 0 {
		p.Spec.Egress = nil
	}
	if len(p.Spec.PolicyTypes) == 0 {
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(p.Spec.Egress) > 0 {
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	fill := func(ports []networkingv1.NetworkPolicyPort) {
		for i := range ports {
			if ports[i].Protocol == nil {
				ports[i].Protocol = new(corev1.ProtocolTCP)
			}
		}
	}
	for _, r := range p.Spec.Ingress {
		fill(r.Ports)
	}
	for _, r := range p.Spec.Egress {
		fill(r.Ports)
	}
	return p
}

// containers lists a pod's containers, with defaults, and if wanted its sidecars.
func containers(p *corev1.Pod, sidecars bool) []corev1.Container {
	out := slices.Clone(p.Spec.Containers)
	for _, c := range p.Spec.InitContainers {
		if sidecars && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out = append(out, c)
		}
	}
	for i := range out {
		out[i].Ports = slices.Clone(out[i].Ports)
		for j := range out[i].Ports {
			if out[i].Ports[j].Protocol == "" {
				out[i].Ports[j].Protocol = corev1.ProtocolTCP
			}
		}
	}
	return out
}

// only is a policy for one direction; nil if it has nothing to say of it.
func only(t networkingv1.PolicyType, p *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy {
	if !slices.Contains(p.Spec.PolicyTypes, t) {
		return nil
	}
	p = p.DeepCopy()
	p.Spec.PolicyTypes = []networkingv1.PolicyType{t}
	return p
}

// blocksWithoutNames takes the named ports out of what rules of egress say about blocks.
func blocksWithoutNames(p *networkingv1.NetworkPolicy) {
	var out []networkingv1.NetworkPolicyEgressRule
	for _, r := range p.Spec.Egress {
		isBlock := func(p networkingv1.NetworkPolicyPeer) bool { return p.IPBlock != nil }
		isNamed := func(p networkingv1.NetworkPolicyPort) bool { return p.Port != nil && p.Port.Type == intstr.String }
		if !slices.ContainsFunc(r.To, isBlock) || !slices.ContainsFunc(r.Ports, isNamed) {
			out = append(out, r)
			continue
		}
		pods := slices.DeleteFunc(slices.Clone(r.To), isBlock)
		if len(pods) > 0 {
			out = append(out, networkingv1.NetworkPolicyEgressRule{To: pods, Ports: r.Ports})
		}
		blocks := slices.DeleteFunc(slices.Clone(r.To), func(p networkingv1.NetworkPolicyPeer) bool { return !isBlock(p) })
		if ports := slices.DeleteFunc(slices.Clone(r.Ports), isNamed); len(ports) > 0 {
			out = append(out, networkingv1.NetworkPolicyEgressRule{To: blocks, Ports: ports})
		}
	}
	p.Spec.Egress = out
}

// rewriting lists selectors that together select what a selector does.
type rewriting func(s metav1.LabelSelector) []metav1.LabelSelector

// rewrite writes the selectors of a policy in other words. Policies, and peers of a rule, are additive.
func rewrite(p *networkingv1.NetworkPolicy, in rewriting) []*networkingv1.NetworkPolicy {
	peers := func(list []networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyPeer {
		var out []networkingv1.NetworkPolicyPeer
		for _, peer := range list {
			for _, namespaces := range rewritePointer(peer.NamespaceSelector, in) {
				for _, pods := range rewritePointer(peer.PodSelector, in) {
					out = append(out, networkingv1.NetworkPolicyPeer{NamespaceSelector: namespaces, PodSelector: pods,
						IPBlock: peer.IPBlock})
				}
			}
		}
		return out
	}
	for i := range p.Spec.Ingress {
		p.Spec.Ingress[i].From = peers(p.Spec.Ingress[i].From)
	}
	for i := range p.Spec.Egress {
		p.Spec.Egress[i].To = peers(p.Spec.Egress[i].To)
	}
	var out []*networkingv1.NetworkPolicy
	for _, subject := range in(p.Spec.PodSelector) {
		another := *p
		another.Spec.PodSelector = subject
		out = append(out, &another)
	}
	return out
}

func rewritePointer(s *metav1.LabelSelector, in rewriting) []*metav1.LabelSelector {
	if s == nil {
		return []*metav1.LabelSelector{nil}
	}
	var out []*metav1.LabelSelector
	for _, other := range in(*s) {
		out = append(out, &other)
	}
	return out
}

// withEmptyValues writes "key: ”" as "key In [”]".
func withEmptyValues(s metav1.LabelSelector) metav1.LabelSelector {
	out := *s.DeepCopy()
	for key, value := range s.MatchLabels {
		if value == "" {
			delete(out.MatchLabels, key)
			out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: key,
				Operator: metav1.LabelSelectorOpIn, Values: []string{""}})
		}
	}
	return out
}

// withAndWithoutLabel has two selectors for each NotIn: of those with the label, and of those without it.
func withAndWithoutLabel(s metav1.LabelSelector) []metav1.LabelSelector {
	out := []metav1.LabelSelector{s}
	for i, r := range s.MatchExpressions {
		if r.Operator != metav1.LabelSelectorOpNotIn {
			continue
		}
		for _, with := range slices.Clone(out) {
			lacks := *with.DeepCopy()
			lacks.MatchExpressions[i] = metav1.LabelSelectorRequirement{Key: r.Key,
				Operator: metav1.LabelSelectorOpDoesNotExist}
			out = append(out, lacks)
		}
	}
	return out
}
