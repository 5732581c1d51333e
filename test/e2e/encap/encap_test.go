package encap

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

const (
	upLimit  = 15 * time.Minute // of bringing the cluster up: it may have to fetch and build
	deadline = 60 * time.Second // of every wait
)

// The outermost headers are within the underlay's MTU of 1500 when a packet is
// as large as the management port lets it be.
func TestTunnels(t *testing.T) {
	c := up(t)
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
				restartAgent(t, n, "--mtu", "0", "--encap-type", k.encapType, "--encap-ip", strings.Join(ends(n), ","))
			}
			for i, n := range c.Nodes {
				peer := c.Nodes[1-i]
				awaitTunnels(t, n, k.encapType, len(ends(n)), ends(peer))
				awaitOutput(t, n, fmt.Sprint(k.mtu), "cat", "/sys/class/net/k8s-"+n.Spec.Name+"/mtu")
			}
			for i, n := range c.Nodes {
				crossTunnel(t, n, c.Nodes[1-i], k.encapType, k.mtu)
			}
		})
	}
}

func up(t *testing.T) *sandbox.Cluster {
	t.Helper()
	dir, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), upLimit)
	defer cancel()
	c, err := sandbox.Up(ctx, sandbox.Options{Name: "encap", Nodes: 2, DualStack: true, BinDir: dir, Replace: true, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// restartAgent starts a node's agent anew, with its flags as before but for
// these, and waits until the node is as it wants it.
func restartAgent(t *testing.T, n *node.Node, flags ...string) {
	t.Helper()
	services, err := n.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(services, func(s member.ServiceStatus) bool { return s.Name == node.Agent })
	if i < 0 {
		t.Fatalf("%s has no agent: %v", n.Spec.Name, services)
	}
	agent := services[i].Service
	for f := 0; f < len(flags); f += 2 {
		if at := slices.Index(agent.Argv, flags[f]); at >= 0 {
			agent.Argv = slices.Delete(agent.Argv, at, at+2)
		}
	}
	agent.Argv = append(agent.Argv, flags...)
	if err := n.StopService(t.Context(), node.Agent, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := n.StartService(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the agent of "+n.Spec.Name+" is ready", func(ctx context.Context) string {
		if _, err := n.Get(ctx, "http://"+node.AgentMetrics+"/readyz"); err != nil {
			return err.Error()
		}
		return ""
	})
}

// awaitTunnels waits until the node has tunnels of this type to these addresses
// and no other: one from each of its own addresses to each, of which those
// between different families never open.
func awaitTunnels(t *testing.T, n *node.Node, encapType string, own int, remotes []string) {
	t.Helper()
	slices.Sort(remotes)
	eventually(t, "tunnels of "+n.Spec.Name, func(context.Context) string {
		var have []string
		for _, port := range tunnels(t, n, "type="+encapType, "ofport>0") {
			have = append(have, run(t, n, "ovs-vsctl", "--if-exists", "get", "Interface", port, "options:remote_ip"))
		}
		slices.Sort(have)
		if all := tunnels(t, n); !slices.Equal(have, remotes) || len(all) != own*len(remotes) {
			return fmt.Sprintf("%d, those that are open lead to %v, want %d, and %v", len(all), have, own*len(remotes), remotes)
		}
		return ""
	})
}

// tunnels is the node's tunnel interfaces that fulfil the conditions: only they
// have a remote_ip.
func tunnels(t *testing.T, n *node.Node, conditions ...string) []string {
	t.Helper()
	argv := []string{"ovs-vsctl", "--bare", "--columns=name", "find", "Interface", `options:remote_ip!=""`}
	return strings.Fields(run(t, n, append(argv, conditions...)...))
}

// run is what a program prints, quotes and the blanks around it aside.
func run(t *testing.T, n *node.Node, argv ...string) string {
	t.Helper()
	out, err := n.Run(t.Context(), argv...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(strings.TrimSpace(out), `"`)
}

// crossTunnel pings the other node's management port with packets that fill
// the MTU and must not be fragmented, and sees them in the tunnel.
func crossTunnel(t *testing.T, from, to *node.Node, encapType string, mtu int) {
	t.Helper()
	before := sent(t, from)
	const packets = 5
	pings := 0
	for _, headers := range []int{20 + 8, 40 + 8} { // IPv4 and IPv6, with ICMP
		target := managementAddress(t, to, headers == 20+8)
		eventually(t, fmt.Sprintf("%s reaches %s with %d bytes", from.Spec.Name, target, mtu), func(ctx context.Context) string {
			out, err := from.Run(ctx, "ping", "-n", "-c1", "-W1", "-M", "do", "-s", fmt.Sprint(mtu-headers), target)
			if err != nil {
				return err.Error() + out
			}
			return ""
		})
		out, err := from.Run(t.Context(), "ping", "-n", "-q", "-i0.05", "-c", fmt.Sprint(packets), "-W2", "-M", "do", "-s", fmt.Sprint(mtu-headers), target)
		if err != nil || !strings.Contains(out, " 0% packet loss") {
			t.Errorf("%s to %s: %v\n%s", from.Spec.Name, target, err, out)
		}
		pings += packets
	}
	if after := sent(t, from); after < before+pings {
		t.Errorf("%s sent %d packets through its %s tunnels, want %d at least", from.Spec.Name, after-before, encapType, pings)
	}
}

// sent is how many packets have gone into the node's tunnels.
func sent(t *testing.T, n *node.Node) int {
	t.Helper()
	total := 0
	for _, port := range tunnels(t, n, "ofport>0") {
		out := run(t, n, "ovs-ofctl", "dump-ports", "br-int", port)
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
	out := run(t, n, "ip", family, "-br", "addr", "show", "dev", "k8s-"+n.Spec.Name, "scope", "global")
	f := strings.Fields(out)
	if len(f) < 3 {
		t.Fatalf("no address: %s", out)
	}
	addr, _, _ := strings.Cut(f[2], "/")
	return addr
}

func awaitOutput(t *testing.T, n *node.Node, want string, argv ...string) {
	t.Helper()
	eventually(t, strings.Join(argv, " ")+" on "+n.Spec.Name, func(ctx context.Context) string {
		out, err := n.Run(ctx, argv...)
		if out = strings.TrimSpace(out); err != nil || out != want {
			return fmt.Sprintf("%v %q, want %q", err, out, want)
		}
		return ""
	})
}

func eventually(t *testing.T, what string, ok func(context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		why := ok(ctx)
		if why == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %s", what, why)
		case <-tick.C:
		}
	}
}
