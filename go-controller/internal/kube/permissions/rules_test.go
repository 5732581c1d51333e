package permissions_test

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/lease"
	"github.com/northbound-net/northbound/go-controller/internal/kube/settings"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// rule is one rule of a Role: what may be done with the objects of one resource.
type rule struct {
	Group    string // of the API; "" for the core group
	Resource string // with its subresource: "pods/status"
	Verbs    []string
	// Namespace has the objects; "" for all namespaces, and for objects without one.
	Namespace string
	Name      string // of the only object; "" for all
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

// watchVerbs are the verbs for a kind that is watched.
func watchVerbs() []string { return []string{"list", "watch"} }

// rulesOf are the rules of a daemon, in the order of the rows.
func rulesOf(rows []kinds.Kind, d kinds.Daemon) (out []rule) {
	for _, k := range kinds.WatchedBy(rows, d) {
		out = append(out, rule{
			Group: k.Resource.Group, Resource: k.Resource.Resource, Verbs: watchVerbs(), Optional: k.Optional, Why: "watched",
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
		why := "writes annotations"
		if d == kinds.Master && k.Kind == cluster.KindNode {
			why += ", and removes the taint `" + names.TaintAgentNotReady + "`"
		}
		out = append(out, rule{Group: k.Resource.Group, Resource: resource, Verbs: []string{"patch"}, Why: why})
	}
	for _, k := range rows {
		if slices.Contains(k.JudgedBy, d) {
			why := "writes a condition"
			if k.Kind == cluster.KindIPAMClaim {
				why += ", and the addresses"
			}
			out = append(out, rule{Group: k.Resource.Group, Resource: k.Resource.Resource + "/status",
				Verbs: []string{"patch"}, Optional: true, Why: why})
		}
	}
	for _, k := range rows {
		if slices.Contains(k.ProtectedBy, d) {
			out = append(out, rule{Group: k.Resource.Group, Resource: k.Resource.Resource,
				Verbs: []string{"patch"}, Optional: true, Why: "keeps it while pods use it, by a finalizer"})
		}
	}
	core := func(resource, why string, verbs ...string) rule {
		return rule{Group: corev1.GroupName, Resource: resource, Verbs: verbs, Why: why}
	}
	switch d {
	case kinds.Master:
		out = append(out, core("events", "reports problems", "create", "patch"), rule{
			Group: annotationGroup, Resource: annotations, Verbs: []string{write}, Why: "may write reserved annotations",
		})
	case kinds.Agent:
		out = append(out, core("nodes", "reads its own Node, and gateways", "get"))
	}
	return append(append(out, settingsRules(d)...), leases(d)...)
}

// settingsRules are the rules about the ConfigMap with the cluster's settings. RBAC cannot restrict what is created by
// its name.
func settingsRules(d kinds.Daemon) []rule {
	of := func(name, why string, verbs ...string) rule {
		return rule{Resource: "configmaps", Verbs: verbs, Namespace: settings.Namespace, Name: name, Optional: true, Why: why}
	}
	if d == kinds.Master {
		return []rule{of(settings.Name, "publishes the settings", "get", "update"),
			of("", "publishes the settings the first time", "create")}
	}
	return []rule{of(settings.Name, "reads the settings that its flags leave out", "get")}
}

// leases are the rules about Leases. The namespace of leader election is the default of --leader-elect-namespace. Its
// Lease alone can be changed there: others in that namespace say who leads in Kubernetes' own control plane.
func leases(d kinds.Daemon) []rule {
	of := func(namespace, name, why string, verbs ...string) rule {
		return rule{Group: coordinationv1.GroupName, Resource: "leases", Verbs: verbs, Namespace: namespace, Name: name,
			Optional: true, Why: why}
	}
	switch d {
	case kinds.Master:
		election := config.DefaultMaster().LeaderElect
		return []rule{
			of(lease.Namespace, "", "finds gateways that are down", "get", "list"),
			of(election.Namespace, election.Name, "elects the leader", "get", "update"),
			of(election.Namespace, "", "elects the leader the first time", "create"),
		}
	case kinds.Agent:
		return []rule{of(lease.Namespace, "", "renews a gateway's Lease", "create", "patch")}
	}
	return nil
}
