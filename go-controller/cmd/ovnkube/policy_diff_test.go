package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// With a Northbound database, policy diff says whether it has the rows of the policies, and takes subnets from there.
func TestPolicyDiffDatabase(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	const file = "testdata/policy-check.in.yaml"
	remote, url := translatedFrom(t, file, testkit.NBSchemas()["25.03"]), listsOf(t, file).serve(t)
	diff := func(what string, exit int, args []string, want ...string) {
		t.Helper()
		got := ovnkube(t.Context(), nil, append([]string{"policy", "diff", "--log-level=error", "--k8s-apiserver", url},
			args...)...)
		for _, line := range want {
			if got.exit != exit || !strings.Contains(got.stdout+got.stderr, line) {
				t.Errorf("%s: want exit code %d and %q:\n%s", what, exit, line, got)
			}
		}
	}
	gone := []string{"--delete", "np/shop/web", "--nb-address", remote}
	const lost, there = "- desk                       shop app=web               tcp/8080,9000-9100 udp\n",
		"The Northbound database has the rows of the policies as they are now."
	diff("as wanted", 2, gone, lost, there+"\n")
	diff("JSON", 2, append(gone, "-o", "json"), `"`+there+`"`)

	nbctl(t, remote, "set", "acl", strings.TrimSpace(nbctl(t, remote, "--bare", "--columns=_uuid", "find", "acl",
		`external_ids:"k8s.ovn.org/owner-name"="shop/web"`, `external_ids:"k8s.ovn.org/role"="ingress-0-v4-tcp-http=8080"`)),
		"match=0")
	diff("another ACL", 2, gone, lost, "The Northbound database is not yet what the cluster wants now. Changes due to "+
		"rows of policies, selectors and pods: 1, also of np/shop/web. Until the master has made them, ")
	diff("two directories", 0, []string{"--from", file, "-f", file, "--nb-address", "unix:/nowhere"},
		"No connection is gained or lost.\n")
	diff("no database", 1, []string{"--delete", "np/shop/web", "--timeout=1s", "--nb-address", "unix:/nowhere"},
		"unix:/nowhere")
}

// policy diff has the settings of the master, as the other commands do: those that it has published, or those among the
// manifests of --from. A flag counts more.
func TestPolicyDiffSettings(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	const file = "testdata/policy-check.in.yaml"
	const settings = `{"apiVersion": "v1", "kind": "ConfigMap", "data": {"multitenant": "true",
		"cluster-subnets": "10.128.0.0/14/23"}, "metadata": {"name": "northbound-settings", "namespace": "kube-system"}}`
	published := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(published, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	objects := listsOf(t, file)
	objects["/api/v1/namespaces/kube-system/configmaps/northbound-settings"] = settings
	live := []string{"--k8s-apiserver", objects.serve(t), "--delete", "np/shop/web"}
	const between = "- desk "
	for _, test := range []struct {
		what string
		args []string
		want bool // desk, another tenant, reaches the web pods before, so that it loses something
	}{
		{"published", live, false},
		{"a flag beside what is published", append([]string{"--multitenant=false"}, live...), true},
		{"no settings", []string{"--k8s-apiserver", listsOf(t, file).serve(t), "--delete", "np/shop/web"}, true},
		{"--from", []string{"--from", file, "--from", published, "-f", withoutPolicy(t, file)}, false},
		{"--from, no settings", []string{"--from", file, "-f", withoutPolicy(t, file)}, true},
	} {
		got := ovnkube(t.Context(), nil, append([]string{"policy", "diff", "--log-level=error"}, test.args...)...)
		if lost := strings.Contains(got.stdout, between); lost != test.want || got.exit != 2 {
			t.Errorf("%s: want exit code 2, and %q: %t:\n%s", test.what, between, test.want, got)
		}
	}
}

// withoutPolicy is a copy of manifests without the policy web.
func withoutPolicy(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	documents := slices.DeleteFunc(strings.Split(string(raw), "\n---\n"), func(d string) bool {
		return strings.Contains(d, "kind: NetworkPolicy") && strings.Contains(d, "name: web")
	})
	out := filepath.Join(t.TempDir(), "without.yaml")
	if err := os.WriteFile(out, []byte(strings.Join(documents, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// The addresses of names are those of the database. A name that is new has none there.
func TestPolicyDiffNames(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	const file = "testdata/domain-names.in.yaml"
	remote, url := translatedFrom(t, file, testkit.NBSchemas()["25.03"]), listsOf(t, file).serve(t)
	set := strings.TrimSpace(nbctl(t, remote, "--bare", "--columns=name", "find", "address_set",
		`external_ids:"k8s.ovn.org/selector"="domain name www.example.org"`))
	nbctl(t, remote, "set", "address_set", set, "addresses=203.0.113.10")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "after.yaml")
	after := strings.ReplaceAll(string(raw), "WWW.example.org., inside.example.org", "www.example.org, new.example.org")
	if err := os.WriteFile(changed, []byte(strings.ReplaceAll(after, "number: 443", "number: 444")), 0o600); err != nil {
		t.Fatal(err)
	}
	got := ovnkube(t.Context(), nil, "policy", "diff", "--log-level=error", "--k8s-apiserver", url, "-f", changed,
		"--nb-address", remote)
	for _, want := range []string{"- shop  outside (as 203.0.113.10)  tcp/443\n",
		"+ shop  outside (as 203.0.113.10)  tcp/444\n",
		"The Northbound database has the rows of the policies as they are now.\n",
		"domainNames: the addresses of new.example.org are not known here: rules accept nothing for it"} {
		if got.exit != 2 || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("want exit code 2 and %q:\n%s", want, got)
		}
	}
	check := ovnkube(t.Context(), nil, "policy", "check", "--log-level=error", "--k8s-apiserver", url, "--nb-address",
		remote, "shop/web-0", "www.example.org:443")
	for _, want := range []string{"-> dns/www.example.org:443: allowed\n", "-> outside (203.0.113.10)\n",
		"www.example.org has the addresses that the database has for it: nobody asks DNS here"} {
		if check.exit != 0 || !strings.Contains(check.stdout, want) {
			t.Errorf("want exit code 0 and %q:\n%s", want, check)
		}
	}
}

// What manifests say of an object that is there does not make it younger: the limits of its namespace count by age.
func TestAppliedKeepsAge(t *testing.T) {
	name := cluster.Name{Namespace: "shop", Name: "a"}
	policy := func(created int64) cluster.NetworkPolicy { return cluster.NetworkPolicy{Name: name, Created: created} }
	was, now := policy(5), policy(math.MaxInt64)
	got := applied(
		[]cluster.Object{&was, &cluster.MultiNetworkPolicy{NetworkPolicy: policy(6)},
			&cluster.TieredPolicy{Name: "a", Created: 7}},
		[]cluster.Object{&now, &cluster.MultiNetworkPolicy{NetworkPolicy: policy(8)},
			&cluster.TieredPolicy{Name: "a", Created: 8},
			&cluster.NetworkPolicy{Name: cluster.Name{Namespace: "shop", Name: "b"}, Created: 9}})
	var created []int64
	for _, o := range got {
		switch o := o.(type) {
		case *cluster.NetworkPolicy:
			created = append(created, o.Created)
		case *cluster.MultiNetworkPolicy:
			created = append(created, o.Created)
		case *cluster.TieredPolicy:
			created = append(created, o.Created)
		}
	}
	if want := []int64{5, 6, 7, 9}; !slices.Equal(created, want) {
		t.Errorf("created at %v, want %v", created, want)
	}
}
