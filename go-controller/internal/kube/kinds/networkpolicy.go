package kinds

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Reasons of Problems with network policies.
const (
	reasonPolicyType     = "InvalidPolicyType"
	reasonPolicySelector = "InvalidPolicySelector"
	reasonPolicyPeer     = "InvalidPolicyPeer"
	reasonPolicyPort     = "InvalidPolicyPort"
	reasonPolicySize     = "PolicyTooLarge"
)

// policyDecoder is a policy being decoded. What is not valid or too much is left out: nothing is allowed because of it.
type policyDecoder struct {
	findings
	limits                   policyLimits
	out                      *cluster.NetworkPolicy
	selectors, ranges, ports int // so far, as the next two
	rules, pairs, names      int
	tooLarge                 bool // and said so
	// unknown lists the paths of fields that this version does not know. Peers, ports and rules that have one are left
	// out.
	unknown []string
}

// decodePolicy takes what the API documents of a NetworkPolicy.
func decodePolicy(p *networkingv1.NetworkPolicy, limits policyLimits) (*cluster.NetworkPolicy, []cluster.Problem) {
	d := policyDecoder{findings: findingsOf(cluster.KindNetworkPolicy, p), limits: limits,
		out: &cluster.NetworkPolicy{Name: NameOf(p), UID: string(p.UID), Created: createdAt(p)}}
	d.spec(&p.Spec)
	return d.out, d.problems
}

// spec decodes what the policy says. It is false when the policy selects nothing.
func (d *policyDecoder) spec(p *networkingv1.NetworkPolicySpec) bool {
	subject, err := selector(&p.PodSelector)
	if err != nil {
		d.bad(reasonPolicySelector, "spec.podSelector: %v: the policy selects no pod", err)
		return false
	}
	d.out.Pods = subject
	types := p.PolicyTypes
	if len(types) == 0 { // the API server's default
		types = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(p.Egress) > 0 {
			types = append(types, networkingv1.PolicyTypeEgress)
		}
	}
	for _, t := range types {
		known(&d.findings, reasonPolicyType, "spec.policyTypes", t, "it is left out",
			networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
	}
	if d.out.Ingress.Isolates = slices.Contains(types, networkingv1.PolicyTypeIngress); d.out.Ingress.Isolates {
		for i, r := range p.Ingress {
			d.rule(&d.out.Ingress, fmt.Sprintf("spec.ingress[%d]", i), "from", r.From, r.Ports)
		}
	}
	if d.out.Egress.Isolates = slices.Contains(types, networkingv1.PolicyTypeEgress); d.out.Egress.Isolates {
		for i, r := range p.Egress {
			d.rule(&d.out.Egress, fmt.Sprintf("spec.egress[%d]", i), "to", r.To, r.Ports)
		}
	}
	return true
}

// knows is false for a rule that has a field that this version does not know. Then a Problem says so.
func (d *policyDecoder) knows(field string) bool {
	for _, path := range d.unknown {
		if strings.HasPrefix(path, field+".") {
			d.bad(reasonPolicyField, "%.200s: this version does not know the field: %s is left out and allows nothing", path,
				field)
			return false
		}
	}
	return true
}

func (d *policyDecoder) rule(to *cluster.PolicyRules, field, side string, peers []networkingv1.NetworkPolicyPeer,
	ports []networkingv1.NetworkPolicyPort,
) {
	if !d.within(field, &d.rules, 1, d.limits.rules) {
		return
	}
	if !d.knows(field) {
		to.Rules = append(to.Rules, cluster.PolicyRule{}) // which allows nothing: others keep their numbers
		return
	}
	rule := cluster.PolicyRule{AnyPeer: len(peers) == 0, AnyPort: len(ports) == 0}
	for i, p := range peers {
		if peer, ok := d.peer(fmt.Sprintf("%s.%s[%d]", field, side, i), p); ok {
			rule.Peers = append(rule.Peers, peer)
		}
	}
	for i, p := range ports {
		if port, ok := d.port(fmt.Sprintf("%s.ports[%d]", field, i), p); ok {
			rule.Ports = append(rule.Ports, port)
		}
	}
	rule.Ports = mergedPorts(rule.Ports)
	others := 1
	for _, p := range rule.Peers {
		others += max(1, len(p.Addresses))
	}
	if names := len(rule.PortNames()); names > 0 &&
		(!d.within(field+".ports", &d.names, names, d.limits.names) ||
			!d.within(field+".ports", &d.pairs, names*others, d.limits.pairs)) {
		rule.Ports = slices.DeleteFunc(rule.Ports, func(p cluster.PolicyPort) bool { return p.Name != "" })
	}
	to.Rules = append(to.Rules, rule)
}

// within counts what a policy names. It is false when that is too much. The first time it is a Problem.
func (d *policyDecoder) within(field string, count *int, more int, limit policyLimit) bool {
	if !limit.allows(*count + more) {
		if !d.tooLarge {
			d.bad(reasonPolicySize, "%s: with it the policy has more than %d %s: it is left out and allows nothing, as "+
				"all that follows and is too much; %s", field, limit.most, limit.what, limit.advice())
		}
		d.tooLarge = true
		return false
	}
	*count += more
	return true
}

func (d *policyDecoder) peer(field string, p networkingv1.NetworkPolicyPeer) (out cluster.PolicyPeer, ok bool) {
	switch {
	case p.IPBlock != nil && (p.PodSelector != nil || p.NamespaceSelector != nil):
		d.bad(reasonPolicyPeer, "%s: has ipBlock and a selector, want one of them: it is left out and allows nothing", field)
		return out, false
	case p.IPBlock != nil:
		out.Addresses, ok = d.block(field+".ipBlock", p.IPBlock)
		return out, ok
	case p.PodSelector == nil && p.NamespaceSelector == nil:
		d.bad(reasonPolicyPeer, "%s: is empty, want ipBlock, podSelector or namespaceSelector: it allows nothing", field)
		return out, false
	}
	if !d.within(field, &d.selectors, 1, d.limits.selectors) {
		return out, false
	}
	out.Pods = &cluster.PodSelector{}
	var err error
	if p.PodSelector != nil {
		if out.Pods.Pods, err = selector(p.PodSelector); err != nil {
			d.bad(reasonPolicySelector, "%s.podSelector: %v: the peer is left out and allows nothing", field, err)
			return out, false
		}
	}
	if p.NamespaceSelector == nil {
		out.Pods.Namespace = d.out.Name.Namespace
		return out, true
	}
	if out.Pods.Namespaces, err = selector(p.NamespaceSelector); err != nil {
		d.bad(reasonPolicySelector, "%s.namespaceSelector: %v: the peer is left out and allows nothing", field, err)
		return out, false
	}
	return out, true
}

// block is a range of addresses without the exceptions. An exception that can't be read may be anything: the peer is
// left out.
func (d *policyDecoder) block(field string, b *networkingv1.IPBlock) (out []netip.Prefix, ok bool) {
	const want = "%s: %q: want a range of addresses such as 192.0.2.0/24 or 2001:db8::/32: the peer is left out and " +
		"allows nothing"
	all, err := netip.ParsePrefix(b.CIDR)
	if err != nil || all.Addr().Is4In6() {
		d.bad(reasonPolicyPeer, want, field+".cidr", b.CIDR)
		return nil, false
	}
	var without []netip.Prefix
	for i, text := range b.Except {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Addr().Is4In6() {
			d.bad(reasonPolicyPeer, want, fmt.Sprintf("%s.except[%d]", field, i), text)
			return nil, false
		}
		without = append(without, p.Masked())
	}
	if !d.limits.ranges.allows(len(without)) {
		return nil, d.within(field, &d.ranges, len(without), d.limits.ranges)
	}
	out = ipnet.Minus(all.Masked(), without)
	return out, d.within(field, &d.ranges, max(1, len(out)), d.limits.ranges)
}

func (d *policyDecoder) port(field string, p networkingv1.NetworkPolicyPort) (out cluster.PolicyPort, ok bool) {
	const left = ": the port is left out, and nothing is allowed to it"
	var why string
	out.Protocol, ok = protocol(deref(p.Protocol))
	switch {
	case !ok:
		why = fmt.Sprintf("protocol: %q, want TCP, UDP or SCTP", string(out.Protocol))
	case p.Port == nil && p.EndPort != nil:
		why = "endPort: without port, want both"
	case p.Port == nil:
	case p.Port.Type == intstr.String && p.EndPort != nil:
		why = fmt.Sprintf("endPort: %d with port %q, want a number as port", *p.EndPort, p.Port.StrVal)
	case p.Port.Type == intstr.String:
		if out.Name = p.Port.StrVal; len(validation.IsValidPortName(out.Name)) > 0 {
			why = fmt.Sprintf("port: %q, want a number from 1 to 65535 or the name of a port", out.Name)
		}
	case portNumber(p.Port.IntVal) == 0:
		why = fmt.Sprintf("port: %d, want a number from 1 to 65535", p.Port.IntVal)
	default:
		out.First = portNumber(p.Port.IntVal)
		out.Last = out.First
		if p.EndPort != nil {
			if out.Last = portNumber(*p.EndPort); out.Last < out.First {
				why = fmt.Sprintf("endPort: %d, want a number from port %d to 65535", *p.EndPort, out.First)
			}
		}
	}
	if why != "" {
		d.bad(reasonPolicyPort, "%s.%s%s", field, why, left)
		return out, false
	}
	return out, d.within(field, &d.ports, 1, d.limits.ports)
}

// mergedPorts is the same ports in order, each once: ranges that overlap or touch are one.
func mergedPorts(ports []cluster.PolicyPort) []cluster.PolicyPort {
	slices.SortFunc(ports, func(a, b cluster.PolicyPort) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Name, b.Name), cmp.Compare(a.First, b.First),
			cmp.Compare(a.Last, b.Last))
	})
	var out []cluster.PolicyPort
	for _, p := range ports {
		if len(out) == 0 {
			out = append(out, p)
			continue
		}
		last := &out[len(out)-1]
		switch {
		case last.Protocol != p.Protocol || last.Name != p.Name:
			out = append(out, p)
		case p.Name != "" || last.First == 0: // the same name, or all ports of the protocol
		case int(p.First) <= int(last.Last)+1:
			last.Last = max(last.Last, p.Last)
		default:
			out = append(out, p)
		}
	}
	return out
}

// selector is a selector of labels.
func selector(s *metav1.LabelSelector) (cluster.LabelSelector, error) {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		return cluster.LabelSelector{}, fmt.Errorf("reading the selector: %w", err)
	}
	var out []cluster.Requirement
	for k, v := range s.MatchLabels {
		out = append(out, cluster.Requirement{Key: k, Operator: cluster.In, Values: []string{v}})
	}
	for _, e := range s.MatchExpressions {
		out = append(out, cluster.Requirement{Key: e.Key, Operator: cluster.Operator(e.Operator), Values: e.Values})
	}
	return cluster.NewLabelSelector(out...), nil
}
