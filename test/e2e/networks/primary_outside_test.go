package networks

import (
	"context"
	"fmt"
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
				return "got " + got
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
					return machines.AskFrom(ctx, c, "kube-system", "dns-1", protocol, to)
				})
				answered(other, to, func(ctx context.Context) string {
					return machines.AskFrom(ctx, c, other, other+"-2", protocol, to)
				})
				answered(ns, to, func(ctx context.Context) string { return machines.AskFrom(ctx, c, ns, ns+"-3", protocol, to) })
			}
		}
		for _, to := range clusterIPs(t, c, ns, "open") {
			answered("dns-2", to, func(ctx context.Context) string {
				return machines.AskFrom(ctx, c, "kube-system", "dns-2", protocol, to)
			})
			answered(ns, to, func(ctx context.Context) string { return machines.AskFrom(ctx, c, ns, ns+"-1", protocol, to) })
		}
	}
}

// atExternalIPs asks a tenant's service at its external IPs and at those of its load balancer. The router outside sends
// their packets to n1.
func atExternalIPs(t *testing.T, c *sandbox.Cluster, ns string, number int) {
	t.Helper()
	var addrs []netip.Addr
	for _, format := range []string{"192.0.2.%d", "2001:db8:2::%d", "192.0.2.1%d", "2001:db8:2::1%d"} {
		addrs = append(addrs, netip.MustParseAddr(fmt.Sprintf(format, 20+number)))
	}
	for _, a := range addrs {
		via := c.Nodes[0].Config.Addrs[0].Addr()
		if a.Is6() {
			via = c.Nodes[0].Config.Addrs[1].Addr()
		}
		if _, err := c.Control.Run(t.Context(), "ip", "route", "replace", a.String(), "via", via.String()); err != nil {
			t.Fatal(err)
		}
	}
	machines.Kubectl(t, c, "", "patch", "service", "-n", ns, "open", "--patch", fmt.Sprintf(
		`{"spec":{"type":"LoadBalancer","externalIPs":[%q,%q]}}`, addrs[0], addrs[1]))
	machines.Kubectl(t, c, "", "patch", "service", "-n", ns, "open", "--subresource=status", "--patch", fmt.Sprintf(
		`{"status":{"loadBalancer":{"ingress":[{"ip":%q},{"ip":%q}]}}}`, addrs[2], addrs[3]))
	for _, a := range addrs {
		for _, protocol := range []string{"tcp", "udp"} {
			to := netip.AddrPortFrom(a, 80)
			for who, ask := range map[string]func(ctx context.Context) string{
				"outside": func(ctx context.Context) string { return machines.AskOn(ctx, c.Outside, protocol, to) },
				"node n2": func(ctx context.Context) string { return machines.AskOn(ctx, c.Nodes[1].Member, protocol, to) },
				"dns-1": func(ctx context.Context) string {
					return machines.AskFrom(ctx, c, "kube-system", "dns-1", protocol, to)
				},
				ns + "-3": func(ctx context.Context) string { return machines.AskFrom(ctx, c, ns, ns+"-3", protocol, to) },
			} {
				machines.Eventually(t, who+" asks "+to.String(), func(ctx context.Context) string {
					if got := ask(ctx); !strings.HasPrefix(got, ns+"-1 ") && !strings.HasPrefix(got, ns+"-2 ") {
						return "got " + got
					}
					return ""
				})
			}
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
					return "got " + got
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
