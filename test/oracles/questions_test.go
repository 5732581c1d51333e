package oracles

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit/policytest"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

type connection = policytest.Connection

// questions is a cluster that is asked about, and what its rows say.
type questions struct {
	*policytest.Cluster
	rows    *verdict.Evaluator
	labels  map[string]map[string]string // of namespaces
	ranges  []netip.Prefix               // of pods
	covered map[*corev1.Pod]bool         // by ClusterNetworkPolicies
	decided map[*corev1.Pod]bool         // by any policies
}

// random is a random cluster. Its namespaces are no tenants, which no library knows.
func random(d policytest.Dice) *policytest.Cluster {
	k := d.Cluster()
	k.Multitenant = false
	return k
}

// newQuestions translates a cluster.
func newQuestions(k *policytest.Cluster, schema *nb.Schema) (*questions, error) {
	rows, err := k.Rows(schema)
	if err != nil {
		return nil, fmt.Errorf("translating a random cluster: %w", err)
	}
	q := &questions{k, rows, map[string]map[string]string{}, nil, map[*corev1.Pod]bool{}, map[*corev1.Pod]bool{}}
	for _, n := range k.Namespaces {
		q.labels[n.Name] = n.Labels
	}
	for _, s := range k.Config().Subnets {
		q.ranges = append(q.ranges, s.CIDR)
	}
	for _, pod := range k.Pods {
		for _, p := range k.ClusterPolicies {
			q.covered[pod] = q.covered[pod] || q.isSubject(p.Spec.Subject, pod)
		}
		q.decided[pod] = q.covered[pod] || slices.ContainsFunc(k.Policies, func(p *networkingv1.NetworkPolicy) bool {
			return p.Namespace == pod.Namespace && selects(p.Spec.PodSelector, pod.Labels)
		})
	}
	return q, nil
}

func (q *questions) isSubject(s v1alpha2.ClusterNetworkPolicySubject, pod *corev1.Pod) bool {
	if s.Namespaces != nil {
		return selects(*s.Namespaces, q.labels[pod.Namespace])
	}
	return selects(s.Pods.NamespaceSelector, q.labels[pod.Namespace]) && selects(s.Pods.PodSelector, pod.Labels)
}

func selects(s metav1.LabelSelector, set map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(&s)
	return err == nil && selector.Matches(labels.Set(set))
}

// covers tells whether a ClusterNetworkPolicy is about an end.
func (q *questions) covers(e policytest.End) bool { return q.covered[e.Pod] }

// atOwnNode tells whether one end of a connection is the host of the other's node.
func atOwnNode(c connection) bool {
	return (c.From.Pod == nil) != (c.To.Pod == nil) && c.From.Node == c.To.Node
}

// connection is one that somebody may try. Most are between ends of which a policy is about one.
func (q *questions) connection(d policytest.Dice) connection {
	c := d.Connection(q.Cluster)
	for range 3 {
		if q.decided[c.From.Pod] || q.decided[c.To.Pod] {
			return c
		}
		c = d.Connection(q.Cluster)
	}
	return c
}

// difference is what the rows and a library say of a connection, "" when they agree. A reason is why the library is not
// asked.
func (q *questions) difference(l library, c connection) (text string, allowed bool, reason deviation) {
	allowed, reason = l.allows(c)
	if reason != "" {
		return "", false, reason
	}
	v, err := policytest.Ask(q.rows, c)
	switch {
	case err != nil:
		return fmt.Sprintf("%s: %v", c, err), allowed, ""
	case v.Allowed == allowed:
		return "", allowed, ""
	}
	text = fmt.Sprintf("%s: %s says allowed %v, the rows %v", c, l.name(), allowed, v.Allowed)
	for _, s := range v.Steps {
		if s.ACL != nil {
			text += fmt.Sprintf("\n  %s, %s: %s of %d %s", s.Switch, s.Stage, s.ACL.Action, s.ACL.Priority, s.ACL.Match)
		}
	}
	return text, allowed, ""
}
