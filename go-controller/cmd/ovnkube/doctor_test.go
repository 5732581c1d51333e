package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// The doctor examines even a host where nothing is installed. The exit code reports problems, and both output formats
// have the same findings.
func TestDoctorOnABareHost(t *testing.T) {
	args := []string{"doctor", "--node-name", "n1", "--ovs-address", "unix:/nonexistent/db.sock", "--ovn-rundir",
		"/nonexistent", "--cni-conf-dir", "/nonexistent",
		"--cni-bin-dir", "/nonexistent", "--cni-socket-dir", "/nonexistent", "--metrics-bind-address", "127.0.0.1:1",
		"--timeout", "1s", "--config-file", "/dev/null"}
	text := ovnkube(t.Context(), nil, args...)
	if text.exit != exitProblems || text.stderr != "" {
		t.Fatalf("exit code %d, %q", text.exit, text.stderr)
	}
	js := ovnkube(t.Context(), nil, append(slices.Clone(args), "-o", "json")...)
	var report struct {
		Node     string
		Problems int
		Findings []struct {
			Check, Status, Message string
			Fix                    []string
		}
	}
	if err := json.Unmarshal([]byte(js.stdout), &report); err != nil || js.exit != exitProblems {
		t.Fatalf("exit code %d, %v: %s", js.exit, err, js.stdout)
	}
	if report.Node != "n1" || report.Problems < 4 || strings.Count(text.stdout,
		"\nproblem ")+strings.Count(text.stdout[:8], "problem ") != report.Problems {
		t.Errorf("node %q, %d problems, in text:\n%s", report.Node, report.Problems, text.stdout)
	}
	for _, f := range report.Findings {
		if f.Check == "" || f.Message == "" || (f.Status == "problem") != (len(f.Fix) > 0) ||
			!slices.Contains([]string{"ok", "problem", "not checked"}, f.Status) {
			t.Errorf("finding %+v", f)
		}
	}
}

func TestDoctorBadFlags(t *testing.T) {
	for want, args := range map[string][]string{
		`--output "xml": want text, json or yaml`:  {"-o", "xml"},
		"--timeout 0s: want a duration such as 5s": {"--timeout", "0s"},
		`--encap-type "stt": want geneve or vxlan`: {"--encap-type", "stt"},
		`--ovs-address "x": want unix:PATH`:        {"--ovs-address", "x"},
		`doctor: unexpected argument "n1"`:         {"n1"},
	} {
		got := ovnkube(t.Context(), nil, append([]string{"doctor", "--config-file", "/dev/null"}, args...)...)
		if got.exit != 1 || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%v: exit code %d, %q, want 1 and %q", args, got.exit, got.stderr, want)
		}
	}
}
