package e2e

import (
	"context"
	"os"
	"strings"
	"testing"

	testbed "github.com/northbound-net/northbound/test/sandbox"
)

// TestLoadBalancersApart runs the commands by which users check whether ovn-northd keeps the load balancers of several
// switches apart. The sandbox's ovn-northd must.
func TestLoadBalancersApart(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/service-clients.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "These commands show whether yours does")
	_, after, _ = strings.Cut(after, "```\n")
	commands, _, ok := strings.Cut(after, "```\n")
	if !ok {
		t.Fatal("docs/reference/service-clients.md has no such commands")
	}
	c, err := testbed.Open(testbed.DefaultStateRoot, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended.
		out, err := sandbox(context.Background(), "nbctl", "--if-exists", "lb-del", "a", "--", "--if-exists", "lb-del", "b",
			"--", "--if-exists", "ls-del", "x1", "--", "--if-exists", "ls-del", "x2", "--", "--if-exists", "ls-del", "x3", "--",
			"--if-exists", "ls-del", "x4")
		if err != nil {
			t.Errorf("deleting the test's rows: %v\n%s", err, out)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	out, err := atDatabases(ctx, c, commands)
	if err != nil {
		t.Fatal(err)
	}
	const a, b = "backends=10.128.0.9:80\n", "backends=10.128.1.9:80\n"
	if out != a+a+b+b {
		t.Errorf("backends at x1, x2, x3 and x4:\n%swant\n%s", out, a+a+b+b)
	}
}

// atDatabases returns what shell commands print where ovn-nbctl and ovn-sbctl need no flags.
func atDatabases(ctx context.Context, c *testbed.Cluster, commands string) (string, error) {
	if !c.RunsChart() {
		return c.Control.Run(ctx, "sh", "-ec", commands)
	}
	out, err := c.Kubectl(ctx, "--namespace", testbed.Namespace, "exec", "daemonset/ovn-db", "--container", "nb", "--",
		"sh", "-ec", commands).Output()
	return string(out), err
}
