package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/bundle"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// captured writes a bundle of planInput: its objects with settings, and a database.
func captured(t *testing.T, settings map[string]string, database string) (file string) {
	t.Helper()
	text, err := os.ReadFile(planInput)
	if err != nil {
		t.Fatal(err)
	}
	items := []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": settings,
		"metadata": map[string]string{"name": "northbound-settings", "namespace": "kube-system"}}}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if list, ok := o["items"].([]any); ok {
			items = append(items, list...)
		} else {
			items = append(items, o)
		}
	}
	objects, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	w := bundle.NewWriter(&raw, time.Unix(1, 0))
	for name, content := range map[string]string{bundle.Objects: string(objects), bundle.Northbound: database} {
		if content == "" {
			continue
		}
		if err := w.Add(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "b.tgz")
	if err := os.WriteFile(file, raw.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A bundle is translated with the settings of the cluster that it is of. A flag counts more than they do.
func TestTranslateBundle(t *testing.T) {
	want := ovnkube(t.Context(), nil, "translate", "-f", planInput, "--join-subnet=100.70.0.0/16")
	file := captured(t, map[string]string{"join-subnet": "100.70.0.0/16"}, "")
	if got := ovnkube(t.Context(), nil, "translate", "-f", file); got != want || got.exit != 0 {
		t.Errorf("translate -f BUNDLE: %s", firstDifference(got.String(), want.String()))
	}
	plain := ovnkube(t.Context(), nil, "translate", "-f", planInput)
	if got := ovnkube(t.Context(), nil, "translate", "-f", file, "--join-subnet=100.64.1.0/24"); got != plain ||
		got == want {
		t.Errorf("translate -f BUNDLE --join-subnet: %s", firstDifference(got.String(), plain.String()))
	}
	if got := ovnkube(t.Context(), nil, "translate", "-f", captured(t, map[string]string{"join-subnet": "x"},
		"")); got.exit != 1 ||
		!strings.Contains(got.stderr, `--join-subnet "x"`) {
		t.Errorf("bad settings: %s", got)
	}
	broken := filepath.Join(t.TempDir(), "broken.tgz")
	if err := os.WriteFile(broken, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ovnkube(t.Context(), nil, "translate", "-f", broken); got.exit != 1 || !strings.Contains(got.stderr,
		broken) {
		t.Errorf("a broken bundle: %s", got)
	}
}

// The captured database is compared with what the captured objects want.
func TestPlanBundle(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	server := translated(t, testkit.NBSchemas()["25.03"])
	backup := func() string { return testkit.Run(t, "ovsdb-client", "backup", server, "OVN_Northbound") }
	args := []string{"plan", "--log-level=error", "-f"}
	if got := ovnkube(t.Context(), nil, append(args, captured(t, nil, backup()))...); got.exit != 0 ||
		!strings.HasPrefix(got.stdout, "Nothing to do") {
		t.Errorf("plan of what is there: %s", got)
	}
	nbctl(t, server, "lsp-del", "default_web-0")
	file := captured(t, nil, backup())
	if got := ovnkube(t.Context(), nil, append(args, file)...); got.exit != 2 ||
		!strings.Contains(got.stdout, "+ Logical_Switch_Port default_web-0") {
		t.Errorf("plan after a port was deleted: %s", got)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "ovnkube-bundle-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for want, database := range map[string]string{"it is not in the bundle": "", "ovsdb-server ended": "no database"} {
		if got := ovnkube(t.Context(), nil, append(args, captured(t, nil, database))...); got.exit != 1 ||
			!strings.Contains(got.stderr, want) {
			t.Errorf("database %q: %s\nwant %s", database, got, want)
		}
	}
	// A server that is given is asked instead.
	if got := ovnkube(t.Context(), nil, append(args, file, "--nb-address", server)...); got.exit != 2 {
		t.Errorf("plan beside a server: %s", got)
	}
}
