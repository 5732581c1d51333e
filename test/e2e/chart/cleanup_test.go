package chart

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// lookBefore notes what is there before the installation, when all kubelets have registered.
func (c *installed) lookBefore(ctx context.Context, bare *sandbox.Cluster) (err error) {
	if err := registered(ctx, bare); err != nil {
		return err
	}
	if err := registeredTainted(ctx, bare); err != nil {
		return err
	}
	c.bare, err = look(ctx, bare)
	return err
}

// removal takes Northbound away as the page says, and compares nodes and API server with what they were before it came.
// Then it installs Northbound again, without Helm.
func (c *installed) removal(t *testing.T) {
	o, remove, apply := c.operator(t), blocks(t, "## Remove"), blocks(t, "### Without Helm")
	if len(remove) != 3 || len(apply) != 1 {
		t.Fatalf("the page has the commands %q and %q, want three blocks and one", remove, apply)
	}
	o.does(t, remove[0])
	machines.Eventually(t, "the pods that are in the way", func(ctx context.Context) string {
		out, err := o.try(ctx, remove[1])
		const want = "pods on this node would lose their network"
		waiting := map[string]bool{}
		for _, l := range strings.Split(out, "\n") {
			if pod, line, ok := strings.Cut(l, " "); ok && strings.Contains(line, want) { // "[pod/NAME/cleanup] ..."
				waiting[pod] = true
			}
		}
		if err != nil || len(waiting) != len(c.Nodes) {
			return fmt.Sprintf("not every node says %q: %v\n%s", want, err, out)
		}
		return ""
	})
	machines.Kubectl(t, c.Cluster, "", "delete", "pods,services", "--selector", "app=echo", "--wait=false")
	machines.Kubectl(t, c.Cluster, "", "delete", "service", "echo")
	o.does(t, remove[2])
	c.asBefore(t)
	o.does(t, apply[0])
	c.streams = nil
	c.settled(t)
	c.newPod(t, "after-removal")
}

// asBefore waits until nodes and API server are as they were before the installation.
func (c *installed) asBefore(t *testing.T) {
	t.Helper()
	machines.Eventually(t, "nodes and API server as they were before the installation", func(context.Context) string {
		now, err := look(t.Context(), c.Cluster)
		if err != nil {
			return err.Error()
		}
		var out []string
		for what, text := range now {
			if d := differing(text, c.bare[what]); d != "" {
				out = append(out, what+":\n"+d)
			}
		}
		slices.Sort(out)
		return strings.Join(out, "\n")
	})
}
