package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// listsOf is an API server's answers with the objects of a file.
func listsOf(t *testing.T, file string) lists {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	items := map[string][]json.RawMessage{}
	for _, doc := range regexp.MustCompile(`(?m)^---\n`).Split(string(raw), -1) {
		b, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		var o struct{ Kind string }
		if err := json.Unmarshal(b, &o); err != nil {
			t.Fatal(err)
		}
		items[o.Kind] = append(items[o.Kind], b)
	}
	out := aCluster()
	for kind, path := range map[string]string{"Node": "/api/v1/nodes", "Namespace": "/api/v1/namespaces",
		"Pod": "/api/v1/pods", "Service": "/api/v1/services",
		"NetworkPolicy":        "/apis/networking.k8s.io/v1/networkpolicies",
		"EndpointSlice":        "/apis/discovery.k8s.io/v1/endpointslices",
		"ClusterNetworkPolicy": "/apis/policy.networking.k8s.io/v1alpha2/clusternetworkpolicies"} {
		list, err := json.Marshal(map[string]any{"kind": kind + "List", "apiVersion": strings.TrimPrefix(
			strings.TrimPrefix(path[:strings.LastIndex(path, "/")], "/apis/"), "/api/"),
			"metadata": map[string]string{"resourceVersion": "7"}, "items": items[kind]})
		if err != nil {
			t.Fatal(err)
		}
		out[path] = string(list)
	}
	return out
}

// Without manifests, policy check compares the deciding rows with the Northbound database, and says when the database's
// own rows decide otherwise.
func TestPolicyCheckLive(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	const file = "testdata/policy-check.in.yaml"
	remote, url := translatedFrom(t, file, testkit.NBSchemas()["25.03"]), listsOf(t, file).serve(t)
	check := func(what string, exit int, args []string, want ...string) {
		t.Helper()
		got := ovnkube(t.Context(), nil, append([]string{"policy", "check", "--log-level=error", "--nb-address", remote,
			"--k8s-apiserver", url}, args...)...)
		for _, line := range want {
			if got.exit != exit || !strings.Contains(got.stdout, line) {
				t.Errorf("%s: want exit code %d and %q:\n%s", what, exit, line, got)
			}
		}
	}
	allowed, denied := []string{"desk/probe", "shop/web-0:http"}, []string{"node/n2", "shop/web-0:8080"}
	check("as wanted", 0, allowed, "-> pod/shop/web-0:http: allowed\n  Pod desk/probe has no address yet",
		"ingress  allowed  np/shop/web spec.ingress[0]  (ACL ingress-0-v4-tcp-http=8080 as wanted)\n")
	check("as wanted", 2, denied, "and no rule allows this  (ACL deny-in as wanted)\n")
	check("JSON", 0, append(allowed, "-o", "json"), `"state": "as wanted"`, `"field": "spec.ingress[0]"`)

	// The ACL that denies was removed and made again: it has another UUID.
	acl := strings.TrimSpace(nbctl(t, remote, "--bare", "--columns=_uuid", "find", "acl", "action=drop",
		`external_ids:"k8s.ovn.org/owner-name"=n1`, "direction=to-lport"))
	group := strings.TrimSpace(nbctl(t, remote, "--bare", "--columns=_uuid", "find", "port_group", "acls{>=}"+acl))
	again := names.StandIn(acl, 1)
	testkit.Run(t, "ovsdb-client", "transact", remote, fmt.Sprintf(`["OVN_Northbound",
		{"op": "mutate", "table": "Port_Group", "where": [["_uuid", "==", ["uuid", %[1]q]]],
			"mutations": [["acls", "delete", ["uuid", %[2]q]], ["acls", "insert", ["uuid", %[3]q]]]},
		{"op": "insert", "table": "ACL", "uuid": %[3]q, "row": {"action": "drop", "direction": "to-lport",
			"priority": 31000, "match": "outport == @%[4]s && ip", "external_ids": ["map", [["k8s.ovn.org/owner-name", "n1"],
			["k8s.ovn.org/owner-type", "Isolation"], ["k8s.ovn.org/role", "deny-in"]]]}}]`, group, acl, again,
		names.IngressGroup("n1")))
	check("another UUID", 2, append(denied, "-o", "json"), `"uuid": "`+again+`"`, `"state": "as wanted"`)

	// The set of the pods that the rule names is emptied: the database's rows deny.
	set := strings.TrimSpace(nbctl(t, remote, "--bare", "--columns=name", "find", "address_set",
		`external_ids:"k8s.ovn.org/selector"="all pods of namespaces team=ops"`))
	nbctl(t, remote, "clear", "address_set", set, "addresses")
	check("an empty set", 0, allowed, "the database's own rows do otherwise: denied; egress: no policy selects it; "+
		"ingress: isolated by np/shop/deny, np/shop/web, and no rule allows this\n")

	// The ACL that denies is another.
	nbctl(t, remote, "set", "acl", again, "priority=1", "match=0")
	check("another ACL", 2, denied, "(ACL deny-in different)\n",
		"the database's own rows do otherwise: allowed; egress: a node's host: no policy selects it; ingress: isolated by "+
			"np/shop/deny, np/shop/web, but no row denies it\n")

	// The ACL that denies is gone.
	nbctl(t, remote, "remove", "port_group", group, "acls", again)
	check("no ACL", 2, denied, "and no rule allows this  (ACL deny-in missing)\n", "but no row denies it\n")

	nbctl(t, remote, "lsp-del", "shop_web-0")
	check("no port", 2, denied, `the database's own rows do not say: evaluating a connection: no logical switch has a `+
		`port "shop_web-0"`)
}

// A matrix is compared with a saved one: the exit code and the lines say what is otherwise.
func TestPolicyMatrixExpect(t *testing.T) {
	raw, err := os.ReadFile("testdata/policy-check.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	matrix := func(manifests string, args ...string) result {
		return ovnkube(t.Context(), strings.NewReader(manifests), append([]string{"policy", "matrix", "-f", "-"},
			args...)...)
	}
	saved := filepath.Join(t.TempDir(), "matrix.json")
	if err := os.WriteFile(saved, []byte(matrix(string(raw), "-o", "json").stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		manifests string
		args      []string
		want      result
	}{
		"the same":         {string(raw), nil, result{}},
		"the same as JSON": {string(raw), []string{"-o", "json"}, result{stdout: "[]\n"}},
		"another port": {strings.Replace(string(raw), "endPort: 9100", "endPort: 9101", 1), nil, result{exit: 2,
			stdout: "  FROM  TO            PORTS\n" +
				"- desk  shop app=web  tcp/8080,9000-9100 udp\n+ desk  shop app=web  tcp/8080,9000-9101 udp\n"}},
		"a new class": {string(raw) + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: new, labels: {team: ops}}}\n" +
			"---\n{apiVersion: v1, kind: Pod, metadata: {namespace: new, name: p}, spec: {nodeName: n1}}\n", []string{"-n",
			"new", "-o", "json"}, result{exit: 2}},
	} {
		got := matrix(c.manifests, append(c.args, "--expect", saved)...)
		if got.exit != c.want.exit || got.stderr != "" || c.want.stdout != got.stdout && what != "a new class" {
			t.Errorf("%s:\n%s\nwant\n%s", what, got, c.want)
		}
		if what == "a new class" && !strings.Contains(got.stdout, `"from": "new",`) {
			t.Errorf("%s:\n%s", what, got)
		}
	}
}

// A difference names the connections that are gained and lost, what becomes of established ones, and what is probably
// not meant.
func TestPolicyDiff(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	const file = "testdata/policy-check.in.yaml"
	api := []string{"--log-level=error", "--k8s-apiserver", listsOf(t, file).serve(t)}
	policy := func(name, spec string) string {
		return "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {namespace: shop, name: " + name +
			"}\nspec: " + spec + "\n"
	}
	cluster := func(name, subject, rules string) string {
		return "apiVersion: policy.networking.k8s.io/v1alpha2\nkind: ClusterNetworkPolicy\nmetadata: {name: " + name +
			"}\nspec: {tier: Admin, priority: 1, subject: {namespaces: {matchLabels: {" + subject + "}}}, " + rules + "}\n"
	}
	const web = "podSelector: {matchLabels: {app: web}}, "
	const cut = "Established connections that are lost are cut at the client's next packet.\nA UDP server that keeps " +
		"sending to a client that never answers goes on.\n"
	const kubeDNS = "apiVersion: v1\nkind: Service\nmetadata: {namespace: kube-system, name: kube-dns}\n" +
		"spec: {clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ports: [{port: 53, protocol: UDP}]}\n---\n" +
		"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {namespace: kube-system, name: dns, labels: " +
		"{kubernetes.io/service-name: kube-dns}}\naddressType: IPv4\nports: [{port: 53, protocol: UDP}]\n" +
		"endpoints: [{addresses: [10.128.0.3]}]\n---\n" // shop/web-0
	for what, c := range map[string]struct {
		policy string
		args   []string
		exit   int
		stdout string
	}{
		"lost": {policy("db", "{podSelector: {matchLabels: {app: db}}}"), api, 2,
			"- shop app=web  shop app=db  tcp/53,15432 udp/53\n\nEstablished connections that are lost are cut at the " +
				"client's next packet.\nA UDP server that keeps sending to a client that never answers goes on.\n"},
		"gained": {policy("more", "{"+web+"ingress: [{from: [{podSelector: {matchLabels: {app: db}}}], "+
			"ports: [{port: 80}]}]}"),
			api, 0, "No connection is gained or lost.\n"}, // db may not connect to it
		"outside": {policy("more", "{"+web+"ingress: [{ports: [{port: 80}]}]}"), api, 2,
			"+ desk     shop app=web  tcp/80\n+ outside  shop app=web  tcp/80\n"},
		"-n": {policy("more", "{"+web+"ingress: [{ports: [{port: 80}]}]}"), append(api, "-n", "desk"), 2,
			"+ desk  shop app=web  tcp/80\n"},
		"nobody": {policy("more", "{podSelector: {matchLabels: {app: wbe}}, ingress: [{}]}"), api, 0,
			"No connection is gained or lost.\n\nWarnings\n  np/shop/more spec.podSelector: selects no pod: pods app=wbe of " +
				"namespace shop\n"},
		"hidden, and names": {policy("more", "{"+web+"egress: [{ports: [{port: 53}]}, {to: [{podSelector: {}}], ports: "+
			"[{port: pg}]}]}"), api, 0, "No connection is gained or lost.\n\nWarnings\n  np/shop/more spec.egress[1].ports: " +
			"no pod that the rule names has a container port pg/TCP\n  np/shop/more spec.egress[0]: np/shop/web spec." +
			"egress[1] allows all of it\n"},
		"no DNS": {policy("web", "{"+web+"egress: [{to: [{ipBlock: {cidr: 192.0.2.0/24}}], ports: [{port: 53}]}]}"),
			append(api, "-n", "nosuch"), 0, "No connection is gained or lost.\n\nWarnings\n  np/shop/web spec.egress: no rule " +
				"allows DNS (53/UDP) to pods such as shop/web-0, which can't resolve names\n"},
		"cluster policy": {cluster("guard", "team: ops", "egress: [{action: Pass, to: [{namespaces: {}}]}, {action: Deny, "+
			"to: [{networks: [169.254.169.254/32]}]}]"), api, 2, "- desk  outside (as 169.254.169.254)  all\n\n" + cut},
		"cluster policy, nobody": {cluster("guard", "team: nosuch", "egress: [{action: Deny, to: [{namespaces: {}}]}]"), api,
			0, "No connection is gained or lost.\n\nWarnings\n  cnp/guard spec.subject: selects no pod: all pods of " +
				"namespaces team=nosuch\n"},
		"cluster policy, no DNS": {kubeDNS + cluster("guard", "team: ops", "egress: [{action: Accept, to: [{namespaces: "+
			"{matchLabels: {team: nosuch}}}]}, {action: Deny, to: [{namespaces: {}}]}]"), append(api, "-n", "nosuch"), 0,
			"No connection is gained or lost.\n\nWarnings\n  cnp/guard spec.egress[0]: selects no pod: all pods of namespaces " +
				"team=nosuch\n  cnp/guard spec.egress: no rule allows DNS (53/UDP) to pods such as desk/probe, which can't " +
				"resolve names\n"},
		"cluster policy, DNS": {kubeDNS + cluster("guard", "team: ops", "egress: [{action: Accept, to: [{namespaces: {}}], "+
			"protocols: [{udp: {destinationPort: {number: 53}}}]}, {action: Deny, to: [{namespaces: {}}]}]"),
			append(api, "-n", "nosuch"), 0, "No connection is gained or lost.\n"},
		"cluster policy, hidden": {cluster("guard", "team: ops", "ingress: [{action: Pass, from: [{namespaces: {}}]}, "+
			"{action: Deny, from: [{namespaces: {matchLabels: {team: ops}}}]}]"), append(api, "-n", "nosuch"), 0,
			"No connection is gained or lost.\n\nWarnings\n  cnp/guard spec.ingress[1]: " +
				"cnp/guard spec.ingress[0] decides about all of it before\n"},
		"cluster policy, hides": {strings.Replace(cluster("guard", "", "ingress: [{action: Deny, from: [{namespaces: {}}]}]"),
			"{matchLabels: {}}", "{}", 1) + "---\n" + policy("more", "{"+web+"ingress: [{from: [{podSelector: {}}], ports: "+
			"[{port: 80}]}, {from: [{ipBlock: {cidr: 192.0.2.0/24}}]}]}"), append(api, "-n", "nosuch"), 0, "No connection " +
			"is gained or lost.\n\nWarnings\n  np/shop/more spec.ingress[0]: cnp/guard spec.ingress[0] decides about all " +
			"of it before\n"},
		"two directories": {policy("db", "{podSelector: {}}"), []string{"--from", file}, 0, "No connection is gained " +
			"or lost.\n\nWarnings\n  np/shop/db spec.podSelector: selects no pod: all pods of namespace shop\n"},
	} {
		got := ovnkube(t.Context(), strings.NewReader(c.policy), append([]string{"policy", "diff", "-f", "-"}, c.args...)...)
		lines := got.stdout
		if c.exit == 2 { // the heading is as wide as what is below it
			heading, rest, _ := strings.Cut(lines, "\n")
			if lines = rest; strings.Join(strings.Fields(heading), " ") != "FROM TO PORTS" {
				t.Errorf("%s: the first line is %q, want a heading", what, heading)
			}
		}
		if got.exit != c.exit || lines != c.stdout {
			t.Errorf("%s:\n%s\nwant exit code %d and\n%s", what, got, c.exit, c.stdout)
		}
	}
}

// A policy that is to be deleted gains what it denied. What is applied at the same time counts, too.
func TestPolicyDiffDelete(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	const file = "testdata/policy-check.in.yaml"
	api := []string{"policy", "diff", "--log-level=error", "--k8s-apiserver", listsOf(t, file).serve(t), "-n", "desk"}
	for what, c := range map[string]struct {
		args []string
		exit int
		want string
	}{
		"one of two": {[]string{"--delete", "np/shop/web"}, 2, "- desk          shop app=web  tcp/8080,9000-9100 udp\n"},
		"both": {[]string{"--delete", "networkpolicy/shop/web", "--delete", "np/shop/deny"}, 2,
			"+ desk          shop app=web  tcp/1-8079,"},
		"not there": {[]string{"--delete", "np/shop/nosuch"}, 1, "--delete: there is no NetworkPolicy shop/nosuch"},
		"no name":   {[]string{"--delete", "np/web"}, 1, `--delete "np/web": want np/NAMESPACE/NAME or cnp/NAME`},
		"a pod":     {[]string{"--delete", "pod/shop/web"}, 1, `--delete "pod/shop/web": want np/NAMESPACE/NAME`},
		"a directory": {[]string{"--delete", "np/shop/web", "--from", file}, 1,
			"--delete is about the cluster: beside --from"},
	} {
		got := ovnkube(t.Context(), nil, append(api, c.args...)...)
		if got.exit != c.exit || !strings.Contains(got.stdout+got.stderr, c.want) {
			t.Errorf("%s:\n%s\nwant exit code %d and %q", what, got, c.exit, c.want)
		}
	}
}

// A node port is the host's port to the answer, which says whose pods would have to be asked about, too.
func TestPolicyCheckNodePort(t *testing.T) {
	const file = "testdata/policy-check.in.yaml"
	got := ovnkube(t.Context(), nil, "policy", "check", "-f", file, "desk/probe", "node/n2:30081")
	if !strings.Contains(got.stdout, "30081 is a node port of svc/shop/kept: whether its pods") {
		t.Errorf("%s", got)
	}
}

// Of a policy that is given twice with different contents, nobody knows which one holds: there is no answer.
func TestPolicyGivenTwice(t *testing.T) {
	const file = "testdata/policy-check.in.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(other, bytes.ReplaceAll(text, []byte("Ingress"), []byte("Egress")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "desk/probe", "shop/web-0:http"}, {"matrix"}, {"diff", "--from", file}} {
		got := ovnkube(t.Context(), nil, append(append([]string{"policy"}, args...), "-f", file, "-f", other)...)
		if got.exit != 1 || got.stdout != "" || !strings.Contains(got.stderr, "is given twice with different contents") {
			t.Errorf("%v:\n%s\nwant exit 1, no answer, and the reason", args, got)
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	for what, c := range map[string]struct {
		args []string
		want string
	}{
		"no command":      {nil, "policy: the command is missing: want one of check, matrix, diff"},
		"unknown command": {[]string{"cheek"}, `policy: no command "cheek": did you mean check?`},
		"one side":        {[]string{"check", "a/b"}, "policy check: 1 arguments: want SRC and DST"},
		"three sides":     {[]string{"check", "a/b", "c/d", "-o", "json", "e/f"}, "policy check: 3 arguments: want SRC"},
		"no namespace":    {[]string{"check", "a", "b/c"}, `policy check: "a": want NAMESPACE/POD, pod/NAMESPACE/NAME`},
		"a service's":     {[]string{"check", "a/b", "svc/web"}, `policy check: "svc/web": want NAMESPACE/POD`},
		"port 0":          {[]string{"check", "a/b", "c/d:0"}, `policy check: port ":0": want :PORT`},
		"no port":         {[]string{"check", "a/b", "c/d:"}, `policy check: port ":": want :PORT`},
		"a large port":    {[]string{"check", "a/b", "c/d:70000"}, `policy check: port ":70000": want :PORT`},
		"a port of ICMP":  {[]string{"check", "a/b", "c/d:8/icmp"}, `policy check: port ":8/icmp": want :PORT`},
		"behind brackets": {[]string{"check", "a/b", "[fd01::1]80"}, `policy check: port "80": want :PORT`},
		"unknown format":  {[]string{"check", "a/b", "c/d", "-o", "xml"}, `--output "xml": want table, json or yaml`},
		"two clusters": {[]string{"check", "a/b", "c/d", "-f", planInput, "--kubeconfig", "k"},
			"--kubeconfig k: with -f, manifests are asked about instead of a cluster"},
		"a server, too": {[]string{"matrix", "-f", planInput, "--k8s-apiserver", "http://127.0.0.1:1"},
			"--k8s-apiserver http://127.0.0.1:1: with -f"},
		"no cluster": {[]string{"check", "a/b", "c/d"}, "no API server given"},
		"no such node": {[]string{"check", "-f", planInput, "node/nosuch", "default/web-0"},
			"asking the manifests: there is no Node nosuch"},
		"no such service": {[]string{"check", "-f", planInput, "node/n1", "svc/a/b"},
			"asking the manifests: there is no Service a/b"},
		"an argument": {[]string{"matrix", "x"}, `matrix: unexpected argument "x": files are given with -f`},
		"no such format": {[]string{"matrix", "-o", "xml"},
			`--output "xml": want table, json or yaml, or dot without --expect`},
		"no such file": {[]string{"check", "-f", planInput, "-f", "nosuch.yaml", "node/n1", "default/web-0"},
			"reading manifests: stat nosuch.yaml"},
		"nothing to compare": {[]string{"diff", "--from", planInput, "-f", "nosuch.yaml"},
			"reading manifests: stat nosuch.yaml"},
		"nothing to compare with": {[]string{"diff", "--from", "nosuch.yaml", "-f", planInput},
			"reading manifests: stat nosuch.yaml"},
		"nothing expected": {[]string{"matrix", "--expect", "nosuch"}, "reading --expect: open nosuch"},
		"no matrix":        {[]string{"matrix", "--expect", planInput}, "reading --expect " + planInput + ": reading"},
	} {
		got := ovnkube(t.Context(), nil, append([]string{"policy"}, c.args...)...)
		if got.exit != 1 || got.stdout != "" || !strings.Contains(got.stderr, "ovnkube: "+c.want) {
			t.Errorf("%s:\n%s\nwant exit 1 and %s", what, got, c.want)
		}
	}
}
