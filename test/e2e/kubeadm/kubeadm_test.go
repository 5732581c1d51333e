package kubeadm

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// page is what an operator reads. The test runs its commands.
const page = "../../../docs/operate/kubeadm.md"

// TestNewCluster makes a cluster without kube-proxy.
func TestNewCluster(t *testing.T) {
	b := start(t, 3)
	commands := machines.Steps(t, page, "## A new cluster", 4)
	b.does(t, b.Nodes[0], commands[0])
	b.join(t, commands[1])
	b.defaults(t)
	b.install(t, commands[2])
	b.works(t, commands[3])
}

// TestKubeProxy turns kube-proxy off in a cluster that has it, and installs the chart.
func TestKubeProxy(t *testing.T) {
	b := start(t, 2)
	rest := machines.Steps(t, page, "## A new cluster", 4)
	off := machines.Steps(t, page, "## A cluster with kube-proxy", 2)
	b.does(t, b.Nodes[0], "kubeadm init")
	b.join(t, rest[1])
	b.does(t, b.Nodes[0], "kubectl --namespace kube-system rollout status daemonset/kube-proxy --timeout=2m")
	for _, n := range b.Nodes {
		machines.Eventually(t, "kube-proxy's rules on "+n.Spec.Name, func(ctx context.Context) string {
			chains, err := b.chains(ctx, n)
			if err != nil || !slices.Contains(chains, "KUBE-SERVICES") {
				return fmt.Sprintf("%v, chains %v, want KUBE-SERVICES", err, chains)
			}
			return ""
		})
		if line := b.check(t, n, "kube-proxy"); !strings.HasPrefix(line, "problem") {
			t.Errorf("preflight on %s says %q, want a problem", n.Spec.Name, line)
		}
	}
	b.does(t, b.Nodes[0], off[0])
	b.does(t, b.Nodes[0], "kubectl --namespace kube-system wait --for=delete pod --selector k8s-app=kube-proxy")
	// This step of kubeadm upgrade makes the DaemonSet.
	b.does(t, b.Nodes[0], "kubeadm upgrade node phase addon kube-proxy")
	if got := b.does(t, b.Nodes[0], "kubectl --namespace kube-system get daemonsets --output name"); got != "" {
		t.Errorf("after an upgrade there is %s, want no DaemonSet", got)
	}
	for _, n := range b.Nodes {
		b.does(t, n, off[1])
		b.clean(t, n)
	}
	b.install(t, rest[2])
	b.works(t, rest[3])
	for _, n := range b.Nodes {
		b.clean(t, n)
	}
}

// chains lists the chains that kube-proxy and the kubelet have on a node.
func (b *bed) chains(ctx context.Context, n *node.Node) ([]string, error) {
	out, err := b.try(ctx, n, "iptables-save; ip6tables-save")
	if err != nil {
		return nil, fmt.Errorf("reading the rules of %s: %w: %s", n.Spec.Name, err, out)
	}
	names := regexp.MustCompile(`KUBE-[A-Z0-9-]+`).FindAllString(out, -1)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// check returns the line of ovnkube preflight about a check.
func (b *bed) check(t *testing.T, n *node.Node, check string) string {
	t.Helper()
	out, err := b.try(t.Context(), n, "ovnkube preflight --datapath-type netdev || test $? = 2")
	if err != nil {
		t.Fatalf("preflight on %s: %v\n%s", n.Spec.Name, err, out)
	}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == check {
			return line
		}
	}
	t.Fatalf("preflight on %s says nothing of %s:\n%s", n.Spec.Name, check, out)
	return ""
}

// clean checks that kube-proxy has left nothing. Some chains are the kubelet's.
func (b *bed) clean(t *testing.T, n *node.Node) {
	t.Helper()
	chains, err := b.chains(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	for _, chain := range chains {
		if !slices.Contains([]string{"KUBE-FIREWALL", "KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"}, chain) {
			t.Errorf("%s still has chain %s", n.Spec.Name, chain)
		}
	}
	if line := b.check(t, n, "kube-proxy"); !strings.HasPrefix(line, "ok") {
		t.Errorf("preflight on %s says %q, want ok", n.Spec.Name, line)
	}
}
