package permissions_test

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

const page = "../../../../docs/reference/permissions.md"

// The page says what the rows say. `go test ./go-controller/internal/kube/permissions -update` writes it anew.
func TestPage(t *testing.T) { compare(t, page, markdown(kinds.All())) }

var update = flag.Bool("update", false, "write docs/reference/permissions.md and dist/kubernetes/roles.yaml anew")

func markdown(rows []kinds.Kind) string {
	var b strings.Builder
	b.WriteString(`# Permissions

Which rights the daemons need at the API server, and what they read there. This page is made from the code: a test
compares it, and ` + "`go test ./go-controller/internal/kube/permissions -update`" + ` writes it.

`)
	for _, d := range []kinds.Daemon{kinds.Master, kinds.Agent} {
		fmt.Fprintf(&b,
			"## `%s`\n\n| API group | resource | verbs | namespace | needed | what for |\n|---|---|---|---|---|---|\n", d)
		for _, r := range rulesOf(rows, d) {
			needed := "yes"
			switch {
			case r.Optional && slices.Equal(r.Verbs, watchVerbs()):
				needed = "if the API server has it"
			case r.Optional:
				needed = "no"
			}
			resource := "`" + r.Resource + "`"
			if r.Name != "" {
				resource += " `" + r.Name + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", cmp.Or(r.Group, "core"), resource,
				strings.Join(r.Verbs, ", "), cmp.Or(r.Namespace, "all"), needed, r.Why)
		}
		b.WriteString("\n")
	}
	b.WriteString(`An agent reads and annotates its own Node, and reads the pods on it. Of other Nodes it gets those with
endpoints of services of ` + "`externalTrafficPolicy: Local`" + `. It watches EndpointSlices as soon as there is such a
service, and that of the API server alone once a service has an external address. Without that right it serves all
other services.

The Lease of leader election is in the namespace of ` + "`--leader-elect-namespace`" + `. Without the rights to the
Leases in ` + "`kube-node-lease`" + ` the master notices later that a gateway is down.

` + "`k8s.ovn.org annotations`" + ` is no resource of the API server. It is a right that only the [admission
policies](../operate/permissions.md) ask for.

[dist/kubernetes/roles.yaml](../../dist/kubernetes/roles.yaml) gives all these rights.

## What is read

| kind | API version | scope | read by | annotated by | a daemon that may not read it |
|---|---|---|---|---|---|
`)
	for _, k := range rows {
		scope, withheld := "cluster", "waits"
		if k.Namespaced {
			scope = "namespace"
		}
		if k.Optional && slices.Contains(k.WatchedBy, kinds.Agent) {
			withheld = "goes on with the others, and is not ready"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s |\n", k.Kind, k.APIVersion(), scope, daemons(k.WatchedBy),
			daemons(k.AnnotatedBy), withheld)
	}
	return b.String()
}

func daemons(all []kinds.Daemon) string {
	var out []string
	for _, d := range all {
		out = append(out, strings.TrimPrefix(string(d), "ovnkube "))
	}
	return strings.Join(out, ", ")
}

// What the code asks for, beside the rows.
func TestRules(t *testing.T) {
	var got []string
	for _, d := range []kinds.Daemon{kinds.Master, kinds.Agent} {
		for _, r := range rulesOf(kinds.All(), d) {
			if !slices.Equal(r.Verbs, watchVerbs()) {
				got = append(got, fmt.Sprintf("%s: %s %s %v", d, r.Group, r.Resource, r.Verbs))
			}
		}
	}
	want := []string{
		"ovnkube master:  nodes [patch]", "ovnkube master:  pods/status [patch]",
		"ovnkube master:  nodes/status [patch]",
		"ovnkube master: policy.networking.k8s.io clusternetworkpolicies/status [patch]",
		"ovnkube master: k8s.ovn.org userdefinednetworks/status [patch]",
		"ovnkube master: k8s.ovn.org clusteruserdefinednetworks/status [patch]",
		"ovnkube master: k8s.cni.cncf.io ipamclaims/status [patch]",
		"ovnkube master: k8s.ovn.org userdefinednetworks [patch]",
		"ovnkube master: k8s.ovn.org clusteruserdefinednetworks [patch]",
		"ovnkube master:  events [create patch]",
		"ovnkube master: k8s.ovn.org annotations [write]",
		"ovnkube master:  configmaps [get update]", "ovnkube master:  configmaps [create]",
		"ovnkube master: coordination.k8s.io leases [get list]",
		"ovnkube master: coordination.k8s.io leases [get update]", "ovnkube master: coordination.k8s.io leases [create]",
		"ovnkube node:  nodes [patch]", "ovnkube node:  nodes [get]", "ovnkube node:  configmaps [get]",
		"ovnkube node: coordination.k8s.io leases [create patch]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rules\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The rules about a new kind follow from its row.
func TestNewKind(t *testing.T) {
	widget := kinds.Kind{
		Resource:  schema.GroupVersionResource{Group: "example.test", Version: "v1", Resource: "widgets"},
		WatchedBy: []kinds.Daemon{kinds.Master}, AnnotatedBy: []kinds.Daemon{kinds.Master}, Subresource: "status",
	}
	var got []string
	for _, r := range rulesOf(append(kinds.All(), widget), kinds.Master) {
		if r.Group == "example.test" {
			got = append(got, fmt.Sprint(r.Resource, r.Verbs))
		}
	}
	if want := []string{"widgets[list watch]", "widgets/status[patch]"}; !slices.Equal(got, want) {
		t.Errorf("rules %v, want %v", got, want)
	}
}
