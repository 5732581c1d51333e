package attacks

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// settings checks where an agent has the cluster's ranges from: the master publishes them. An agent needs no flags for
// them, and refuses to start with others.
func settings(t *testing.T, c *sandbox.Cluster) {
	t.Helper()
	n := c.Nodes[len(c.Nodes)-1]
	if c.RunsChart() {
		// The chart gives agents no range. It starts one again that has ended.
		former := machines.Run(t, n, "cat", managementMTU(n))
		for _, mtu := range []string{"1300", former} {
			patchSettings(t, c, `{"data": {"mtu": "`+mtu+`"}}`)
			machines.Within(t, 2*time.Minute, "the agent has taken MTU "+mtu+" over", func(ctx context.Context) string {
				out, err := n.Run(ctx, "cat", managementMTU(n))
				if err != nil || strings.TrimSpace(out) != mtu {
					return fmt.Sprintf("%v %s", err, out)
				}
				return ""
			})
		}
		return
	}
	const own = "/etc/openvswitch/without-ranges.conf"
	_, err := n.Run(t.Context(), "/bin/sh", "-c",
		"sed -e '/^cluster-subnets/d' -e '/^service-cidrs/d' -e '/^mtu/d' /etc/openvswitch/ovn_k8s.conf > "+own)
	must(t, err)
	machines.RestartAgent(t, c, n, "--config-file", own)
	out, err := n.Run(t.Context(), "/bin/sh", "-c", "grep -c subnets "+own)
	if err == nil {
		t.Errorf("%s still has %s lines about subnets", own, strings.TrimSpace(out))
	}
	changed(t, c, n)
	out, err = n.Run(t.Context(), "ovnkube", "node", "--node-name", n.Spec.Name, "--config-file", own,
		"--metrics-bind-address", "127.0.0.1:0", "--cluster-subnets", "10.5.0.0/16/24")
	if err == nil {
		t.Fatalf("an agent with other ranges than the master's ran: %s", out)
	}
	if want := "--cluster-subnets 10.5.0.0/16/24: the master runs with "; !strings.Contains(err.Error(), want) {
		t.Errorf("an agent with other ranges: %v, want %q", err, want)
	}
	machines.RestartAgent(t, c, n, "--config-file", "/etc/openvswitch/ovn_k8s.conf")
}

// changed checks that an agent ends when the settings have changed that it has from the master, and takes the new ones
// over when it starts again.
func changed(t *testing.T, c *sandbox.Cluster, n *node.Node) {
	t.Helper()
	before := machines.Run(t, n, "cat", managementMTU(n))
	patchSettings(t, c, `{"data": {"mtu": "1300"}}`)
	machines.Within(t, 2*time.Minute, "the agent ends", func(ctx context.Context) string {
		services, err := n.Services(ctx)
		if err != nil {
			return err.Error()
		}
		for _, s := range services {
			if s.Name == node.Agent && s.Exit != "exit status 1" {
				return fmt.Sprintf("pid %d, exit %q", s.PID, s.Exit)
			}
		}
		return ""
	})
	machines.RestartAgent(t, c, n)
	machines.AwaitOutput(t, n, "1300", "cat", managementMTU(n))
	patchSettings(t, c, `{"data": {"mtu": null}}`)
	machines.RestartAgent(t, c, n)
	machines.AwaitOutput(t, n, before, "cat", managementMTU(n))
}

func patchSettings(t *testing.T, c *sandbox.Cluster, data string) {
	t.Helper()
	machines.Kubectl(t, c, "", "patch", "configmap", "-n", "kube-system", "northbound-settings", "--type=merge", "-p",
		data)
}

// managementMTU is the file with the MTU of the node's management port.
func managementMTU(n *node.Node) string { return "/sys/class/net/k8s-" + n.Spec.Name + "/mtu" }
