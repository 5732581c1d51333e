package machines

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/sandbox"
)

// ClusterPoliciesNoticed bounds how long the master takes to notice a kind that is installed, which is about a minute.
const ClusterPoliciesNoticed = 3 * time.Minute

// InstallClusterPolicies adds ClusterNetworkPolicies to the API server, while the master runs. The test's package is
// three folders below the product's module, whose version of the kind it takes, with domainNames.
func InstallClusterPolicies(t *testing.T, c *sandbox.Cluster) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/network-policy-api")
	list.Dir = "../../.."
	dir, err := list.Output()
	if err != nil {
		t.Fatalf("finding the definition of ClusterNetworkPolicies: %v", err)
	}
	crd, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config/crd/experimental",
		"policy.networking.k8s.io_clusternetworkpolicies.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	Kubectl(t, c, string(crd), "apply", "-f", "-")
	Within(t, ClusterPoliciesNoticed, "the API server serves the kind", func(ctx context.Context) string {
		if out, err := c.Kubectl(ctx, "get", "clusternetworkpolicies").CombinedOutput(); err != nil {
			return string(out)
		}
		return ""
	})
}
