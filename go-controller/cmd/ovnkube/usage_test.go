package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// The node's name, which all programs on a machine may share in their environment, does not rename the router.
func TestNodeNameIsNotTheRouterName(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	servers := []string{"--log-level=error", "--k8s-apiserver", aCluster().serve(t),
		"--nb-address", testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])}
	for _, args := range [][]string{
		{"translate", "-f", planInput},
		append([]string{"plan"}, servers...),
		append([]string{"master", "--dry-run"}, servers...),
		append([]string{"explain", "svc", "-f", "testdata/explain.in.yaml", "shop/web"}, servers...),
	} {
		t.Run(args[0], func(t *testing.T) {
			want := ovnkube(t.Context(), nil, args...)
			t.Setenv("NORTHBOUND_NODE_NAME", "n1")
			if got := ovnkube(t.Context(), nil, args...); got != want || want.stdout == "" {
				t.Errorf("with NORTHBOUND_NODE_NAME: %s", firstDifference(got.String(), want.String()))
			}
			if args[0] == "explain" { // it prints no router
				return
			}
			renamed := strings.ReplaceAll(want.stdout, "ovn_cluster_router", "r1")
			if renamed == want.stdout {
				t.Fatalf("no router in\n%s", want)
			}
			for _, flag := range []string{"--router-name", "--node-name"} {
				if got := ovnkube(t.Context(), nil, append(slices.Clone(args), flag, "r1")...); got.stdout != renamed {
					t.Errorf("with %s: %s", flag, firstDifference(got.stdout, renamed))
				}
			}
			t.Setenv("NORTHBOUND_ROUTER_NAME", "r1")
			if got := ovnkube(t.Context(), nil, args...); got.stdout != renamed {
				t.Errorf("with NORTHBOUND_ROUTER_NAME: %s", firstDifference(got.stdout, renamed))
			}
		})
	}
}

// An error in the command line is one clear line that names the flag, with exit code 1, before any work starts.
func TestBadCommandLines(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("garbage\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	api := []string{"master", "--k8s-apiserver", "http://127.0.0.1:1"}
	with := func(args ...string) []string { return append(append([]string{}, api...), args...) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"nosuch"}, `no command "nosuch": want one of master, node, `},
		{[]string{"--nosuch"}, "-nosuch"},
		{[]string{"master", "--nosuch"}, "no flag --nosuch"},
		{[]string{"master", "--cluster-subnets"}, "flag needs an argument: -cluster-subnets"},
		{[]string{"master", "stray", "--kubeconfig", "x"},
			`master: unexpected argument "stray": everything is given by flags`},
		{[]string{"version", "stray"}, `version: unexpected argument "stray"`},
		{[]string{"master"}, "no API server given: want --kubeconfig or --k8s-apiserver"},
		{[]string{"master", "--kubeconfig", "/nonexistent"},
			"loading --kubeconfig /nonexistent: stat /nonexistent: no such file or directory"},
		{[]string{"master", "--kubeconfig", garbage}, "loading --kubeconfig " + garbage + ": "},
		{with("--kubeconfig", garbage), "--kubeconfig and --k8s-apiserver: give one of them"},
		{with("--k8s-cacert", "/nonexistent"), "loading --k8s-cacert: stat /nonexistent: no such file or directory"},
		{[]string{"master", "--k8s-apiserver", "https://127.0.0.1:1", "--k8s-cacert", garbage},
			"preparing the client of the API server https://127.0.0.1:1: unable to load root certificates"},
		{with("--cluster-subnets", "x"), `--cluster-subnets: parsing cluster subnet "x": want CIDR or CIDR/NODE-LENGTH ` +
			`such as 10.128.0.0/14/23`},
		{with("--cluster-subnets", "10.0.0.0/16/24", "--k8s-service-cidrs", "10.0.3.0/24"),
			"--cluster-subnets 10.0.0.0/16 overlaps --k8s-service-cidrs 10.0.3.0/24: they must be disjoint"},
		{with("--join-subnet", "100.64.1.0/33"), `parsing --join-subnet "100.64.1.0/33": want a CIDR such as`},
		{with("--k8s-service-cidrs", "10.96.0.1/16"),
			`parsing --k8s-service-cidrs "10.96.0.1/16": host bits are set, want 10.96.0.0/16`},
		{with("--nb-address", "foo"), `--nb-address "foo": want unix:/PATH, tcp:HOST:PORT or ssl:HOST:PORT`},
		{with("--nb-address", "ssl:127.0.0.1:6641", "--nb-privkey", garbage, "--nb-cert", garbage),
			"--nb-cacert: an ssl: address needs it"},
		{with("--nb-address", "ssl:127.0.0.1:6641", "--nb-privkey", garbage, "--nb-cert", garbage, "--nb-cacert", garbage),
			"reading --nb-privkey, --nb-cert and --nb-cacert: loading certificate " + garbage + " and "},
		{with("--nb-address", "unix:/x,tcp:127.0.0.1:6641"), "--nb-address tcp:127.0.0.1:6641: whoever reaches that port " +
			"may change the network: want ssl:HOST:PORT or unix:/PATH; a daemon takes tcp: with --insecure-databases"},
		{[]string{"watcher", "--overlay", "--k8s-apiserver", "http://127.0.0.1:1", "--ovs-address", "unix:/nonexistent",
			"--nb-address", "tcp:127.0.0.1:6641"}, "--nb-address tcp:127.0.0.1:6641: whoever reaches that port"},
		{[]string{"node", "--node-name", "n1", "--k8s-apiserver", "http://127.0.0.1:1", "--ovs-address", "unix:/nonexistent",
			"--sb-address", "tcp:127.0.0.1:6642"}, "--sb-address tcp:127.0.0.1:6642: whoever reaches that port"},
		{[]string{"node", "--node-name", "n1", "--k8s-apiserver", "http://127.0.0.1:1", "--ovs-address", "unix:/nonexistent",
			"--sb-address", "ssl:127.0.0.1:6642", "--sb-cert", garbage, "--sb-privkey", garbage},
			"--sb-cacert: an ssl: address needs it"},
		{with("--log-level", "loud"), `--log-level "loud": want debug, info, warn or error`},
		{with("--log-format", "xml"), `--log-format "xml": want text or json`},
		{with("--leader-elect-lease", "x"), `invalid value "x" for flag -leader-elect-lease`},
		{with("--leader-elect-lease", "0s"), "--leader-elect-lease 0s: want a duration such as 15s"},
		{[]string{"plan", "--timeout", "-1s"}, "--timeout -1s: want a duration such as 30s"},
		{with("--metrics-bind-address", "nowhere"), "listening on --metrics-bind-address nowhere: "},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Setenv("KUBECONFIG", "")
			wantUsageError(t, c.args, c.want)
		})
	}
}

func wantUsageError(t *testing.T, args []string, want string) {
	t.Helper()
	app := newApp()
	var log, stderr bytes.Buffer
	app.Writer, app.ErrWriter = io.Discard, &log
	code := report(&stderr, app.RunContext(t.Context(), append([]string{"ovnkube"}, args...)))
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if len(lines) == 2 && strings.HasPrefix(lines[1], "Run 'ovnkube") {
		lines = lines[:1]
	}
	if code != 1 || len(lines) != 1 || !strings.Contains(lines[0], want) || !strings.HasPrefix(lines[0], "ovnkube: ") {
		t.Errorf("exit code %d and %q, want 1 and one line with %q", code, stderr.String(), want)
	}
	if log.Len() != 0 {
		t.Errorf("work was started: %s", log.String())
	}
}
