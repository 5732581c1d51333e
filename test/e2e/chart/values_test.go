package chart

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// rendered is what `helm template` makes of the chart with these values, and the error's text if it refuses them.
func rendered(values ...string) (out, refused string) {
	argv := []string{"template", sandbox.ReleaseName, source, "--namespace", sandbox.Namespace}
	for _, v := range values {
		argv = append(argv, "--set", v)
	}
	var stderr strings.Builder
	cmd := exec.Command("../../../bin/helm", argv...)
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return "", err.Error() + ": " + stderr.String()
	}
	return string(stdout), ""
}

// TestValues renders the chart with values that add objects, or that it refuses.
func TestValues(t *testing.T) {
	const three, backup, cleanup = "database.nodes={a,b,c}", "backup.enabled=true", "cleanup.enabled=true"
	const budgets, job = "kind: PodDisruptionBudget", "kind: CronJob"
	for _, k := range []struct {
		values       []string
		want, absent []string
	}{
		{nil, nil, []string{budgets, job}},
		{[]string{three}, []string{budgets, "minAvailable: 2", "minAvailable: 1"}, nil},
		{[]string{"database.nodes={a}"}, nil, []string{budgets}},
		{[]string{three, backup, cleanup}, nil, []string{budgets, job}},
		{[]string{backup}, []string{job, "path: \"/var/lib/northbound-backups\"", `"ssl:127.0.0.1:6641"`}, nil},
		{[]string{backup, "database.listen=192.0.2.7", "backup.volume.nfs.server=files"},
			[]string{`"ssl:192.0.2.7:6641"`, "server: files"}, []string{"northbound-backups"}},
	} {
		out, refused := rendered(k.values...)
		if refused != "" {
			t.Errorf("%v: %s", k.values, refused)
			continue
		}
		for _, want := range k.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q", k.values, want)
			}
		}
		for _, absent := range k.absent {
			if strings.Contains(out, absent) {
				t.Errorf("%v: has %q", k.values, absent)
			}
		}
	}
	for value, want := range map[string]string{
		"node.args={--mtu=0}":            "want network.mtu",
		"node.args={--encap-type=vxlan}": "network.encapType",
		"network.encapType=gre":          "encapType",
		"backup.keep=0":                  "keep",
	} {
		if _, refused := rendered(value); !strings.Contains(refused, want) {
			t.Errorf("%s: refused with %q, want %q in it", value, refused, want)
		}
	}
}

// tunnels changes the tunnels' type and the MTU of a cluster that runs. What follows goes on with these.
func (c *installed) tunnels(t *testing.T) {
	c.operator(t).does(t, blocks(t, "## Tunnels")[0])
	c.tunnelled(t, "vxlan", "1450") // the underlay's 1500 less VXLAN's headers over IPv4
	c.settled(t)
}

// tunnelled waits until all nodes have tunnels of this type alone, and this MTU. Pods then answer through them.
func (c *installed) tunnelled(t *testing.T, encapType, mtu string) {
	t.Helper()
	const types = `ovs-vsctl --bare --columns=type find Interface 'options:remote_ip!=""' | sort -u | xargs`
	for _, n := range c.Nodes {
		machines.AwaitOutput(t, n, mtu, "cat", "/sys/class/net/k8s-"+n.Spec.Name+"/mtu")
		c.awaitInAgent(t, n.Spec.Name, types, encapType)
	}
	machines.EchoAnswers(t, c.Cluster, c.pods)
}

// awaitInAgent waits until a shell command in the agent's container prints this.
func (c *installed) awaitInAgent(t *testing.T, node, command, want string) {
	t.Helper()
	machines.Eventually(t, command+" on "+node, func(ctx context.Context) string {
		out, err := c.inAgent(ctx, t, node, command)
		if got := strings.TrimSpace(out); err != nil || got != want {
			return fmt.Sprintf("%v, %q, want %q", err, got, want)
		}
		return ""
	})
}
