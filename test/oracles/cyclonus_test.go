package oracles

import (
	"slices"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/testkit/policytest"
)

// cyclonusMatcher asks cyclonus.
type cyclonusMatcher struct {
	without
	*questions
	policy *matcher.Policy
}

func (*cyclonusMatcher) name() string { return cyclonus }

func (m *cyclonusMatcher) load(q *questions) {
	m.questions = q
	var policies []*networkingv1.NetworkPolicy
	for _, p := range q.Policies {
		p = defaulted(p)
		if m.adjusts(portOfBlock) {
			blocksWithoutNames(p)
		}
		policies = append(policies, rewrite(p, m.rewritten)...)
	}
	m.policy = matcher.BuildNetworkPolicies(false, policies)
}

// rewritten writes a selector so that cyclonus reads it as the API server does.
func (m *cyclonusMatcher) rewritten(s metav1.LabelSelector) []metav1.LabelSelector {
	if m.adjusts(emptyValue) {
		s = withEmptyValues(s)
	}
	if m.adjusts(notInWithoutLabel) {
		return withAndWithoutLabel(s)
	}
	return []metav1.LabelSelector{s}
}

func (m *cyclonusMatcher) allows(c connection) (allowed bool, reason deviation) {
	switch {
	case m.adjusts(itself) && c.Itself():
		return false, itself
	case m.adjusts(ownNode) && atOwnNode(c):
		return false, ownNode
	case m.adjusts(clusterPolicies) && (m.covers(c.From) || m.covers(c.To)):
		return false, clusterPolicies
	}
	// Cyclonus wants to be told the name of the port. A port may have several names.
	var egress, ingress bool
	for _, name := range portNames(c) {
		a := m.policy.IsTrafficAllowed(&matcher.Traffic{Source: m.peer(c.From), Destination: m.peer(c.To),
			ResolvedPort: int(c.Port), ResolvedPortName: name, Protocol: c.Protocol})
		egress, ingress = egress || a.Egress.IsAllowed(), ingress || a.Ingress.IsAllowed()
	}
	return egress && ingress, ""
}

func (m *cyclonusMatcher) peer(e policytest.End) *matcher.TrafficPeer {
	out := &matcher.TrafficPeer{IP: e.Addr.String()}
	if e.Pod != nil {
		out.Internal = &matcher.InternalPeer{PodLabels: e.Pod.Labels, Namespace: e.Pod.Namespace,
			NamespaceLabels: m.labels[e.Pod.Namespace]}
	}
	return out
}

// portNames lists the names that the pod of a connection has for its port; "" when it has none.
func portNames(c connection) []string {
	var out []string
	if c.To.Pod != nil {
		for _, container := range containers(c.To.Pod, true) {
			for _, p := range container.Ports {
				if p.ContainerPort == c.Port && p.Protocol == c.Protocol && !slices.Contains(out, p.Name) {
					out = append(out, p.Name)
				}
			}
		}
	}
	if len(out) == 0 {
		return []string{""}
	}
	return out
}
