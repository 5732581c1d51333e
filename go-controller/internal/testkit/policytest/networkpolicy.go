package policytest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Policy is a policy that has each optional field or not, and each list empty or not.
func (d Dice) Policy(i int) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: pick(d, "x", "y", "z"),
		Name: fmt.Sprintf("policy%d", i), UID: "u"}}
	p.Spec.PodSelector = d.selector("app", "tier", "env")
	p.Spec.PolicyTypes = pick(d, nil, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		[]networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		[]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress})
	if d.Chance(80) {
		for range 1 + d.IntN(2) {
			p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: d.peers(), Ports: d.ports()})
		}
	}
	if d.Chance(60) {
		for range 1 + d.IntN(2) {
			p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: d.peers(), Ports: d.ports()})
		}
	}
	return p
}

func (d Dice) selector(keys ...string) metav1.LabelSelector {
	var out metav1.LabelSelector
	if d.Chance(25) {
		return out
	}
	for _, key := range keys {
		switch d.IntN(8) {
		case 0, 1:
			out.MatchLabels = map[string]string{key: pick(d, "a", "b", "")}
		case 2, 3:
			r := metav1.LabelSelectorRequirement{Key: key, Operator: pick(d, metav1.LabelSelectorOpIn,
				metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				r.Values = pick(d, []string{"a"}, []string{"b", "a"}, []string{"", "nobodys"})
			}
			out.MatchExpressions = append(out.MatchExpressions, r)
		}
	}
	return out
}

func (d Dice) peers() []networkingv1.NetworkPolicyPeer {
	if d.Chance(25) {
		return pick(d, nil, []networkingv1.NetworkPolicyPeer{})
	}
	var out []networkingv1.NetworkPolicyPeer
	for range 1 + d.IntN(3) {
		var peer networkingv1.NetworkPolicyPeer
		switch d.IntN(4) {
		case 0:
			peer.PodSelector = new(d.selector("app", "tier"))
		case 1:
			peer.NamespaceSelector = d.namespaces()
		case 2:
			peer.PodSelector, peer.NamespaceSelector = new(d.selector("app", "env")), d.namespaces()
		case 3:
			peer.IPBlock = d.block()
		}
		out = append(out, peer)
	}
	return out
}

func (d Dice) namespaces() *metav1.LabelSelector {
	if d.Chance(30) {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": pick(d, "x", "y", "gone")}}
	}
	return new(d.selector("app", "tier"))
}

// block is a range with exceptions, which are within it and shorter. Some have bits behind their prefix.
func (d Dice) block() *networkingv1.IPBlock {
	b := pick(d,
		networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.128.0.0/14", "192.0.2.128/25", "10.128.2.0/24"}},
		networkingv1.IPBlock{CIDR: "192.0.2.0/24", Except: []string{"192.0.2.130/32", "192.0.2.1/25"}},
		networkingv1.IPBlock{CIDR: "10.128.0.0/22", Except: []string{"10.128.0.3/32", "10.128.0.4/31", "10.128.2.9/23"}},
		networkingv1.IPBlock{CIDR: "10.128.0.5/32"},
		networkingv1.IPBlock{CIDR: "172.18.0.10/31"},
		networkingv1.IPBlock{CIDR: "10.200.1.1/8", Except: []string{"10.128.0.2/32"}},
		networkingv1.IPBlock{CIDR: "::/0", Except: []string{"fd01::/48", "2001:db8:2:8000::/49"}},
		networkingv1.IPBlock{CIDR: "2001:db8:2::1/48", Except: []string{"2001:db8:2::1/128"}},
		networkingv1.IPBlock{CIDR: "fd01::/63", Except: []string{"fd01::3/128", "fd01:0:0:1::/64"}},
		networkingv1.IPBlock{CIDR: "2001:db8:18::a/127"})
	var except []string
	for _, e := range b.Except {
		if d.Chance(50) {
			except = append(except, e)
		}
	}
	b.Except = except
	return &b
}

func (d Dice) ports() []networkingv1.NetworkPolicyPort {
	if d.Chance(30) {
		return pick(d, nil, []networkingv1.NetworkPolicyPort{})
	}
	var out []networkingv1.NetworkPolicyPort
	for range 1 + d.IntN(3) {
		p := networkingv1.NetworkPolicyPort{Protocol: pick(d, nil, new(corev1.ProtocolTCP), new(corev1.ProtocolUDP),
			new(corev1.ProtocolSCTP))}
		switch d.IntN(6) {
		case 0: // all ports of the protocol
		case 1, 2:
			p.Port = new(intstr.FromString(pick(d, "http", "http", "dns", "metrics", "web", "nobodys")))
		case 3:
			first := pick(d, int32(1), 80, 443, 8000)
			p.Port, p.EndPort = new(intstr.FromInt32(first)), new(pick(d, first, first+1, 8080, 65535))
			*p.EndPort = max(*p.EndPort, first)
		default:
			p.Port = new(intstr.FromInt32(pick(d, int32(80), 443, 8080, 53)))
		}
		out = append(out, p)
	}
	return out
}
