package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/preflight"
)

// A machine with a configuration of another network plugin is not ready. Text and JSON say so, and the exit code.
func TestPreflight(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/10-flannel.conflist", []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"preflight", "--config-file", "/dev/null", "--cni-conf-dir", dir, "--role", "all"}
	text := ovnkube(t.Context(), nil, args...)
	want := dir + "/10-flannel.conflist comes before "
	if text.exit != exitProblems || text.stderr != "" || !strings.Contains(text.stdout, want) {
		t.Errorf("want exit code %d and %q:\n%s", exitProblems, want, text)
	}
	js := ovnkube(t.Context(), nil, append(args, "-o", "json")...)
	var report struct {
		Problems int
		Findings []struct{ Check, Status, Message string }
	}
	if err := json.Unmarshal([]byte(js.stdout), &report); err != nil || js.exit != exitProblems {
		t.Fatalf("exit code %d, %v: %s", js.exit, err, js.stdout)
	}
	if report.Problems == 0 || len(report.Findings) != len(preflight.Checks()) {
		t.Errorf("%d problems, %d findings; want %d findings", report.Problems, len(report.Findings), len(preflight.Checks()))
	}
	for want, args := range map[string][]string{
		`--role "worker": want node, central or all`: {"--role", "worker"},
		`--encap-type "stt": want geneve or vxlan`:   {"--encap-type", "stt"},
		`--output "xml": want text, json or yaml`:    {"-o", "xml"},
	} {
		got := ovnkube(t.Context(), nil, append([]string{"preflight", "--config-file", "/dev/null"}, args...)...)
		if got.exit != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("%v: exit code %d, %q, want 1 and %q", args, got.exit, got.stderr, want)
		}
	}
}
