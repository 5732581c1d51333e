package permissions

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/lease"
)

// Rule is one rule of a Role: what may be done with the objects of one resource.
type Rule struct {
	Group    string // of the API; "" for the core group
	Resource string // with its subresource: "pods/status"
	Verbs    []string
	// Namespace has the objects; "" for all namespaces, and for objects without one.
	Namespace string
	Optional  bool   // the daemon works without it
	Why       string // what it is for
}

// The right to write the annotations that dist/kubernetes/admission.yaml reserves. The API server has no such resource:
// only the policies there ask for this right.
const (
	annotationGroup = "k8s.ovn.org"
	annotations     = "annotations"
	write           = "write"
)

// Watch are the verbs for a kind that is watched.
func Watch() []string { return []string{"list", "watch"} }

// Of are the rules of a daemon, in the order of the rows.
func Of(rows []kinds.Kind, d kinds.Daemon) (out []Rule) {
	for _, k := range kinds.WatchedBy(rows, d) {
		out = append(out, Rule{
			Group: k.Resource.Group, Resource: k.Resource.Resource, Verbs: Watch(), Optional: k.Optional, Why: "watched",
		})
	}
	for _, k := range rows {
		if !slices.Contains(k.AnnotatedBy, d) {
			continue
		}
		resource := k.Resource.Resource
		if k.Subresource != "" {
			resource += "/" + k.Subresource
		}
		out = append(out, Rule{
			Group: k.Resource.Group, Resource: resource, Verbs: []string{"patch"}, Why: "writes annotations",
		})
	}
	core := func(resource, why string, verbs ...string) Rule {
		return Rule{Group: corev1.GroupName, Resource: resource, Verbs: verbs, Why: why}
	}
	switch d {
	case kinds.Master:
		out = append(out, core("events", "reports problems", "create", "patch"), Rule{
			Group: annotationGroup, Resource: annotations, Verbs: []string{write}, Why: "may write reserved annotations",
		})
	case kinds.Agent:
		out = append(out, core("nodes", "reads its own Node, and gateways", "get"))
	}
	return append(out, leases(d)...)
}

// leases are the rules about Leases. The namespace of leader election is the default of --leader-elect-namespace.
func leases(d kinds.Daemon) []Rule {
	rule := func(namespace, why string, verbs ...string) Rule {
		return Rule{
			Group: coordinationv1.GroupName, Resource: "leases", Verbs: verbs, Namespace: namespace, Optional: true, Why: why,
		}
	}
	switch d {
	case kinds.Master:
		return []Rule{
			rule(lease.Namespace, "finds gateways that are down", "get", "list"),
			rule(config.DefaultMaster().LeaderElect.Namespace, "elects the leader", "get", "create", "update"),
		}
	case kinds.Agent:
		return []Rule{rule(lease.Namespace, "renews a gateway's Lease", "create", "patch")}
	}
	return nil
}
