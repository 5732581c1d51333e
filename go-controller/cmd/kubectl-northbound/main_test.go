package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
	"github.com/northbound-net/northbound/go-controller/internal/kube/remote"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// run runs the program as `kubectl northbound ARGS`.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	app := newApp()
	var out, errs bytes.Buffer
	app.Writer, app.ErrWriter = &out, &errs
	code = report(&errs, app.RunContext(t.Context(), append([]string{"kubectl-northbound"}, args...)))
	return out.String(), errs.String(), code
}

// Every command explains itself without a cluster, and names each tool's rights.
func TestHelp(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	overview, _, code := run(t)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, x := range diagnostics.Tools() {
		if !strings.Contains(overview, x.Usage) {
			t.Errorf("the overview lacks %s", x.Name)
		}
		for _, flag := range []string{"-h", "--help"} {
			if help, _, code := run(t, x.Name, flag); code != 0 || !strings.Contains(help, x.Account) ||
				!strings.Contains(help, argumentsOf(x)) {
				t.Errorf("%s %s: exit code %d\n%s", x.Name, flag, code, help)
			}
		}
	}
}

// What is wrong with a command line is said in one line, without asking a cluster.
func TestBadCommandLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	config := `{"apiVersion":"v1","kind":"Config","current-context":"x",` +
		`"contexts":[{"name":"x","context":{"cluster":"x"}}],` +
		`"clusters":[{"name":"x","cluster":{"server":"http://127.0.0.1:1"}}]}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	for want, args := range map[string][]string{
		`no command "docter": did you mean doctor?`:         {"docter"},
		"vsctl: the node is missing: want NODE COMMAND":     {"vsctl"},
		"tcpdump: the pod is missing: want [NAMESPACE/]POD": {"tcpdump", "-n"},
		"trace: want [NAMESPACE/]POD DESTINATION":           {"trace", "web"},
		`--output "xml": want table, json or yaml`:          {"status", "-o", "xml"},
		`status: unexpected argument "n1"`:                  {"status", "n1"},
		`context "nowhere" does not exist`:                  {"--context", "nowhere", "nbctl", "show"},
		"connection refused":                                {"nbctl", "show"},
	} {
		if _, stderr, code := run(t, args...); code != 1 || !strings.Contains(stderr, "kubectl northbound: ") ||
			!strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d\n%swant %s", args, code, stderr, want)
		}
	}
}

// The namespace of the context is added where kubectl would use it.
func TestExplainArgs(t *testing.T) {
	for given, want := range map[string]string{
		"svc/web":               "svc/web -n shop",
		"svc web":               "svc web -n shop",
		"pod/a -o json":         "pod/a -o json -n shop",
		"svc/other/web":         "svc/other/web",
		"svc other/web":         "svc other/web",
		"svc/web -n x":          "svc/web -n x",
		"svc/web --namespace=x": "svc/web --namespace=x",
		"node/n1":               "node/n1",
		"namespace/x":           "namespace/x",
		"svc":                   "svc",
		"":                      "",
	} {
		if got := strings.Join(explainArgs(strings.Fields(given), "shop"), " "); got != want {
			t.Errorf("explainArgs(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestDestination(t *testing.T) {
	for given, want := range map[string]string{
		"web-1":               "web-1||",
		"shop/web-1:80":       "shop/web-1|80|tcp",
		"svc/shop/dns:53/UDP": "svc/shop/dns|53|udp",
		"10.0.0.1":            "10.0.0.1||",
		"fd00::1":             "fd00::1||",
		"[fd00::1]:443":       "fd00::1|443|tcp",
		"web:80/icmp":         "error",
	} {
		to, port, protocol, err := destination(given)
		got := to + "|" + port + "|" + protocol
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("destination(%q) = %s, %v; want %s", given, got, err, want)
		}
	}
}

// The table ends with what is wrong, and what to type.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	all := []remote.Component{{Name: "master", Node: "n1", Role: "leader", Ready: true},
		{Name: "databases", Node: "n1", Role: "nb alone", Ready: true, Bytes: map[string]int64{"sb": 12345678, "nb": 50000}},
		{Name: "node", Node: "n22", Problem: "container agent is not ready", Try: "kubectl northbound doctor n22"}}
	if err := table(&out, all); err != nil {
		t.Fatal(err)
	}
	want := `COMPONENT  NODE  READY  ROLE      SIZE
master     n1    yes    leader    -
databases  n1    yes    nb alone  nb 50 kB, sb 12.3 MB
node       n22   NO     -         -

node n22: container agent is not ready
  try: kubectl northbound doctor n22
`
	if out.String() != want {
		t.Errorf("table\n%s\nwant\n%s", &out, want)
	}
}

// The exit code is that of the tool; an error has 1.
func TestReport(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{nil, 0, ""}, {cli.Exit("", 7), 7, ""}, {errors.New("a\nb"), 1, "kubectl northbound: a\nkubectl northbound: b\n"},
		{fmt.Errorf("x: %w", remote.ErrNoServer), 1, "kubectl northbound: x: no diagnostics server\n"},
	} {
		var out bytes.Buffer
		if code := report(&out, c.err); code != c.code || out.String() != c.text {
			t.Errorf("%v: exit code %d, %q", c.err, code, &out)
		}
	}
}
