package chart

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/northbound-net/northbound/test/sandbox"
)

// The chart with its default values, and the file that shows it.
const (
	source   = "../../../dist/helm/northbound"
	manifest = "../../../dist/kubernetes/northbound.yaml"
)

var update = flag.Bool("update", false, "write dist/kubernetes/northbound.yaml anew")

// TestManifest renders the chart and compares. `go test -C test ./e2e/chart -run TestManifest -update` writes the file.
func TestManifest(t *testing.T) {
	got, err := exec.Command("../../../bin/helm", "template", sandbox.ReleaseName, source, "--namespace",
		sandbox.Namespace).Output()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(manifest, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what `helm template` makes of %s: run this test with -update", manifest, source)
	}
}
