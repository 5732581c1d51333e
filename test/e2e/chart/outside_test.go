package chart

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// outside are the addresses of the host outside.
func outside() (out []netip.Addr) {
	for _, p := range (underlay.Families{DualStack: true}).Outside() {
		out = append(out, p.Addr())
	}
	return out
}

// gateways checks the address with which pods reach the host outside: that of the only gateway, and that of their own
// node while a label makes it a gateway, too.
func (c *installed) gateways(t *testing.T) {
	n1, n2 := c.Nodes[0], c.Nodes[1]
	for _, pod := range c.pods {
		c.seenFrom(t, pod, n1)
	}
	machines.MakeGateway(t, c.Cluster, n2, true)
	c.seenFrom(t, c.pods[1], n2)
	c.seenFrom(t, c.pods[0], n1)
	machines.MakeGateway(t, c.Cluster, n2, false)
	c.seenFrom(t, c.pods[1], n1)
}

// seenFrom waits until the host outside sees a pod with the addresses of a node.
func (c *installed) seenFrom(t *testing.T, pod string, through *node.Node) {
	t.Helper()
	for i, ip := range outside() {
		to, want := netip.AddrPortFrom(ip, 8080), through.Config.Addrs[i].Addr()
		machines.Eventually(t, fmt.Sprintf("pod %s asks %s", pod, to), func(ctx context.Context) string {
			return seen(machines.AskIn(ctx, c.Cluster, pod, "tcp", to), "outside", want)
		})
	}
}

// seen says what is wrong with an answer: who is to give it, and the client address that they are to see.
func seen(answer, who string, client netip.Addr) string {
	name, where, _ := strings.Cut(answer, " ")
	if from, err := netip.ParseAddrPort(where); name != who || err != nil || from.Addr().Unmap() != client {
		return fmt.Sprintf("%q, want %s to answer, who sees %s", answer, who, client)
	}
	return ""
}

// fromOutside asks the Service at each node from outside. With policy Local, the node's own pod sees the client's
// address.
func (c *installed) fromOutside(t *testing.T) {
	policy := func(which string) {
		machines.Kubectl(t, c.Cluster, "", "patch", "service", "echo", "--patch",
			`{"spec":{"externalTrafficPolicy":"`+which+`"}}`)
	}
	policy("Local")
	c.atNodePorts(t, func(pod, answer string, client netip.Addr) string { return seen(answer, pod, client) })
	policy("Cluster")
	c.atNodePorts(t, func(_, answer string, client netip.Addr) string {
		if seen(answer, answer[:max(0, strings.Index(answer, " "))], client) == "" || !strings.HasPrefix(answer, "p") {
			return fmt.Sprintf("%q, want any pod to answer, which sees an address of the node's", answer)
		}
		return ""
	})
}

// policies checks that pods are not reached from outside while a NetworkPolicy allows other pods alone, and that the
// log says so.
func (c *installed) policies(t *testing.T) {
	const policy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: pods-alone}
spec:
  podSelector: {matchLabels: {app: echo}}
  ingress: [{from: [{podSelector: {matchLabels: {app: echo}}}]}]
`
	const logging = "k8s.ovn.org/acl-logging"
	machines.Kubectl(t, c.Cluster, "", "annotate", "namespace", "default", logging+`={"deny": "alert"}`)
	machines.Kubectl(t, c.Cluster, policy, "apply", "--filename", "-")
	defer machines.Kubectl(t, c.Cluster, policy, "delete", "--filename", "-") // what comes next needs its pods
	c.atNodePorts(t, func(_, answer string, _ netip.Addr) string {
		if !machines.Dropped(answer) {
			return fmt.Sprintf("%q, want no answer", answer)
		}
		return ""
	})
	c.logged(t, c.Nodes[0])
	machines.Kubectl(t, c.Cluster, "", "annotate", "namespace", "default", logging+"-")
	for _, ip := range machines.PodIPs(t, c.Cluster, c.pods[2]) {
		to := netip.AddrPortFrom(ip, 8080)
		machines.Eventually(t, "a pod asks another", func(ctx context.Context) string {
			if got := machines.AskIn(ctx, c.Cluster, c.pods[0], "tcp", to); !strings.HasPrefix(got, c.pods[2]+" ") {
				return "got " + got
			}
			return ""
		})
	}
}

// atNodePorts asks each node's port from outside until ok returns "". ok gets the name of the node's pod, the answer,
// and the client's address.
func (c *installed) atNodePorts(t *testing.T, ok func(pod, answer string, client netip.Addr) string) {
	t.Helper()
	for i, n := range c.Nodes {
		for f, a := range n.Config.Addrs {
			to := netip.AddrPortFrom(a.Addr(), machines.EchoNodePort)
			machines.Eventually(t, "outside asks "+to.String(), func(ctx context.Context) string {
				return ok(c.pods[i], machines.AskOn(ctx, c.Outside, "tcp", to), outside()[f])
			})
		}
	}
}
