package chart

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/sandbox"
)

// helm lint has no error and no warning for the chart, with its defaults and with the values that add objects.
func TestLint(t *testing.T) {
	for _, values := range []string{
		"",
		"database.nodes={a,b,c},backup.enabled=true," +
			"monitoring.enabled=true,monitoring.operator=true,monitoring.dashboard=true",
		"openvswitch.inPods=false,node.datapathType=netdev,network.multitenant=true",
		"cleanup.enabled=true",
	} {
		// With --quiet, helm prints nothing but warnings and errors. --strict makes an error of each warning.
		out, err := exec.CommandContext(t.Context(), "../../../bin/helm", "lint", source, "--strict", "--quiet",
			"--namespace", sandbox.Namespace, "--set", values).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "" {
			t.Errorf("helm lint with the values %q: %v\n%s", values, err, out)
		}
	}
}
