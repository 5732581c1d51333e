package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What can't be meant is one clear line that names the flag, and exit code 1;
// nothing is begun.
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
		{[]string{"master", "--nosuch"}, "flag provided but not defined: -nosuch"},
		{[]string{"master", "--cluster-subnets"}, "flag needs an argument: -cluster-subnets"},
		{[]string{"master", "stray", "--kubeconfig", "x"}, `master: unexpected argument "stray": everything is given by flags`},
		{[]string{"version", "stray"}, `version: unexpected argument "stray"`},
		{[]string{"master"}, "no API server given: want --kubeconfig or --k8s-apiserver"},
		{[]string{"master", "--kubeconfig", "/nonexistent"}, "loading --kubeconfig /nonexistent: stat /nonexistent: no such file or directory"},
		{[]string{"master", "--kubeconfig", garbage}, "loading --kubeconfig " + garbage + ": "},
		{with("--kubeconfig", garbage), "--kubeconfig and --k8s-apiserver: give one of them"},
		{with("--k8s-cacert", "/nonexistent"), "loading --k8s-cacert: stat /nonexistent: no such file or directory"},
		{[]string{"master", "--k8s-apiserver", "https://127.0.0.1:1", "--k8s-cacert", garbage}, "preparing the client of the API server https://127.0.0.1:1: unable to load root certificates"},
		{with("--cluster-subnets", "x"), `--cluster-subnets: parsing cluster subnet "x": want CIDR or CIDR/NODE-LENGTH such as 10.128.0.0/14/23`},
		{with("--cluster-subnets", "10.0.0.0/16/24", "--k8s-service-cidrs", "10.0.3.0/24"), "--cluster-subnets 10.0.0.0/16 overlaps --k8s-service-cidrs 10.0.3.0/24: they must be disjoint"},
		{with("--join-subnet", "100.64.1.0/33"), `parsing --join-subnet "100.64.1.0/33": want a CIDR such as`},
		{with("--k8s-service-cidrs", "10.96.0.1/16"), `parsing --k8s-service-cidrs "10.96.0.1/16": host bits are set, want 10.96.0.0/16`},
		{with("--nb-address", "foo"), `--nb-address "foo": want unix:/PATH, tcp:HOST:PORT or ssl:HOST:PORT`},
		{with("--nb-address", "ssl:127.0.0.1:6641", "--nb-privkey", garbage, "--nb-cert", garbage), "--nb-cacert: an ssl: address needs it"},
		{with("--nb-address", "ssl:127.0.0.1:6641", "--nb-privkey", garbage, "--nb-cert", garbage, "--nb-cacert", garbage), "loading --nb-cert " + garbage + " and --nb-privkey " + garbage},
		{with("--log-level", "loud"), `--log-level "loud": want debug, info, warn or error`},
		{with("--log-format", "xml"), `--log-format "xml": want text or json`},
		{with("--leader-elect-lease", "x"), `invalid value "x" for flag -leader-elect-lease`},
		{with("--metrics-bind-address", "nowhere"), "listening on --metrics-bind-address nowhere: "},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Setenv("KUBECONFIG", "")
			app := newApp()
			var log, stderr bytes.Buffer
			app.Writer, app.ErrWriter = io.Discard, &log
			code := report(&stderr, app.RunContext(t.Context(), append([]string{"ovnkube"}, c.args...)))
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			if len(lines) == 2 && strings.HasPrefix(lines[1], "Run 'ovnkube") {
				lines = lines[:1]
			}
			if code != 1 || len(lines) != 1 || !strings.Contains(lines[0], c.want) || !strings.HasPrefix(lines[0], "ovnkube: ") {
				t.Errorf("exit code %d and %q, want 1 and one line with %q", code, stderr.String(), c.want)
			}
			if log.Len() != 0 {
				t.Errorf("something was begun: %s", log.String())
			}
		})
	}
}
