package alerts

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// slowly is longer than the alerts about slow changes and pods allow, and less than a pod waits for its network.
const slowly = 20 * time.Second

// slowDatabase stops the Northbound database while new pods wait for their network.
func (p *prometheus) slowDatabase(t *testing.T) {
	p.pod(t, "soon")
	machines.Kubectl(t, p.Cluster, "", "wait", "--for=condition=Ready", "pod/soon", "--timeout=60s")
	signal(t, p.Nodes[0], "STOP", nbServer)
	begun := time.Now()
	p.pod(t, "late")
	machines.Eventually(t, "the pod waits", func(context.Context) string {
		if waited := time.Since(begun); waited < slowly {
			return fmt.Sprintf("for %s, want %s", waited, slowly)
		}
		return ""
	})
	signal(t, p.Nodes[0], "CONT", nbServer)
	p.fires(t, "after a database was slow", "NorthboundChangesSlow", "NorthboundPodsSlow")
	machines.Kubectl(t, p.Cluster, "", "wait", "--for=condition=Ready", "pod/late", "--timeout=60s")
	p.quiet(t, "when the database is fast")
}

// pod makes a pod on the last node.
func (p *prometheus) pod(t *testing.T, name string) {
	t.Helper()
	machines.Kubectl(t, p.Cluster, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  nodeName: %s\n"+
		"  terminationGracePeriodSeconds: 0\n  containers: [{name: echo, image: \"localhost/echo:1\"}]\n", name,
		p.last().Spec.Name), "create", "--filename", "-")
}

func (p *prometheus) last() *node.Node { return p.Nodes[len(p.Nodes)-1] }

// largeFile makes the file of the Southbound database large, with zeros behind its end. The server compacts it.
func (p *prometheus) largeFile(t *testing.T) {
	machines.Run(t, p.Nodes[0], "sh", "-c", `truncate --size 1100M /var/lib/northbound/ovn/ovnsb_db.db`)
	p.fires(t, "with a large file", "NorthboundDatabaseFileLarge")
	kubectl(t, p.Cluster, "", "exec", "daemonset/ovn-db", "--container", "sb", "--", "ovs-appctl", "-t",
		"/run/ovn/ovnsb_db.ctl", "ovsdb-server/compact", "OVN_Southbound")
	p.quiet(t, "when the file is compacted")
}

// loop gives a node's bridge a flow that leads to itself, and sends packets there.
func (p *prometheus) loop(t *testing.T) {
	n, to := p.last(), p.Nodes[1].Config.Addrs[0].Addr().String()
	const cookie = "cookie=0xbad/-1"
	machines.Run(t, n, "ovs-ofctl", "add-flow", node.PhysicalBridge,
		"cookie=0xbad,priority=65000,icmp,nw_dst="+to+",actions=resubmit(,0)")
	ping := n.Command(t.Context(), "ping", "-q", "-i", "0.01", to)
	ping.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // nsenter has a child: both end together
	if err := ping.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		_ = syscall.Kill(-ping.Process.Pid, syscall.SIGKILL) // it may have ended
		_ = ping.Wait()
	}
	defer end()
	p.fires(t, "while flows lead in a circle", "NorthboundPacketsDropped")
	machines.Run(t, n, "ovs-ofctl", "del-flows", node.PhysicalBridge, cookie)
	end()
	p.quiet(t, "without the circle")
}

// manyNodes makes Nodes until nearly all subnets are in use.
func (p *prometheus) manyNodes(t *testing.T) {
	const nodes = 235 // of 256 subnets
	var manifest strings.Builder
	for i := range nodes {
		fmt.Fprintf(&manifest, "---\napiVersion: v1\nkind: Node\nmetadata: {name: many-%d, labels: {many: \"\"}}\n", i)
	}
	machines.Kubectl(t, p.Cluster, manifest.String(), "create", "--filename", "-")
	p.fires(t, "with many nodes", "NorthboundRangeNearlyFull")
	machines.Kubectl(t, p.Cluster, "", "delete", "nodes", "--selector", "many")
	p.quiet(t, "without these nodes")
}

// podsFail stops the ovn-controller of a node, so that new pods there get no network.
func (p *prometheus) podsFail(t *testing.T) {
	signal(t, p.last(), "STOP", controller)
	p.pod(t, "fails")
	p.pod(t, "fails-too")
	p.firesWithin(t, 2*limit, "while pods get no network", "NorthboundPodsFail")
	signal(t, p.last(), "CONT", controller)
	machines.Kubectl(t, p.Cluster, "", "wait", "--for=condition=Ready", "pod/fails", "pod/fails-too", "--timeout=120s")
	p.quiet(t, "when pods get their network")
}

// repairs deletes the port of a pod, and then again: the master makes it anew each time. No alert is about that, but a
// panel.
func (p *prometheus) repairs(t *testing.T) {
	for n := 1; n <= 2; n++ {
		kubectl(t, p.Cluster, "", "exec", "daemonset/ovn-db", "--container", "nb", "--", "ovn-nbctl", "lsp-del",
			"default_soon")
		machines.Eventually(t, "Prometheus counts the repair", func(ctx context.Context) string {
			count, err := p.value(ctx, "sum(northbound_nb_repairs_total)")
			if err != nil || count < float64(n) {
				return fmt.Sprintf("%v repairs, %v, want %d at least", count, err, n)
			}
			return ""
		})
	}
	p.quiet(t, "when rows are repaired")
}
