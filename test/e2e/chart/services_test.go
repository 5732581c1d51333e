package chart

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// TestServicesRemoved installs the daemons on bare nodes as services, without the chart. It removes them as
// docs/operate/service.md says, and compares nodes and API server with what they were before.
func TestServicesRemoved(t *testing.T) {
	t.Setenv(sandbox.InstallVariable, "")
	c := &installed{}
	c.Cluster = machines.Up(t, sandbox.Options{Name: "services-removed", Nodes: 2, DualStack: true,
		BeforeInstall: func(ctx context.Context, bare *sandbox.Cluster) (err error) {
			if err := registered(ctx, bare); err != nil {
				return err
			}
			c.bare, err = look(ctx, bare)
			return err
		}})
	pods := machines.EchoPods(t, c.Cluster, "10.96.0.50", "fd02::50")
	machines.EchoAnswers(t, c.Cluster, pods)
	machines.Kubectl(t, c.Cluster, "", "delete", "pods,services", "--selector", "app=echo")
	machines.Kubectl(t, c.Cluster, "", "delete", "service", "echo")
	for _, n := range c.Nodes {
		uninstall(t, n)
	}
	if err := c.Control.StopService(t.Context(), control.Master, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	out, err := c.Control.Run(t.Context(), "ovnkube", "cleanup", "cluster", "--kubeconfig", c.Control.AdminKubeconfig())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("ovnkube cleanup cluster:\n%s", out)
	c.asBefore(t)
}

// uninstall ends the daemons as their units do, and types what the page says.
func uninstall(t *testing.T, n *node.Node) {
	t.Helper()
	if err := n.StopService(t.Context(), node.Agent, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	machines.Run(t, n, "ovn-appctl", "-t", "ovn-controller", "exit")
	if err := n.StopService(t.Context(), node.Controller, syscall.SIGTERM); err != nil { // waits for its end
		t.Fatal(err)
	}
	out := cleanedUp(t, n)
	for _, want := range []string{"- bridge br-int", "- external_ids:ovn-remote=", "- nftables' table inet northbound",
		"- /etc/cni/net.d/10-ovn-kubernetes.conflist", "- /opt/cni/bin/ovn_cni"} {
		if !strings.Contains(out, want) {
			t.Errorf("ovnkube cleanup node on %s prints no %q but:\n%s", n.Spec.Name, want, out)
		}
	}
	machines.Run(t, n, "rm", "/etc/openvswitch/ovn_k8s.conf") // its settings
}

// cleanedUp is what `ovnkube cleanup node` prints. The API server forgets a pod that has no grace period at once. Until
// the kubelet has ended it, too, the command refuses, and names it.
func cleanedUp(t *testing.T, n *node.Node) (out string) {
	t.Helper()
	machines.Eventually(t, "ovnkube cleanup node on "+n.Spec.Name, func(ctx context.Context) string {
		var err error
		out, err = n.Run(ctx, "ovnkube", "cleanup", "node")
		if err == nil {
			return ""
		}
		if !strings.Contains(err.Error(), "pods on this node would lose their network") {
			t.Fatal(err)
		}
		return err.Error()
	})
	return out
}
