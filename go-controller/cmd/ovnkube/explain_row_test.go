package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A row is explained by its owner: an object that is there, or one that is gone.
func TestExplainRow(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	l := aCluster()
	l["/api/v1/services"] = `{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[
		{"metadata":{"name":"no-endpoints","namespace":"default","uid":"u-2"},"spec":{"clusterIP":"10.96.0.2",
		 "ports":[{"port":80}]}},
		{"metadata":{"name":"late","namespace":"default","uid":"u-late"},"spec":{"clusterIP":"10.96.0.99",
		 "ports":[{"port":80}]}}]}`
	remote := translatedFrom(t, "testdata/services.in.yaml", testkit.NBSchemas()["25.03"])
	url := l.serve(t)
	explain := func(args ...string) result {
		return ovnkube(t.Context(), nil, append([]string{"explain", "--log-level=error", "--nb-address", remote,
			"--k8s-apiserver", url}, args...)...)
	}
	check := func(what string, got result, exit int, want ...string) {
		t.Helper()
		for _, w := range want {
			if got.exit != exit || !strings.Contains(got.stdout+got.stderr, w) {
				t.Errorf("%s: want exit code %d and %q:\n%s", what, exit, w, got)
			}
		}
	}
	idOf := func(service string) string {
		return strings.TrimSpace(nbctl(t, remote, "--bare", "--columns=_uuid", "find", "load_balancer",
			`name="Service_default/`+service+`_TCP"`))
	}
	wanted := idOf("no-endpoints")
	row := "Row\n  Load_Balancer Service_default/no-endpoints_TCP  " + wanted + "  "

	check("a row that is there", explain("--row", wanted), 0,
		row+"as wanted\n\nService default/no-endpoints, ClusterIP\n", "\nRows\n  Load_Balancer ")
	check("as JSON", explain("--row", wanted, "-o", "json"), 0, `"row": {`, `"state": "as wanted"`,
		`"owner": {`)
	nbctl(t, remote, "set", "load_balancer", wanted, "options:reject=false")
	check("a row that was changed", explain("--row", wanted), 0, row+"different\n\nService ")
	check("a row whose owner is gone", explain("--row", idOf("three-protocols")), 0,
		idOf("three-protocols")+"  not wanted\n\nService default/three-protocols\n\nProblems\n",
		"  there is no such object any more: the master removes its rows\n",
		"\nRows\n  Load_Balancer Service_default/three-protocols")
	copied := strings.TrimSpace(nbctl(t, remote, "create", "load_balancer", "name=Service_default/no-endpoints_TCP",
		`external_ids={"k8s.ovn.org/owner-type"=Service,"k8s.ovn.org/owner-name"="default/no-endpoints",`+
			`"k8s.ovn.org/role"="`+strings.TrimSpace(nbctl(t, remote, "get", "load_balancer", wanted,
			`external_ids:"k8s.ovn.org/role"`))+`"}`))
	check("a copy", explain("--row", copied), 0, "_TCP  "+copied+"  not wanted\n\nService default/no-endpoints")
	check("a row that has a copy", explain("--row", wanted), 0, row+"different\n\nService ")
	missing := regexp.MustCompile(`Service_default/late_TCP  (\S+)  missing`).FindStringSubmatch(
		ovnkube(t.Context(), nil, "explain", "svc", "--log-level=error", "--nb-address", remote, "--k8s-apiserver", url,
			"default/late").stdout)
	if missing == nil {
		t.Fatal("the new service's row is not explained as missing")
	}
	check("a row that manifests do not want", ovnkube(t.Context(), strings.NewReader(webManifest), "explain", "--row",
		wanted, "-f", "-"), 1, "the manifests want no row "+wanted)
	check("a row that is missing", explain("--row", missing[1]), 0,
		"_TCP  "+missing[1]+"  missing\n\nService default/late")
	foreign := strings.TrimSpace(nbctl(t, remote, "create", "load_balancer", "name=mine"))
	check("a row of somebody else", explain("--row", foreign), 1, "is of somebody else")
	check("no such row", explain("--row", "12345678-1234-1234-1234-123456789abc"), 1,
		"no table that Northbound writes has a row 12345678-")
	check("no UUID", explain("--row", "Service_default/web_TCP"), 1, "want the _uuid of a row")
	check("both", explain("--row", foreign, "--acl=-"), 1, "want --row or --acl, not both")
}

// Rows that manifests ask for are explained without a database.
func TestExplainRowOfManifests(t *testing.T) {
	whole := ovnkube(t.Context(), strings.NewReader(webManifest), "explain", "svc", "default/web", "-f", "-")
	found := regexp.MustCompile(`  Load_Balancer Service_default/web_UDP  (\S+)\n`).FindStringSubmatch(whole.stdout)
	if found == nil {
		t.Fatal(whole)
	}
	got := ovnkube(t.Context(), strings.NewReader(webManifest), "explain", "--row", found[1], "-f", "-")
	if want := "Row\n" + found[0] + "\n" + whole.stdout; got.exit != 0 || got.stdout != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
