package gateway

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// subnets returns a node's subnets as a flag's value.
func (b bed) subnets(n *node.Node) (out []string) {
	b.t.Helper()
	for _, s := range machines.Subnets(b.t, b.Cluster, n.Spec.Name) {
		out = append(out, s.String())
	}
	return out
}

// insideIsReached makes every pod ask every pod, and the kubelet of every node at all its addresses, gateway or not.
func (b bed) insideIsReached(pods ...string) {
	b.t.Helper()
	type target struct {
		what   string
		to     netip.AddrPort
		answer string
	}
	var targets []target
	for _, p := range pods {
		for _, ip := range machines.PodIPs(b.t, b.Cluster, p) {
			targets = append(targets, target{"pod " + p, netip.AddrPortFrom(ip, 8080), p + " "})
		}
	}
	for _, n := range b.Nodes {
		for _, p := range addrs(n) {
			targets = append(targets, target{"node " + n.Spec.Name, netip.AddrPortFrom(p.Addr(), 10250), "HTTPS server"})
		}
	}
	for _, from := range pods {
		for _, t := range targets {
			machines.Eventually(b.t, fmt.Sprintf("pod %s asks %s at %s", from, t.what, t.to), func(ctx context.Context) string {
				if answer := machines.AskIn(ctx, b.Cluster, from, "tcp", t.to); !strings.Contains(answer, t.answer) {
					return "got " + answer
				}
				return ""
			})
		}
	}
}

// pins makes pods use certain gateways: b uses n1, although its own node n2 is a gateway, and c, by its addresses
// alone, uses n2. Traffic inside the cluster does not change.
func (b bed) pins(t *testing.T) {
	n1, n2, n3 := b.Nodes[0], b.Nodes[1], b.Nodes[2]
	var c []string
	for _, ip := range machines.PodIPs(b.t, b.Cluster, "c") {
		c = append(c, netip.PrefixFrom(ip, ip.BitLen()).String())
	}
	machines.RestartAgent(t, b.Cluster, n1, "--rampout-ip-subnets",
		strings.Join(append(b.subnets(n2), b.subnets(n3)...), ","))
	machines.RestartAgent(t, b.Cluster, n2, "--rampout-ip-subnets", strings.Join(c, ","))
	b.awaitSpread(time.Minute, "a", n1)
	b.awaitSpread(time.Minute, "b", n1)
	b.awaitSpread(time.Minute, "c", n2) // the more specific pin wins
	b.insideIsReached("a", "b", "c")
	machines.RestartAgent(t, b.Cluster, n1, "--rampout-ip-subnets", strings.Join(c, ",")) // both pins
	b.awaitSpread(time.Minute, "c", n1, n2)
	b.awaitSpread(time.Minute, "b", n2)
	machines.RestartAgent(t, b.Cluster, n1, "--rampout-ip-subnets", strings.Join(b.subnets(n2), ","))
	machines.RestartAgent(t, b.Cluster, n2, "--rampout-ip-subnets", "")
	b.awaitSpread(time.Minute, "b", n1)
	b.halt(t, n1)
	b.awaitSpread(time.Minute, "b", n2) // the only egress path left
	b.resume(t, n1)
	b.awaitSpread(time.Minute, "b", n1)
	machines.RestartAgent(t, b.Cluster, n1, "--rampout-ip-subnets", "")
	b.awaitSpread(time.Minute, "b", n2)
	b.awaitSpread(time.Minute, "c", n1, n2)
}
