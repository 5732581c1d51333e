package encap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// A packet of the management port's full MTU and its outer headers must fit the underlay's MTU of 1500.
func TestTunnels(t *testing.T) {
	c := machines.Up(t, sandbox.Options{Name: "encap", Nodes: 2, DualStack: true})
	for _, k := range []struct {
		encapType string
		families  []int // indexes in a node's addresses: IPv4, IPv6
		mtu       int
	}{
		{"geneve", []int{0}, 1442},
		{"geneve", []int{1}, 1422},
		{"geneve", []int{0, 1}, 1422},
		{"vxlan", []int{0}, 1450},
		{"vxlan", []int{1}, 1430},
	} {
		ends := func(n *node.Node) (out []string) {
			for _, i := range k.families {
				out = append(out, n.Config.Addrs[i].Addr().String())
			}
			return out
		}
		t.Run(fmt.Sprintf("%s %v", k.encapType, ends(c.Nodes[0])), func(t *testing.T) {
			for _, n := range c.Nodes {
				machines.RestartAgent(t, c, n, "--mtu", "0", "--encap-type", k.encapType, "--encap-ip", strings.Join(ends(n), ","))
			}
			for i, n := range c.Nodes {
				peer := c.Nodes[1-i]
				awaitTunnels(t, n, k.encapType, len(ends(n)), ends(peer))
				machines.AwaitOutput(t, n, fmt.Sprint(k.mtu), "cat", "/sys/class/net/k8s-"+n.Spec.Name+"/mtu")
			}
			for i, n := range c.Nodes {
				crossTunnel(t, n, c.Nodes[1-i], k.encapType, k.mtu)
			}
		})
	}
}

// awaitTunnels waits until the node has exactly the tunnels of this type to these addresses: one from each of its own
// addresses to each. Those between different families never open.
func awaitTunnels(t *testing.T, n *node.Node, encapType string, own int, remotes []string) {
	t.Helper()
	slices.Sort(remotes)
	machines.Eventually(t, "tunnels of "+n.Spec.Name, func(context.Context) string {
		var have []string
		for _, port := range tunnels(t, n, "type="+encapType, "ofport>0") {
			have = append(have, machines.Run(t, n, "ovs-vsctl", "--if-exists", "get", "Interface", port, "options:remote_ip"))
		}
		slices.Sort(have)
		if all := tunnels(t, n); !slices.Equal(have, remotes) || len(all) != own*len(remotes) {
			return fmt.Sprintf("%d, those that are open lead to %v, want %d, and %v", len(all), have, own*len(remotes), remotes)
		}
		return ""
	})
}

// tunnels lists the node's tunnel interfaces that match the conditions. Only tunnels have a remote_ip.
func tunnels(t *testing.T, n *node.Node, conditions ...string) []string {
	t.Helper()
	argv := []string{"ovs-vsctl", "--bare", "--columns=name", "find", "Interface", `options:remote_ip!=""`}
	return strings.Fields(machines.Run(t, n, append(argv, conditions...)...))
}

// crossTunnel pings the other node's management port with unfragmented packets of the full MTU, and counts them in the
// tunnel.
func crossTunnel(t *testing.T, from, to *node.Node, encapType string, mtu int) {
	t.Helper()
	before := sent(t, from)
	const packets = 5
	pings := 0
	for _, headers := range []int{20 + 8, 40 + 8} { // IPv4 and IPv6, with ICMP
		target := managementAddress(t, to, headers == 20+8)
		// Some may be lost while OVN still changes the tunnels.
		machines.Eventually(t, fmt.Sprintf("%s reaches %s with %d bytes", from.Spec.Name, target, mtu),
			func(ctx context.Context) string {
				out, err := from.Run(ctx, "ping", "-n", "-q", "-i0.05", "-c", fmt.Sprint(packets), "-W2", "-M", "do", "-s",
					fmt.Sprint(mtu-headers), target)
				if err != nil || !strings.Contains(out, " 0% packet loss") {
					return fmt.Sprintf("%v\n%s", err, out)
				}
				return ""
			})
		pings += packets
	}
	// The revalidators update the counters a moment later.
	machines.Eventually(t, from.Spec.Name+" counts its packets", func(context.Context) string {
		if after := sent(t, from); after < before+pings {
			return fmt.Sprintf("%d packets through its %s tunnels, want %d at least", after-before, encapType, pings)
		}
		return ""
	})
}

// sent returns how many packets the node has sent into its tunnels.
func sent(t *testing.T, n *node.Node) int {
	t.Helper()
	total := 0
	for _, port := range tunnels(t, n, "ofport>0") {
		out := machines.Run(t, n, "ovs-ofctl", "dump-ports", "br-int", port)
		_, tx, _ := strings.Cut(out, "tx pkts=")
		count := 0
		if _, err := fmt.Sscanf(tx, "%d,", &count); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		total += count
	}
	return total
}

func managementAddress(t *testing.T, n *node.Node, v4 bool) string {
	t.Helper()
	family := "-6"
	if v4 {
		family = "-4"
	}
	out := machines.Run(t, n, "ip", family, "-br", "addr", "show", "dev", "k8s-"+n.Spec.Name, "scope", "global")
	f := strings.Fields(out)
	if len(f) < 3 {
		t.Fatalf("no address: %s", out)
	}
	addr, _, _ := strings.Cut(f[2], "/")
	return addr
}
