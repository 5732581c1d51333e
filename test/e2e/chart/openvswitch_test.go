package chart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// TestOpenvSwitch installs the chart on nodes without Open vSwitch, ends the pods that bring it in several ways, and
// removes everything.
func TestOpenvSwitch(t *testing.T) {
	c := &installed{}
	c.Cluster = machines.UpWith(t, sandbox.Options{Name: "chart", DualStack: true, Install: sandbox.InstallChart,
		SwitchPods: true, BeforeInstall: c.lookBefore, Taint: taint})
	t.Run("doctor", c.doctor)
	t.Run("pods", c.makePods)
	t.Run("service", c.service)
	t.Run("kubectl northbound", c.switchTools)
	c.streams = c.pingsEvery(t, "0.01")
	machines.MoreReplies(t, c.streams, 10)
	before := c.addresses(t)
	t.Run("upgrade", c.upgradeAround)
	t.Run("ends", c.endSwitches)
	if err := errors.Join(machines.CheckRights(c.Cluster), c.CheckSwitches(t.Context())); err != nil {
		t.Error(err)
	}
	if after := c.addresses(t); !slices.Equal(before, after) {
		t.Errorf("addresses of pods were %v, are %v", before, after)
	}
	t.Run("removal", c.switchRemoval)
}

// switchTools asks for the parts of the installation, and Open vSwitch, from a laptop.
func (c *installed) switchTools(t *testing.T) {
	o := c.operator(t)
	o.said(t, "kubectl northbound status --wait --timeout 60s", "All is well.")
	o.said(t, "kubectl northbound status -o json | grep -c '\"component\": \"openvswitch\"'", "3")
	o.said(t, "kubectl northbound vsctl n2 show", "Bridge breth1")
	o.said(t, "kubectl northbound ofctl n2 dump-flows br-int table=0", "priority=")
	o.said(t, "kubectl northbound appctl n2 ovs-vswitchd version", "ovs-vswitchd (Open vSwitch)")
}

// switches are the UIDs and restarts of the pods of Open vSwitch.
func (c *installed) switches(t *testing.T) string {
	t.Helper()
	return c.kubectl(t, "get", "pods", "--selector", "app=ovs-node", "--sort-by", "{.spec.nodeName}", "--output",
		`jsonpath={range .items[*]}{.spec.nodeName} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`)
}

// upgradeAround changes what all containers are given. The pods of Open vSwitch stay, and no packet is lost.
func (c *installed) upgradeAround(t *testing.T) {
	before := c.switches(t)
	o := c.operator(t)
	o.does(t, "helm upgrade northbound bin/northbound-VERSION.tgz --namespace ovn-kubernetes --reset-then-reuse-values "+
		"--set logLevel=debug")
	c.settled(t)
	if after := c.switches(t); after != before {
		t.Errorf("pods of Open vSwitch were\n%s\nare\n%s", before, after)
	}
}

// endSwitches ends Open vSwitch of the first node in each way. The network comes back by itself. How much was lost
// depends on the machine, and is printed.
func (c *installed) endSwitches(t *testing.T) {
	first := c.Nodes[0]
	for _, way := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"the pod is deleted", func(t *testing.T) {
			c.kubectl(t, "delete", "pod", "--selector", "app=ovs-node", "--field-selector", "spec.nodeName="+first.Spec.Name)
		}},
		{"ovsdb-server is killed", c.killed(first, "ovsdb-server /etc/openvswitch/conf.db")},
		{"ovs-vswitchd is killed", c.killed(first, "ovs-vswitchd unix:")},
		{"the container of ovsdb-server is killed", c.killed(first, "ovnkube openvswitch database")},
		{"the container of ovs-vswitchd is killed", c.killed(first, "ovnkube openvswitch switch")},
	} {
		way.do(t)
		c.kubectl(t, "rollout", "status", "daemonset/ovnkube-node")
		machines.Eventually(t, "pods of Open vSwitch", func(ctx context.Context) string {
			out, err := c.Kubectl(ctx, "--namespace", sandbox.Namespace, "wait", "daemonset/ovs-node", "--timeout=1s",
				fmt.Sprintf("--for=jsonpath={.status.numberReady}=%d", len(c.Nodes))).CombinedOutput()
			if err != nil {
				return "got " + string(out)
			}
			return ""
		})
		machines.MoreReplies(t, c.streams, 100)
		for _, s := range c.streams {
			t.Log(way.name + ": " + s.Reset())
		}
	}
	c.newPod(t, "after-all-ends")
	c.doctor(t)
}

// killed kills the process of a node whose command line has a text, and waits until there is another one.
func (c *installed) killed(n *node.Node, line string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		const find = `pgrep --full --newest -- "$1"`
		pid := strings.TrimSpace(machines.Run(t, n, "sh", "-c", find, "sh", "["+line[:1]+"]"+line[1:]))
		machines.Run(t, n, "kill", "-KILL", pid)
		machines.Eventually(t, "another "+line, func(ctx context.Context) string {
			now, err := n.Run(ctx, "sh", "-c", find, "sh", "["+line[:1]+"]"+line[1:])
			if now = strings.TrimSpace(now); err != nil || now == "" || now == pid {
				return fmt.Sprintf("process %q, %v", now, err)
			}
			return ""
		})
	}
}

// switchRemoval takes everything away as the page says, and compares with what was there before.
func (c *installed) switchRemoval(t *testing.T) {
	o, remove := c.operator(t), blocks(t, "## Remove")
	machines.Kubectl(t, c.Cluster, "", "delete", "pods,services", "--selector", "app=echo")
	machines.Kubectl(t, c.Cluster, "", "delete", "service", "echo", "--ignore-not-found")
	o.does(t, remove[0])
	o.does(t, remove[2])
	c.asBefore(t)
}
