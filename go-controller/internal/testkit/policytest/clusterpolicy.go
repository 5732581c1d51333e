package policytest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

// ClusterPolicy is a random ClusterNetworkPolicy. Some have the priority of another.
func (d Dice) ClusterPolicy(i int) *v1alpha2.ClusterNetworkPolicy {
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

func (d Dice) action() v1alpha2.ClusterNetworkPolicyRuleAction {
	return pick(d, v1alpha2.ClusterNetworkPolicyRuleActionAccept, v1alpha2.ClusterNetworkPolicyRuleActionDeny,
		v1alpha2.ClusterNetworkPolicyRuleActionDeny, v1alpha2.ClusterNetworkPolicyRuleActionPass)
}

func (d Dice) clusterPods() (namespaces *metav1.LabelSelector, pods *v1alpha2.NamespacedPod) {
	if d.Chance(50) {
		return d.namespaces(), nil
	}
	return nil, &v1alpha2.NamespacedPod{NamespaceSelector: *d.namespaces(), PodSelector: d.selector("app", "tier")}
}

func (d Dice) egressPeer(a v1alpha2.ClusterNetworkPolicyRuleAction) (peer v1alpha2.ClusterNetworkPolicyEgressPeer,
	pods bool) {
	if a == v1alpha2.ClusterNetworkPolicyRuleActionAccept && d.Chance(40) { // others may not have names
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

func (d Dice) protocols(named bool) []v1alpha2.ClusterNetworkPolicyProtocol {
	var out []v1alpha2.ClusterNetworkPolicyProtocol
	for range d.IntN(3) {
		port := &v1alpha2.Port{Number: pick(d, int32(80), 443, 8080, 53)}
		if d.Chance(30) {
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
