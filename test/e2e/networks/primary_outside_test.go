package networks

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// everybody asks a tenant's service from outside, a node, a pod of the cluster's own network, another tenant and the
// tenant itself.
func everybody(t *testing.T, c *sandbox.Cluster, ns string, nodePort int) {
	t.Helper()
	other := map[string]string{"red": "green", "green": "blue", "blue": "red"}[ns]
	answered := func(who string, to netip.AddrPort, ask func(ctx context.Context) string) {
		t.Helper()
		machines.Eventually(t, who+" asks "+to.String(), func(ctx context.Context) string {
			if got := ask(ctx); !strings.HasPrefix(got, ns+"-1 ") && !strings.HasPrefix(got, ns+"-2 ") {
				return got
			}
			return ""
		})
	}
	for _, protocol := range []string{"tcp", "udp"} {
		for _, n := range c.Nodes {
			for _, a := range n.Config.Addrs {
				to := netip.AddrPortFrom(a.Addr(), uint16(nodePort))
				answered("outside", to, func(ctx context.Context) string {
					return machines.AskOn(ctx, c.Outside, protocol, to)
				})
				answered("node n1", to, func(ctx context.Context) string {
					return machines.AskOn(ctx, c.Nodes[0].Member, protocol, to)
				})
				answered("dns-1", to, func(ctx context.Context) string {
					return askService(ctx, c, "kube-system", "dns-1", protocol, to)
				})
				answered(other, to, func(ctx context.Context) string {
					return askService(ctx, c, other, other+"-2", protocol, to)
				})
				answered(ns, to, func(ctx context.Context) string { return askService(ctx, c, ns, ns+"-3", protocol, to) })
			}
		}
		for _, to := range clusterIPs(t, c, ns, "open") {
			answered("dns-2", to, func(ctx context.Context) string {
				return askService(ctx, c, "kube-system", "dns-2", protocol, to)
			})
			answered(ns, to, func(ctx context.Context) string { return askService(ctx, c, ns, ns+"-1", protocol, to) })
		}
	}
}

// fromOutside has a policy about the server, which the service is not to reach for a client outside, and then to reach.
// It sees the exit's address on the join switch, and not the client's.
func (t tenant) fromOutside(nodePort uint16) {
	t.Helper()
	// The server is then the only backend.
	machines.Kubectl(t.T, t.c, "", "label", "pod", "-n", t.ns, t.pod("friend"), "app-")
	defer machines.Kubectl(t.T, t.c, "", "label", "pod", "-n", t.ns, t.pod("friend"), "app=web")
	answered := func(so bool) {
		t.Helper()
		machines.Eventually(t.T, "the outside asks by the node port", func(ctx context.Context) string {
			for i, a := range t.c.Nodes[1].Config.Addrs {
				got := machines.AskOn(ctx, t.c.Outside, []string{"tcp", "udp"}[i%2], netip.AddrPortFrom(a.Addr(), nodePort))
				if strings.HasPrefix(got, t.pod("server")+" ") != so {
					return got
				}
			}
			return ""
		})
	}
	answered(true)
	t.set("server", "ingress: [{from: [{ipBlock: {cidr: 203.0.113.0/24}}, {ipBlock: {cidr: '2001:db8:30::/64'}}]}]")
	answered(false)
	t.set("server", "ingress: [{from: [{ipBlock: {cidr: 100.66.0.0/15}}, {ipBlock: {cidr: 'fd66::/64'}}]}]")
	answered(true)
	t.unset()
}
