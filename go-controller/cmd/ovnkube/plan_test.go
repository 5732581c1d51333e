package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const planInput = "testdata/one-node.in.yaml"

// translated starts a server of the schema with the database that translate makes from planInput.
func translated(t *testing.T, schema string) (remote string) {
	t.Helper()
	return translatedFrom(t, planInput, schema)
}

// translatedFrom is like translated, for another input.
func translatedFrom(t *testing.T, input, schema string) (remote string) {
	t.Helper()
	out := ovnkube(t.Context(), nil, "translate", "-f", input, "-o", "ovsdb")
	if out.exit != 0 {
		t.Fatal(out)
	}
	return testkit.ServeOVSDB(t, out.stdout, schema)
}

func nbctl(t *testing.T, remote string, args ...string) string {
	t.Helper()
	return testkit.Run(t, "ovn-nbctl", append([]string{"--no-leader-only", "--db=" + remote}, args...)...)
}

func plan(t *testing.T, remote string, args ...string) result {
	t.Helper()
	return ovnkube(t.Context(), nil, append([]string{"plan", "--log-level=error", "--nb-address", remote}, args...)...)
}

// A database that translate made needs no changes, on any OVN release. Plan shows what was edited by hand, and changes
// nothing.
func TestPlan(t *testing.T) {
	for ovn, schema := range testkit.NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			remote := translated(t, schema)
			nothing := result{stdout: "Nothing to do: the Northbound database holds what is wanted.\n"}
			if got := plan(t, remote, "-f", planInput); got != nothing {
				t.Fatalf("plan of what is there:\n%s", got)
			}
			nbctl(t, remote, "ls-add", "of-somebody-else")
			nbctl(t, remote, "lsp-del", "default_web-0")
			ports := strings.TrimSpace(nbctl(t, remote, "get", "Logical_Switch_Port", "stor-n1", "_uuid"))
			nbctl(t, remote, "remove", "Logical_Switch", "n1", "ports", ports, "--", "add", "Logical_Switch", "of-somebody-else",
				"ports", ports)
			nbctl(t, remote, "set", "Logical_Switch_Port", "k8s-n1", "addresses=unknown", "--", "set", "Logical_Router",
				"ovn_cluster_router", "options:dynamic_neigh_routers=false")
			before := nbctl(t, remote, "show")
			want := `~ Logical_Router ovn_cluster_router  (Cluster cluster, router)
      options  ~ dynamic_neigh_routers="false" -> "true"
~ Logical_Switch_Port k8s-n1  (Node n1, management)
      addresses  - "unknown"
      addresses  + "0a:58:0a:80:00:02 10.128.0.2"
~ Logical_Switch n1  ports  + Logical_Switch_Port stor-n1
+ Logical_Switch_Port default_web-0  (Pod default/web-0, port)
      name  + "default_web-0"
      addresses  + "0a:58:0a:80:00:03 10.128.0.3"
      port_security  + "0a:58:0a:80:00:03 10.128.0.3"
      options  + iface-id-ver="33333333-0000-4000-8000-000000000001"
      options  + requested-chassis="n1"
      external_ids  + k8s.ovn.org/owner-name="default/web-0"
      external_ids  + k8s.ovn.org/owner-type="Pod"
      external_ids  + k8s.ovn.org/role="port"
      external_ids  + namespace="default"
      external_ids  + pod="true"
~ Logical_Switch n1  ports  + Logical_Switch_Port default_web-0

Plan: 1 to add, 3 to change, 0 to remove.
`
			if got := plan(t, remote, "-f", planInput); got != (result{stdout: want, exit: 2}) {
				t.Errorf("plan differs at %s", firstDifference(got.String(), result{stdout: want, exit: 2}.String()))
			}
			if after := nbctl(t, remote, "show"); after != before {
				t.Errorf("plan changed the database:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// What somebody did to a policy's rows, to the group of its pods, and to a set of its peers' addresses.
func TestPlanOfPolicies(t *testing.T) {
	const file = "testdata/policy-check.in.yaml"
	for ovn, schema := range testkit.NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			remote := translatedFrom(t, file, schema)
			nbctl(t, remote, "set", "ACL", "ac5df151-376f-53b8-8fd8-772bf5d7fc72", "action=drop")
			nbctl(t, remote, "clear", "Port_Group", "sel_774ae86f7e1efd715b79", "ports")
			nbctl(t, remote, "add", "Address_Set", "sel_dd3a70079beb58f28bc4_v4", "addresses", "10.66.66.66")
			want := `~ Address_Set sel_dd3a70079beb58f28bc4_v4  (Selector dd3a70079beb58f28bc4, addresses-v4)
      addresses  - "10.66.66.66"
~ ACL outport == @sel_774ae86f7e1efd715b79 && ip4.src == $sel_dd3a70079beb58f28bc4_v4 && 9000 <= tcp.dst <= 9100  ` +
				`(NetworkPolicy shop/web, ingress-0-v4-tcp)
      action  ~ "drop" -> "allow-related"
~ Port_Group sel_774ae86f7e1efd715b79  ports  + Logical_Switch_Port shop_web-0

Plan: 0 to add, 3 to change, 0 to remove.
`
			if got := plan(t, remote, "-f", file); got != (result{stdout: want, exit: 2}) {
				t.Errorf("plan differs at %s", firstDifference(got.String(), result{stdout: want, exit: 2}.String()))
			}
		})
	}
}

// With an empty database, everything is added. With an empty cluster, everything is removed.
func TestPlanFromAndToNothing(t *testing.T) {
	empty := testkit.StartOVSDB(t, testkit.NBSchemas()["23.03"])
	got := plan(t, empty, "-f", planInput)
	if got.exit != 2 || !strings.HasSuffix(got.stdout, "\nPlan: 23 to add, 0 to change, 0 to remove.\n") ||
		got.stderr != "" {
		t.Errorf("plan onto an empty database:\n%s", got)
	}
	full := translated(t, testkit.NBSchemas()["23.03"])
	none := filepath.Join(t.TempDir(), "none.yaml")
	if err := os.WriteFile(none, []byte("# an empty cluster\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got = plan(t, full, "-f", none)
	if got.exit != 2 || !strings.HasSuffix(got.stdout, "\nPlan: 0 to add, 0 to change, 8 to remove.\n") {
		t.Errorf("plan of an empty cluster:\n%s", got)
	}
}

// A gateway that a master took out of service because its lease expired stays out of service: no object says so, only
// the database.
func TestPlanOfSilentGateway(t *testing.T) {
	const input = "testdata/gateway-out-of-service.in.yaml"
	text, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	well := regexp.MustCompile(`,"out-of-service":"[^"]*"`).ReplaceAll(text, nil)
	file := filepath.Join(t.TempDir(), "well.yaml")
	if err := os.WriteFile(file, well, 0o600); err != nil || len(well) == len(text) {
		t.Fatal(err, "nothing is out of service")
	}
	remote := translatedFrom(t, input, testkit.NBSchemas()["25.03"])
	const nothing = "Nothing to do: the Northbound database holds what is wanted.\n"
	got := plan(t, remote, "-f", file)
	if want := "ovnkube: warning: Node n2: the cluster router has no routes to its gateway: planned as a gateway " +
		"that is down"; got.exit != 0 || got.stdout != nothing || strings.Count(got.stderr, "warning") != 1 ||
		!strings.HasPrefix(got.stderr, want) {
		t.Errorf("plan:\n%s", got)
	}
	if got := plan(t, remote, "-f", input); got != (result{stdout: nothing}) {
		t.Errorf("plan of gateways whose Nodes say why:\n%s", got)
	}
}

func TestPlanErrors(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["23.03"])
	gone := "unix:" + filepath.Join(t.TempDir(), "gone.sock")
	for what, c := range map[string]struct {
		args []string
		want string // a regular expression
	}{
		"no Northbound database": {[]string{"--nb-address", gone, "-f", planInput, "--timeout", "1500ms"},
			`^ovnkube: connecting to the Northbound database: ` + regexp.QuoteMeta(gone) + `: .*no such file or directory\n$`},
		"not a Northbound database": {[]string{"--nb-address", testkit.StartOVSDB(t, testkit.VSwitchSchema()), "-f",
			planInput, "--timeout", "1500ms"},
			`^ovnkube: connecting to the Northbound database: .*OVN_Northbound`},
		"no API server": {[]string{"--nb-address", remote, "--k8s-apiserver", "http://127.0.0.1:1", "--timeout", "300ms"},
			`ovnkube: waiting for the API server http://127.0.0.1:1: context deadline exceeded\n$`},
		"no cluster at all": {[]string{"--nb-address", remote},
			`^ovnkube: no API server given: want --kubeconfig or --k8s-apiserver, or to run in a pod\n$`},
		"an argument":   {[]string{"x.yaml"}, `^ovnkube: plan: unexpected argument "x.yaml"`},
		"a bad address": {[]string{"--nb-address", "nowhere", "-f", planInput}, `^ovnkube: --nb-address "nowhere": want `},
	} {
		t.Run(what, func(t *testing.T) {
			got := ovnkube(t.Context(), nil, append([]string{"plan", "--log-level=error"}, c.args...)...)
			if got.exit != 1 || !regexp.MustCompile(c.want).MatchString(got.stderr) {
				t.Errorf("%s\nwant exit 1 and %s", got, c.want)
			}
		})
	}
}

// A broken manifest is an error, and the plan of the others is printed all the same.
func TestPlanWithBrokenManifests(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["23.03"])
	got := plan(t, remote, "-f", planInput, "-f", "testdata/hostile.in.yaml")
	if got.exit != 1 || !strings.Contains(got.stdout, "+ Logical_Switch_Port default_web-0 ") ||
		!strings.Contains(got.stderr, "Pod default/twice is given twice") {
		t.Errorf("plan:\n%s", got)
	}
}

// lists holds the answers of a fake API server: URL path -> list as JSON.
type lists map[string]string

// aCluster is a cluster of a node, a pod and a broken service.
func aCluster() lists {
	return lists{
		"/version": `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`,
		"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},` +
			`"items":[{"metadata":{"name":"n1","uid":"11111111-0000-4000-8000-000000000001"}}]}`,
		"/api/v1/namespaces": `{"kind":"NamespaceList","apiVersion":"v1",` +
			`"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"default",` +
			`"uid":"22222222-0000-4000-8000-000000000001"}}]}`,
		"/api/v1/pods": `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},` +
			`"items":[{"metadata":{"name":"web-0","namespace":"default","uid":"33333333-0000-4000-8000-000000000001"},` +
			`"spec":{"nodeName":"n1"}}]}`,
		"/api/v1/services": `{"kind":"ServiceList","apiVersion":"v1",` +
			`"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"broken","namespace":"default"},` +
			`"spec":{"clusterIP":"10.96.0.9"}}]}`,
		"/apis/networking.k8s.io/v1/networkpolicies": `{"kind":"NetworkPolicyList","apiVersion":"networking.k8s.io/v1",` +
			`"metadata":{"resourceVersion":"1"},"items":[]}`,
		"/apis/discovery.k8s.io/v1/endpointslices": `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1",` +
			`"metadata":{"resourceVersion":"7"},"items":[]}`,
	}
}

// serve starts a read-only API server that has only the lists, and returns its URL.
func (l lists) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("%s %s: want no writes", r.Method, r.URL)
			http.Error(w, "no", http.StatusMethodNotAllowed)
		case r.URL.Query().Get("sendInitialEvents") != "":
			http.Error(w, "not supported here", http.StatusUnprocessableEntity)
		case r.URL.Query().Get("watch") != "":
			<-r.Context().Done()
		case l[r.URL.Path] == "":
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(l[r.URL.Path]))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// plan and master --dry-run read the cluster from an API server. The end-to-end tests do the same with a real one.
func TestPlanFromAPIServer(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	url := aCluster().serve(t)
	remote := translated(t, testkit.NBSchemas()["23.03"])
	for _, command := range [][]string{{"plan"}, {"master", "--dry-run"}} {
		args := append(command, "--log-level=error", "--nb-address", remote, "--k8s-apiserver", url)
		if got := ovnkube(t.Context(), nil, args...); got.exit != 0 || !strings.HasPrefix(got.stdout, "Nothing to do") ||
			!strings.HasPrefix(got.stderr, "ovnkube: warning: Service default/broken: NoServicePorts: ") {
			t.Errorf("%v of the cluster that was translated:\n%s", command, got)
		}
	}
	nbctl(t, remote, "lsp-del", "default_web-0")
	if got := ovnkube(t.Context(), nil, "master", "--dry-run", "--log-level=error", "--nb-address", remote,
		"--k8s-apiserver", url); got.exit != 2 ||
		!strings.Contains(got.stdout, "+ Logical_Switch_Port default_web-0 ") {
		t.Errorf("master --dry-run:\n%s", got)
	}
}

// plan beside a database that is recorded for another cluster says so. A master would end there.
func TestPlanOfAnotherCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	ours := aCluster()
	ours["/api/v1/namespaces"] = strings.Replace(ours["/api/v1/namespaces"], `"name":"default"`, `"name":"kube-system"`, 1)
	remote := translated(t, testkit.NBSchemas()["23.03"])
	args := []string{"plan", "--log-level=error", "--nb-address", remote, "--k8s-apiserver", ours.serve(t)}
	const warning = "another cluster: it is recorded for the cluster whose namespace kube-system has the UID theirs, " +
		"and here that UID is 22222222-0000-4000-8000-000000000001"
	for recorded, warned := range map[string]bool{"theirs": true, "22222222-0000-4000-8000-000000000001": false} {
		nbctl(t, remote, "set", "logical_router", "ovn_cluster_router", "external_ids:"+names.UIDKey+"="+recorded)
		got := ovnkube(t.Context(), nil, args...)
		if got.exit != 2 || strings.Contains(got.stderr, warning) != warned {
			t.Errorf("plan beside a database of the cluster %s:\n%s", recorded, got)
		}
	}
}
