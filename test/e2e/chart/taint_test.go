package chart

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// taint keeps pods from a node until its agent is ready (docs/operate/install.md).
const taint = "northbound.io/agent-not-ready"

// tainted prints the taint of each node, once for each of its effects.
func tainted(ctx context.Context, c *sandbox.Cluster) (string, error) {
	out, err := c.Kubectl(ctx, "get", "nodes", `--output=jsonpath={range .items[*]}{.metadata.name}:`+
		`{.spec.taints[?(@.key=="`+taint+`")].effect} {end}`).Output()
	return strings.TrimSpace(string(out)), err
}

// registeredTainted is an error if not every node was registered with the taint: its removal would show nothing.
func registeredTainted(ctx context.Context, c *sandbox.Cluster) error {
	var want []string
	for _, n := range c.Nodes {
		want = append(want, n.Spec.Name+":NoSchedule NoExecute")
	}
	got, err := tainted(ctx, c)
	if err == nil && got != strings.Join(want, " ") {
		err = fmt.Errorf("nodes have the taints %q, want %q", got, want)
	}
	return err
}

// untainted waits until no node has the taint, and every one says that its network is there.
func (c *installed) untainted(t *testing.T) {
	machines.Eventually(t, "no node has the taint any more", func(ctx context.Context) string {
		got, err := tainted(ctx, c.Cluster)
		if err != nil {
			return err.Error()
		}
		if strings.Contains(got, "No") {
			return "got " + got
		}
		return ""
	})
	c.kubectl(t, "wait", "nodes", "--all", "--for=condition=NetworkUnavailable=False", "--timeout=30s")
}
