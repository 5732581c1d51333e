package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// served is a cluster with a service that has endpoints and a service that is broken.
func served() lists {
	out := aCluster()
	out["/api/v1/services"] = `{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[
		{"metadata":{"name":"broken","namespace":"default"},"spec":{"clusterIP":"10.96.0.9"}},
		{"metadata":{"name":"web","namespace":"default","uid":"u-web"},"spec":{"clusterIP":"10.96.0.1",
		 "ports":[{"name":"http","port":80},{"name":"dns","port":53,"protocol":"UDP"}]}}]}`
	out["/apis/discovery.k8s.io/v1/endpointslices"] = `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1",
		 "metadata":{"resourceVersion":"7"},"items":[
		{"metadata":{"name":"web-x","namespace":"default","labels":{"kubernetes.io/service-name":"web"}},
		 "addressType":"IPv4","ports":[{"name":"http","port":8080}],
		 "endpoints":[{"addresses":["10.128.0.3"]},{"addresses":["nonsense"]}]}]}`
	return out
}

// webManifest is the service of served that has endpoints.
const webManifest = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default, uid: u-web}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}, {name: dns, port: 53, protocol: UDP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-x, namespace: default, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.128.0.3]}]
`

// Without manifests, explain compares the service's rows with the Northbound database, of every OVN release.
func TestExplainLive(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	for ovn, schema := range testkit.NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			url, remote := served().serve(t), testkit.StartOVSDB(t, schema)
			explain := func(name string) result {
				return ovnkube(t.Context(), nil, "explain", "svc", "--log-level=error", "--nb-address", remote, "--k8s-apiserver",
					url, name)
			}
			want := func(what string, rows string) {
				t.Helper()
				_, got, _ := strings.Cut(explain("default/web").stdout, "\nRows\n")
				if !regexp.MustCompile(`^(?s:` + rows + `)$`).MatchString(got) {
					t.Errorf("%s: rows\n%swant\n%s", what, got, rows)
				}
			}
			all := explain("default/web")
			if all.exit != 0 || all.stderr != "" || !strings.Contains(all.stdout, `
Port http 80/TCP over IPv4
  VIP  10.96.0.1:80     spec.clusterIPs
  in   10.128.0.3:8080  ready  (slice web-x)
`) || !strings.Contains(all.stdout, `
Problems
  EndpointSlice default/web-x: InvalidEndpoint: endpoints: "nonsense" is not an IP address: the endpoint is left out
`) || strings.Contains(all.stdout, "broken") {
				t.Errorf("explained:\n%s", all)
			}
			const uuid = `  [0-9a-f-]{36}  `
			want("an empty database", `  Load_Balancer Service_default/web_TCP`+uuid+
				`missing\n  Load_Balancer Service_default/web_UDP`+uuid+`missing\n`)
			script := ovnkube(t.Context(), strings.NewReader(webManifest), "translate", "-f", "-", "-o", "nbctl")
			if script.exit != 0 {
				t.Fatal(script)
			}
			// The database chose the UUIDs of the script's rows, so these rows are not wanted.
			testkit.Run(t, "sh", "-ec", "export OVN_NB_DB="+remote+"\n"+script.stdout)
			want("rows of a script", `.*web_TCP`+uuid+`missing\n.*web_UDP`+uuid+`missing\n.*web_TCP`+uuid+
				`not wanted\n.*web_UDP`+uuid+`not wanted\n`)
		})
	}
}

// Kinds and names may be written as for kubectl.
func TestExplainAsForKubectl(t *testing.T) {
	const policies, tiers = "testdata/policy-check.in.yaml", "testdata/cluster-policies.in.yaml"
	for _, same := range [][][]string{
		{{"np", "shop/web", "-f", policies}, {"np/web", "-n", "shop", "-f", policies},
			{"networkpolicy/shop/web", "-f", policies}},
		{{"cnp", "guard", "-f", tiers}, {"cnp/guard", "-f", tiers}, {"clusternetworkpolicy/guard", "-f", tiers}},
	} {
		want := ovnkube(t.Context(), nil, append([]string{"explain"}, same[0]...)...)
		if want.exit != 0 || !strings.Contains(want.stdout, "\nRows\n  ACL ") {
			t.Errorf("explain %v:\n%s", same[0], want)
		}
		for _, args := range same[1:] {
			if got := ovnkube(t.Context(), nil, append([]string{"explain"}, args...)...); got != want {
				t.Errorf("explain %v:\n%swant, as with %v:\n%s", args, got, same[0], want)
			}
		}
	}
}

// A policy without rules has no rows, and is in force all the same.
func TestExplainPolicyWithoutRules(t *testing.T) {
	got := ovnkube(t.Context(), nil, "explain", "np", "shop/deny", "-f", "testdata/policy-check.in.yaml")
	if got.exit != 0 || !strings.Contains(got.stdout, "\nRows\n  none of its own: it has no rule that allows anything. ") {
		t.Errorf("%s", got)
	}
}

// Rows that were edited in the database are shown as different, the others as wanted.
func TestExplainDifferences(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	l := aCluster()
	l["/api/v1/services"] = `{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[
		{"metadata":{"name":"no-endpoints","namespace":"default","uid":"u-2"},"spec":{"clusterIP":"10.96.0.2",
		 "ports":[{"port":80}]}},
		{"metadata":{"name":"three-protocols","namespace":"default","uid":"u-5"},"spec":{"clusterIP":"10.96.0.5",
		 "ports":[{"name":"tcp","port":5060},{"name":"udp","port":5060,"protocol":"UDP"}]}}]}`
	remote := translatedFrom(t, "testdata/services.in.yaml", testkit.NBSchemas()["25.03"])
	url := l.serve(t)
	rows := func(name string) string {
		t.Helper()
		out := ovnkube(t.Context(), nil, "explain", "svc", "--log-level=error", "--nb-address", remote, "--k8s-apiserver",
			url, name)
		_, got, _ := strings.Cut(out.String(), "\nRows\n")
		return got
	}
	if got, want := rows("default/no-endpoints"), "  Load_Balancer Service_default/no-endpoints_TCP  "+
		"1b46a160-6860-5faa-814f-de10a8da3cd3  as wanted\n"; got != want {
		t.Errorf("rows:\n%swant\n%s", got, want)
	}
	nbctl(t, remote, "set", "Load_Balancer", "1b46a160-6860-5faa-814f-de10a8da3cd3", `vips={"10.96.0.2:80"="10.6.6.6:80"}`,
		"--", "clear", "Load_Balancer_Group", "clusterLBGroup", "load_balancer")
	if got, want := rows("default/no-endpoints"),
		`  Load_Balancer Service_default/no-endpoints_TCP  1b46a160-6860-5faa-814f-de10a8da3cd3  different
      vips  ~ 10.96.0.2:80="10.6.6.6:80" -> ""
      is not listed in Load_Balancer_Group clusterLBGroup
`; got != want {
		t.Errorf("rows:\n%swant\n%s", got, want)
	}
	// The database was made when the service had endpoints and a third port.
	if got, want := rows("default/three-protocols"),
		`  Load_Balancer Service_default/three-protocols_TCP  5645c419-b7cc-506b-bf8c-82fff5cf0c3c  different
      vips  ~ 10.96.0.5:5060="10.128.0.3:15060,10.128.0.4:15060" -> ""
      is not listed in Load_Balancer_Group clusterLBGroup
  Load_Balancer Service_default/three-protocols_UDP  8fa87ad5-f561-54bd-838e-5489f556a9a4  different
      vips  ~ 10.96.0.5:5060="10.128.0.3:15060,10.128.0.4:15060" -> ""
      is not listed in Load_Balancer_Group clusterLBGroup
  Load_Balancer Service_default/three-protocols_SCTP  7446ea0a-e296-5cb6-acfd-02e83c484bb5  not wanted
`; got != want {
		t.Errorf("rows:\n%swant\n%s", got, want)
	}
}

func TestExplainErrors(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	for what, c := range map[string]struct {
		args []string
		want string
	}{
		"no kind":        {nil, "explain: the kind is missing: want one of svc, cluster, zone, node, gateway, exit"},
		"flags first":    {[]string{"-f", planInput, "svc", "a/b"}, "explain: flags follow the kind"},
		"flags first/":   {[]string{"-f", planInput, "np/a/b"}, "explain: flags follow the kind"},
		"unknown kind/":  {[]string{"widget/a"}, `explain: no kind "widget/a": want one of svc, cluster`},
		"kind/name":      {[]string{"np/web"}, `explain networkpolicy: "web": want NAMESPACE/NAME of a networkpolicy`},
		"unknown kind":   {[]string{"widget", "a/b"}, `explain: no kind "widget": want one of svc, cluster`},
		"no name":        {[]string{"svc"}, "explain svc: the name is missing: want NAMESPACE/NAME"},
		"no namespace":   {[]string{"svc", "web"}, `explain svc: "web": want NAMESPACE/NAME`},
		"too many names": {[]string{"svc", "a/b/c"}, `explain svc: "a/b/c": want NAMESPACE/NAME`},
		"two names": {[]string{"svc", "a/b", "-o", "json", "c/d"},
			`explain svc: unexpected argument "c/d": want NAMESPACE/NAME of a service, once`},
		"a flag's value": {[]string{"svc", "a/b", "-o"}, "flag needs an argument: -o"},
		"unknown flag":   {[]string{"svc", "--nosuch"}, "no flag --nosuch"},
		"unknown format": {[]string{"svc", "-o", "xml", "a/b"}, `--output "xml": want text, json or yaml`},
		"no cluster":     {[]string{"svc", "a/b"}, "no API server given"},
		"no API server": {[]string{"svc", "--log-level=error", "--k8s-apiserver", "http://127.0.0.1:1", "--timeout",
			"300ms", "a/b"}, "waiting for the API server http://127.0.0.1:1: context deadline exceeded"},
		"no such service": {[]string{"svc", "-f", planInput, "default/web"},
			"there is no Service default/web: namespace default has none"},
		"no such pod":   {[]string{"pod", "-f", planInput, "default/nosuch"}, "there is no Pod default/nosuch"},
		"a pod's name":  {[]string{"pod", "web"}, `explain pod: "web": want NAMESPACE/NAME of a pod`},
		"a node's name": {[]string{"node", "a/b"}, `explain node: "a/b": want NAME of a node`},
		"no file": {[]string{"svc", "-f", "nosuch.yaml", "default/web"},
			"reading manifests: stat nosuch.yaml: no such file or directory"},
	} {
		got := ovnkube(t.Context(), nil, append([]string{"explain"}, c.args...)...)
		if got.exit != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, "ovnkube: "+c.want) {
			t.Errorf("%s:\n%s\nwant exit 1 and %s", what, got, c.want)
		}
	}
}

// Flags may precede or follow the name.
func TestFlagsAnywhere(t *testing.T) {
	want := ovnkube(t.Context(), nil, "explain", "svc", "-f", "testdata/explain.in.yaml", "-o", "json", "shop/web")
	if want.exit != 0 || !strings.HasPrefix(want.stdout, "{\n") {
		t.Fatal(want)
	}
	for _, args := range [][]string{
		{"shop/web", "-f", "testdata/explain.in.yaml", "-o", "json"}, {"-f", "testdata/explain.in.yaml", "shop/web",
			"--output=json"},
		{"--output", "json", "shop/web", "--filename", "testdata/explain.in.yaml"}, {"-o=json", "-f=testdata/explain.in.yaml",
			"--", "shop/web"},
	} {
		if got := ovnkube(t.Context(), nil, append([]string{"explain", "svc"}, args...)...); got != want {
			t.Errorf("explain svc %v: %s", args, firstDifference(got.String(), want.String()))
		}
	}
	for _, args := range [][]string{
		{"svc/shop/web", "-f", "testdata/explain.in.yaml", "-o", "json"},
		{"service/web", "-n", "shop", "-o", "json", "-f", "testdata/explain.in.yaml"},
		{"svc", "web", "-o", "json", "--namespace", "shop", "-f", "testdata/explain.in.yaml"},
	} {
		if got := ovnkube(t.Context(), nil, append([]string{"explain"}, args...)...); got != want {
			t.Errorf("explain %v: %s", args, firstDifference(got.String(), want.String()))
		}
	}
	for _, args := range [][]string{{"svc", "--help"}, {"svc", "shop/web", "-h"}, {"service", "--help"}} {
		got := ovnkube(t.Context(), nil, append([]string{"explain"}, args...)...)
		if got.exit != 0 || !strings.Contains(got.stdout, "--filename FILE") || !strings.Contains(got.stdout,
			"ovnkube explain svc [command options] NAMESPACE/NAME\n") {
			t.Errorf("explain %v:\n%s", args, got)
		}
	}
}

// Any owner is explained by its rows, in the text that people read and as JSON.
func TestExplainOwner(t *testing.T) {
	got := ovnkube(t.Context(), nil, "explain", "namespace", "-f", planInput, "default")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if got.exit != 0 || len(lines) != 4 || lines[0] != "Namespace default" ||
		!strings.HasPrefix(lines[3], "  Address_Set ns_default_v4  ") {
		t.Errorf("%s", got)
	}
	got = ovnkube(t.Context(), nil, "explain", "namespace", "-f", planInput, "-o", "json", "default")
	var e struct {
		Kind, Name string
		Rows       []struct{ Table, UUID string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &e); err != nil || e.Kind != "Namespace" || len(e.Rows) != 1 {
		t.Errorf("%v: %s", err, got)
	}
}
