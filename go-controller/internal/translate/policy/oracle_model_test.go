package policy_test

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/northbound-net/northbound/go-controller/internal/testkit/policytest"
)

// This file states what Kubernetes promises of network policies, in as few words as possible. It follows the Kubernetes
// API documentation (k8s.io/api, networking/v1 NetworkPolicySpec; the page "Network Policies"), not the translator.
// Where Kubernetes leaves something open, a comment says what Northbound promises.

// kube is a cluster of which Kubernetes promises something.
type kube struct {
	*policytest.Cluster
	ranges []netip.Prefix // of the primary network that is asked about: nodes and names in DNS are nobody there
}

type (
	end        = policytest.End
	connection = policytest.Connection
)

const icmp = policytest.ICMP

// allowed tells whether the connection may be opened: "both the egress policy on the source pod and the ingress policy
// on the destination pod need to allow the connection".
func (k *kube) allowed(c connection) bool {
	if c.Itself() { // as the pod's address is not its own then, only ingress can tell
		return k.lets(c.To, networkingv1.PolicyTypeIngress, c.From, c)
	}
	return k.lets(c.From, networkingv1.PolicyTypeEgress, c.To, c) &&
		k.lets(c.To, networkingv1.PolicyTypeIngress, c.From, c)
}

// lets tells whether the policies of one end let a connection with the other end pass. Tiers are asked in their order:
// Admin, NetworkPolicy, Baseline. "If a given connection wasn't allowed or denied by any of the tiers, the default
// kubernetes policy is applied, which says that all pods can communicate with each other."
func (k *kube) lets(e end, direction networkingv1.PolicyType, other end, c connection) bool {
	if e.Pod == nil {
		return true // policies select pods
	}
	if direction == networkingv1.PolicyTypeIngress && !k.tenantLets(e, other, c) {
		return false
	}
	for _, decide := range []func() (decided, allowed bool){
		func() (bool, bool) { return k.tierDecides(v1alpha2.AdminTier, e, direction, other, c) },
		func() (bool, bool) { return k.networkPoliciesDecide(e, direction, other, c) },
		func() (bool, bool) { return k.tierDecides(v1alpha2.BaselineTier, e, direction, other, c) },
	} {
		if decided, allowed := decide(); decided {
			return allowed
		}
	}
	return true
}

// networkPoliciesDecide tells whether any NetworkPolicy selects a pod in a direction, and whether they then allow a
// connection.
func (k *kube) networkPoliciesDecide(e end, direction networkingv1.PolicyType, other end, c connection,
) (isolated, allowed bool) {
	// "traffic to and from the node where a Pod is running is always allowed", "a Pod cannot block access to itself"
	always := other.Pod == nil && other.Node == e.Node || c.Itself()
	for _, p := range k.Policies {
		if p.Namespace != e.Pod.Namespace || !selects(&p.Spec.PodSelector, e.Pod.Labels) || !affects(p, direction) {
			continue
		}
		isolated, allowed = true, allowed || always
		for _, r := range rulesOf(p, direction) {
			if r.lets(k, p, other, c) {
				allowed = true // rules and policies "are additive"
			}
		}
	}
	return isolated, allowed // "pods are non-isolated by default"
}

// affects tells whether a policy isolates the pods that it selects in a direction. Without policyTypes, "policies that
// contain an egress section are assumed to affect egress, and all policies are assumed to affect ingress".
func affects(p *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) bool {
	if len(p.Spec.PolicyTypes) == 0 {
		return direction == networkingv1.PolicyTypeIngress || len(p.Spec.Egress) > 0
	}
	return slices.Contains(p.Spec.PolicyTypes, direction)
}

// rule is a rule of either direction.
type rule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

func rulesOf(p *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) []rule {
	var out []rule
	if direction == networkingv1.PolicyTypeIngress {
		for _, r := range p.Spec.Ingress {
			out = append(out, rule{r.From, r.Ports})
		}
		return out
	}
	for _, r := range p.Spec.Egress {
		out = append(out, rule{r.To, r.Ports})
	}
	return out
}

// lets tells whether a rule of a policy allows a connection with an end: one of its peers and one of its ports must
// match. "If this field is empty or missing, this rule matches all".
func (r rule) lets(k *kube, p *networkingv1.NetworkPolicy, other end, c connection) bool {
	for _, peer := range orNone(r.peers) {
		for _, port := range orNone(r.ports) {
			switch {
			case peer != nil && !k.isPeer(p, peer, other) || port != nil && !isPort(port, c):
			case port != nil && port.Port != nil && port.Port.Type == intstr.String && peer != nil && peer.IPBlock != nil &&
				other.Addr == c.To.Addr:
				// Open in Kubernetes, where blocks are for addresses outside: the pods of a block have no ports with names.
			default:
				return true
			}
		}
	}
	return false
}

// orNone lists pointers to the elements, or a single nil when there are none.
func orNone[T any](list []T) []*T {
	if len(list) == 0 {
		return []*T{nil}
	}
	var out []*T
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}

// isPeer tells whether a peer of a policy's rule stands for an end.
func (k *kube) isPeer(p *networkingv1.NetworkPolicy, peer *networkingv1.NetworkPolicyPeer, e end) bool {
	switch {
	case peer.IPBlock != nil:
		return inBlock(peer.IPBlock, e.Addr)
	case e.Pod == nil:
		return false // open in Kubernetes: selectors do not select pods of the host network
	case peer.NamespaceSelector == nil:
		return e.Pod.Namespace == p.Namespace && selects(peer.PodSelector, e.Pod.Labels)
	}
	return selects(peer.NamespaceSelector, k.labelsOf(e.Pod.Namespace)) &&
		(peer.PodSelector == nil || selects(peer.PodSelector, e.Pod.Labels))
}

// inBlock tells whether a block includes an address, which may be a pod's: "except is a slice of CIDRs that should not
// be included".
func inBlock(b *networkingv1.IPBlock, a netip.Addr) bool {
	in := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(a) }
	return in(b.CIDR) && !slices.ContainsFunc(b.Except, in)
}

func (k *kube) labelsOf(namespace string) map[string]string {
	for _, n := range k.Namespaces {
		if n.Name == namespace {
			return n.Labels
		}
	}
	return nil
}

// isPort tells whether a port of a rule is that of a connection.
func isPort(p *networkingv1.NetworkPolicyPort, c connection) bool {
	switch {
	case p.Protocol == nil && c.Protocol != corev1.ProtocolTCP: // "this field defaults to TCP"
		return false
	case p.Protocol != nil && c.Protocol != *p.Protocol:
		return false
	case p.Port == nil: // "this matches all port names and numbers"
		return true
	case p.Port.Type == intstr.String: // "a numerical or named port on a pod"
		return c.To.Pod != nil && slices.Contains(namedPorts(c.To.Pod, p.Port.StrVal, c.Protocol), c.Port)
	case p.EndPort != nil: // "the range of ports from port to endPort, inclusive"
		return p.Port.IntVal <= c.Port && c.Port <= *p.EndPort
	}
	return p.Port.IntVal == c.Port
}

// namedPorts lists the numbers of a pod's ports of a name and a protocol: those of its containers, and of the init
// containers that go on running beside them.
func namedPorts(pod *corev1.Pod, name string, protocol corev1.Protocol) []int32 {
	containers := slices.Clone(pod.Spec.Containers)
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	var out []int32
	for _, c := range containers {
		for _, p := range c.Ports {
			if p.Name == name && cmp.Or(p.Protocol, corev1.ProtocolTCP) == protocol {
				out = append(out, p.ContainerPort)
			}
		}
	}
	return out
}

// selects tells whether a selector selects an object of these labels. An empty selector selects everything.
func selects(s *metav1.LabelSelector, set map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		panic(err) // no API server accepts it
	}
	return selector.Matches(labels.Set(set))
}
