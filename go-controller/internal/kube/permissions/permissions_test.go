package permissions_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/lease"
	"github.com/northbound-net/northbound/go-controller/internal/kube/permissions"
)

const (
	page      = "../../../../docs/reference/permissions.md"
	manifests = "../../../../dist/kubernetes/gateway-leases.yaml"
)

// The page says what the rows say. `go test ./go-controller/internal/kube/permissions -update` writes it anew.
func TestPage(t *testing.T) {
	want := markdown(kinds.All())
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("docs/reference/permissions.md is not what the code says; to write it anew:\n"+
			"  go test ./go-controller/internal/kube/permissions -update\nwant:\n%s", want)
	}
}

var update = flag.Bool("update", false, "write docs/reference/permissions.md anew")

func markdown(rows []kinds.Kind) string {
	var b strings.Builder
	b.WriteString(`# Permissions

Which rights the daemons need at the API server, and what they read there. This page is made from the code: a test
compares it, and ` + "`go test ./go-controller/internal/kube/permissions -update`" + ` writes it.

`)
	for _, d := range []kinds.Daemon{kinds.Master, kinds.Agent} {
		fmt.Fprintf(&b,
			"## `%s`\n\n| API group | resource | verbs | namespace | needed | what for |\n|---|---|---|---|---|---|\n", d)
		for _, r := range permissions.Of(rows, d) {
			needed := "yes"
			if r.Optional {
				needed = "no"
			}
			fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s |\n", cmp.Or(r.Group, "core"), r.Resource,
				strings.Join(r.Verbs, ", "), cmp.Or(r.Namespace, "all"), needed, r.Why)
		}
		b.WriteString("\n")
	}
	b.WriteString(`An agent reads and annotates its own Node, and reads the pods on it. Of other Nodes it gets those with
endpoints of services of ` + "`externalTrafficPolicy: Local`" + `. It watches EndpointSlices as soon as there is such a
service. Without that right it serves all other services.

Leader election needs its Lease unless ` + "`--leader-elect=false`" + `. Without the rights to the Leases in
` + "`kube-node-lease`" + ` the master notices later that a gateway is down. These rights have a manifest:
[dist/kubernetes/gateway-leases.yaml](../../dist/kubernetes/gateway-leases.yaml).

## What is read

| kind | API version | scope | read by | annotated by | a daemon that may not read it |
|---|---|---|---|---|---|
`)
	for _, k := range rows {
		scope, withheld := "cluster", "waits"
		if k.Namespaced {
			scope = "namespace"
		}
		if k.Optional {
			withheld = "takes it that there are none, asks again"
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

// The manifest of the Leases gives what the daemons ask for, no more and no less.
func TestGatewayLeases(t *testing.T) {
	raw, err := os.ReadFile(manifests)
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]rbacv1.Role{}
	for doc := range strings.SplitSeq(string(raw), "\n---\n") {
		var r rbacv1.Role
		if err := yaml.Unmarshal([]byte(doc), &r); err != nil {
			t.Fatal(err)
		}
		if r.Kind == "Role" {
			roles[r.Name] = r
		}
	}
	for name, d := range map[string]kinds.Daemon{"northbound-gateway": kinds.Agent, "northbound-master": kinds.Master} {
		var want []rbacv1.PolicyRule
		for _, r := range permissions.Of(kinds.All(), d) {
			if r.Namespace == lease.Namespace {
				want = append(want, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource},
					Verbs: r.Verbs})
			}
		}
		if got := roles[name]; got.Namespace != lease.Namespace || fmt.Sprint(got.Rules) != fmt.Sprint(want) {
			t.Errorf("Role %s in namespace %q gives %v, want %v in %s", name, got.Namespace, got.Rules, want, lease.Namespace)
		}
	}
	if len(roles) != 2 {
		t.Errorf("%d Roles, want 2", len(roles))
	}
}

// What the code asks for, beside the rows.
func TestRules(t *testing.T) {
	var got []string
	for _, d := range []kinds.Daemon{kinds.Master, kinds.Agent} {
		for _, r := range permissions.Of(kinds.All(), d) {
			if !slices.Equal(r.Verbs, permissions.Read()) {
				got = append(got, fmt.Sprintf("%s: %s %s %v", d, r.Group, r.Resource, r.Verbs))
			}
		}
	}
	want := []string{
		"ovnkube master:  nodes [patch]", "ovnkube master:  pods/status [patch]", "ovnkube master:  events [create patch]",
		"ovnkube master: coordination.k8s.io leases [get list]",
		"ovnkube master: coordination.k8s.io leases [get create update]",
		"ovnkube node:  nodes [patch]", "ovnkube node: coordination.k8s.io leases [create patch]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rules\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
