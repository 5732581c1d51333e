package kinds

import (
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/attachment"
)

const reasonPolicyNetworks = "InvalidPolicyNetworks"

// MultiNetworkPolicy is the row of MultiNetworkPolicies, which an API server has once its administrator installs the
// kind.
func MultiNetworkPolicy(limits config.Policies) Kind {
	version := schema.GroupVersion{Group: "k8s.cni.cncf.io", Version: "v1beta1"}
	return dynamicRow(Kind{
		Kind: cluster.KindMultiNetworkPolicy, Resource: version.WithResource("multi-networkpolicies"),
		Namespaced: true, ValidName: subdomain, Optional: true, WatchedBy: []Daemon{Master}, Limited: true,
	}, func(u *unstructured.Unstructured) (*cluster.MultiNetworkPolicy, []cluster.Problem) {
		return decodeMultiPolicy(u, limitsOf(limits))
	})
}

// multiPolicy is what an object of the kind has. Its spec is that of a NetworkPolicy.
type multiPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec networkingv1.NetworkPolicySpec `json:"spec"`
}

// decodeMultiPolicy takes what the API documents of a MultiNetworkPolicy. A rule with anything else allows nothing.
func decodeMultiPolicy(
	u *unstructured.Unstructured, limits policyLimits,
) (*cluster.MultiNetworkPolicy, []cluster.Problem) {
	out := &cluster.MultiNetworkPolicy{NetworkPolicy: cluster.NetworkPolicy{Name: NameOf(u), UID: string(u.GetUID()),
		Created: createdAt(u)}}
	d := policyDecoder{findings: findingsOf(cluster.KindMultiNetworkPolicy, u), limits: limits,
		out: &out.NetworkPolicy}
	var p multiPolicy
	unknown, err := readStrictly(u, &p)
	if err != nil {
		d.bad(reasonPolicyUnreadable, "%.500v: the policy selects no pod", err)
		return out, d.problems
	}
	d.unknown = unknown
	if !d.subjectKnown() || !d.spec(&p.Spec) {
		return out, d.problems
	}
	d.closeUnknown()
	list, found := u.GetAnnotations()[annotation.PolicyNetworks]
	if !found {
		d.bad(reasonPolicyNetworks, "annotation %s: is missing, want the networks that the policy is about, such as %q: "+
			"the policy has no effect", annotation.PolicyNetworks, out.Name.Namespace+"/blue")
		return out, d.problems
	}
	networks, refused := attachment.PolicyFor(out.Name.Namespace, list)
	for _, why := range refused {
		d.bad(reasonPolicyNetworks, "annotation %s: %v", annotation.PolicyNetworks, why)
	}
	out.Named, out.Networks = networks, networks
	return out, d.problems
}

// subjectKnown is false when the policy's own selector has a field that this version does not know.
func (d *policyDecoder) subjectKnown() bool {
	at := slices.IndexFunc(d.unknown, func(path string) bool { return strings.HasPrefix(path, "spec.podSelector.") })
	if at >= 0 {
		d.bad(reasonPolicyField, "%.200s: this version does not know the field: the policy selects no pod", d.unknown[at])
	}
	return at < 0
}

// closeUnknown leaves out all rules if a field is not known that is not one of a rule.
func (d *policyDecoder) closeUnknown() {
	for _, path := range d.unknown {
		if strings.HasPrefix(path, "spec.") && !strings.HasPrefix(path, "spec.ingress[") &&
			!strings.HasPrefix(path, "spec.egress[") {
			d.bad(reasonPolicyField, "%.200s: this version does not know the field: no rule of the policy allows anything",
				path)
			d.out.Ingress.Rules, d.out.Egress.Rules = nil, nil
		}
	}
}
