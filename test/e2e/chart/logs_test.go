package chart

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// logsPage is what an operator reads who wants to know which packets a policy denies.
const logsPage = "../../../docs/features/policy-logs.md"

// logged reads which packets to a node's pod the policy pods-alone denied, with the commands of the page.
func (c *installed) logged(t *testing.T, n *node.Node) {
	t.Helper()
	o := c.operator(t)
	pod := c.kubectl(t, "get", "pods", "--selector", "app=ovnkube-node", "--field-selector", "spec.nodeName="+n.Spec.Name,
		"--output", "jsonpath={.items[0].metadata.name}")
	o.names = strings.NewReplacer("NODE", n.Spec.Name, "POD", pod)
	blocks := machines.Blocks(t, logsPage, "## Read a line")
	find, read, _ := strings.Cut(blocks[0], "\n")
	o.said(t, find, pod)
	to := netip.AddrPortFrom(n.Config.Addrs[0].Addr(), machines.EchoNodePort)
	machines.Eventually(t, "a line about the policy", func(ctx context.Context) string {
		machines.AskOn(ctx, c.Outside, "tcp", to) // which comes to any of the pods, in the end to that of the node
		if out, err := o.try(ctx, read); err != nil || !strings.Contains(out, "NP:default/pods-alone:ingress:deny") {
			return fmt.Sprintf("%q, error: %v", out, err)
		}
		return ""
	})
	o.said(t, "LINE=$("+read+" | tail -n 1)\n"+blocks[1],
		"np/default/pods-alone isolates the pod for Ingress, and no rule of any policy allows this")
}
