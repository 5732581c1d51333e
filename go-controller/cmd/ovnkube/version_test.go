package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// After the build's own lines come the programs of Open vSwitch and OVN that PATH has.
func TestVersion(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	text, object := ovnkube(t.Context(), nil, "version"), ovnkube(t.Context(), nil, "version", "-o", "json")
	if text.exit != 0 || !strings.HasPrefix(text.stdout, "version      ") || strings.Count(text.stdout, "\n") != 5 ||
		strings.Contains(object.stdout, `"ov`) {
		t.Fatalf("without the programs:\n%s%s", text, object)
	}
	for name, script := range map[string]string{
		"ovn-controller": "echo ovn-controller 25.03.0; echo Open vSwitch Library 3.5.0",
		"ovn-northd":     "exit 1",
		"ovs-vsctl":      `[ "$*" = --version ] && echo "ovs-vsctl (Open vSwitch) 3.5.1"`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for format, want := range map[string]string{
		"text": text.stdout + "ovn-controller  25.03.0\novn-northd      unknown\novs-vsctl       3.5.1\n",
		"json": strings.TrimSuffix(object.stdout, "\n}\n") + `,
  "ovnController": "25.03.0",
  "ovnNorthd": "unknown",
  "ovsVsctl": "3.5.1"
}
`,
		"yaml": `ovnController: 25.03.0
ovnNorthd: unknown
ovsVsctl: 3.5.1
`,
	} {
		if out := ovnkube(t.Context(), nil, "version", "-o", format); out.exit != 0 ||
			format != "yaml" && out.stdout != want || !strings.Contains(out.stdout, want) {
			t.Errorf("version -o %s:\n%swant\n%s", format, out, want)
		}
	}
}
