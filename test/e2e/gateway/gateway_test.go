package gateway

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// Pod a is on n1, which is a gateway. Pod b is on n2, which is not.
const pods = `
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {app: both}}
spec:
  nodeName: n1
  terminationGracePeriodSeconds: 0
  containers: [{name: echo, image: "localhost/echo:1", imagePullPolicy: IfNotPresent}]
---
apiVersion: v1
kind: Pod
metadata: {name: b, labels: {app: both}}
spec:
  nodeName: n2
  terminationGracePeriodSeconds: 0
  containers: [{name: echo, image: "localhost/echo:1", imagePullPolicy: IfNotPresent}]
`

func families() underlay.Families { return underlay.Families{DualStack: true} }

// bed is the sandbox with its pods.
type bed struct {
	*sandbox.Cluster
	t *testing.T
}

// awaitSource waits until the host outside sees the pod's packets with the address as their source, in every protocol.
func (b bed) awaitSource(pod string, from netip.Addr) {
	b.t.Helper()
	for _, outside := range families().Outside() {
		if outside.Addr().Is4() != from.Is4() {
			continue
		}
		for _, protocol := range machines.Protocols(b.t) {
			to := netip.AddrPortFrom(outside.Addr(), 8080)
			machines.Eventually(b.t, fmt.Sprintf("pod %s asks %s over %s", pod, to, protocol), func(ctx context.Context) string {
				answer := machines.AskIn(ctx, b.Cluster, pod, protocol, to)
				who, where, _ := strings.Cut(answer, " ")
				if seen, err := netip.ParseAddrPort(where); who != "outside" || err != nil || seen.Addr() != from {
					return fmt.Sprintf("%q, want it to be seen from %s", answer, from)
				}
				return ""
			})
		}
	}
}

// addrs returns a node's own addresses.
func addrs(n *node.Node) []netip.Prefix { return n.Config.Addrs }

func TestGateway(t *testing.T) {
	b := bed{machines.Up(t, sandbox.Options{Name: "gateway", Nodes: 2, Gateways: 1, DualStack: true}), t}
	machines.Kubectl(b.t, b.Cluster, pods, "apply", "-f", "-")
	machines.Kubectl(b.t, b.Cluster, "", "wait", "--for=condition=Ready", "pod/a", "pod/b", "--timeout=60s")
	n1, n2 := b.Nodes[0], b.Nodes[1]
	t.Run("packets from outside with a source within", func(t *testing.T) {
		bed{b.Cluster, t}.awaitSource("a", addrs(n1)[0].Addr()) // the gateway router works
		bed{b.Cluster, t}.spoof()
	})
	t.Run("programs bound to their node's own address", func(t *testing.T) { bed{b.Cluster, t}.boundPrograms() })
	outside := watch(t, b.Control.Member)
	t.Run("pods leave through the gateway with its address", func(t *testing.T) {
		for _, pod := range []string{"a", "b"} {
			for _, p := range addrs(n1) {
				bed{b.Cluster, t}.awaitSource(pod, p.Addr())
			}
		}
	})
	t.Run("packets that belong to no connection", func(t *testing.T) { bed{b.Cluster, t}.strays("a", "b") })
	t.Run("the gateway's own address is the host's", func(t *testing.T) { bed{b.Cluster, t}.hostIsReached() })
	t.Run("flows that are removed come back", func(t *testing.T) { bed{b.Cluster, t}.flowsComeBack(n1) })
	t.Run("a service whose endpoint is outside", func(t *testing.T) { bed{b.Cluster, t}.endpointElsewhere() })
	t.Run("senders of too large packets learn the MTU", func(t *testing.T) { bed{b.Cluster, t}.mtu(n1) })
	t.Run("Services and the MTU", func(t *testing.T) { bed{b.Cluster, t}.mtuOfService(n1) })
	t.Run("by hand there is nothing to do", func(t *testing.T) { bed{b.Cluster, t}.byHand(n1) })
	t.Run("a gateway by hand, of a Node of Kubernetes", func(t *testing.T) { bed{b.Cluster, t}.gatewayByHand(n1, n2) })
	t.Run("another gateway, and none", func(t *testing.T) {
		b := bed{b.Cluster, t}
		machines.MakeGateway(t, b.Cluster, n2, true)
		for _, p := range addrs(n2) {
			b.awaitSource("b", p.Addr())
		}
		b.awaitSource("a", addrs(n1)[0].Addr())
		machines.MakeGateway(t, b.Cluster, n2, false)
		b.awaitSource("b", addrs(n1)[0].Addr())
		machines.MakeGateway(t, b.Cluster, n1, false)
		for i, n := range b.Nodes { // through the management port again
			for _, p := range addrs(n) {
				b.awaitSource([]string{"a", "b"}[i], p.Addr())
			}
		}
		b.strays("a", "b")
		out, err := b.NBCtl(t.Context(), "--bare", "--columns=name", "find", "Logical_Router", "name!=ovn_cluster_router")
		if err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("gateway routers are left: %q %v", out, err)
		}
	})
	outside.check(t, addrs(n1)[0].Addr(), addrs(n1)[1].Addr(), addrs(n2)[0].Addr(), addrs(n2)[1].Addr())
	t.Run("packets from outside with a source within, without gateways",
		func(t *testing.T) { bed{b.Cluster, t}.spoof() })
	t.Run("pods asked at their own addresses", func(t *testing.T) { bed{b.Cluster, t}.podsAreAsked() })
}

// flowsComeBack removes the flows of the gateway's external bridge, and checks that the agent restores them.
func (b bed) flowsComeBack(n1 *node.Node) {
	count := func() string {
		return machines.Run(b.t, n1, "sh", "-c",
			"ovs-ofctl dump-flows br-phys cookie=0x6e626777/-1 | grep -c cookie; true")
	}
	want := count()
	machines.Run(b.t, n1, "ovs-ofctl", "del-flows", "br-phys") // the bridge's own flow, too
	machines.Eventually(b.t, "the flows", func(context.Context) string {
		if have := count(); have != want {
			return fmt.Sprintf("%s, want %s", have, want)
		}
		return ""
	})
	for _, pod := range []string{"a", "b"} { // b through a tunnel to n1
		for _, p := range addrs(n1) {
			b.awaitSource(pod, p.Addr())
		}
	}
	b.hostIsReached()
}

// podsAreAsked checks that pods answer a machine outside the cluster at their own addresses, through routes by their
// nodes, as some API servers use them. All other egress packets of pods are translated.
func (b bed) podsAreAsked() {
	for i, pod := range []string{"a", "b"} {
		for f, subnet := range machines.Subnets(b.t, b.Cluster, b.Nodes[i].Spec.Name) {
			if out, err := b.Control.Run(b.t.Context(), "ip", "route", "replace", subnet.String(), "via",
				addrs(b.Nodes[i])[f].Addr().String()); err != nil {
				b.t.Fatal(err, out)
			}
			for _, protocol := range machines.Protocols(b.t) {
				to := netip.AddrPortFrom(machines.PodIPs(b.t, b.Cluster, pod)[f], 8080)
				machines.Eventually(b.t, fmt.Sprintf("the API server's machine asks pod %s at %s over %s", pod, to, protocol),
					func(ctx context.Context) string {
						if answer := machines.AskOn(ctx, b.Control.Member, protocol, to); !strings.HasPrefix(answer, pod+" ") {
							return answer
						}
						return ""
					})
			}
		}
	}
}

// hostIsReached asks the gateway node's own services, from pods and from outside: its gateway router has the same
// address. If packets went to the wrong one, some requests would fail each time.
func (b bed) hostIsReached() {
	b.t.Helper()
	n := b.Nodes[0]
	for _, p := range addrs(n) {
		kubelet := netip.AddrPortFrom(p.Addr(), 10250)
		for _, pod := range []string{"a", "b"} {
			machines.Eventually(b.t, fmt.Sprintf("pod %s reaches %s", pod, kubelet), func(ctx context.Context) string {
				if answer := machines.AskIn(ctx, b.Cluster, pod, "tcp", kubelet); !strings.Contains(answer, "HTTPS server") {
					return "got " + answer
				}
				return ""
			})
		}
		machines.Eventually(b.t, fmt.Sprintf("outside pings %s", p.Addr()), func(ctx context.Context) string {
			out, err := b.Outside.Run(ctx, "ping", "-n", "-c10", "-i0.1", "-W1", p.Addr().String())
			if strings.Contains(out, "DUP") {
				b.t.Errorf("outside pings %s: somebody answers, too:\n%s", p.Addr(), out)
			}
			if err != nil || !strings.Contains(out, " 0% packet loss") {
				return fmt.Sprintf("%v\n%s", err, out)
			}
			return ""
		})
	}
	for _, o := range families().Outside() {
		to := netip.AddrPortFrom(o.Addr(), 8080).String()
		machines.Eventually(b.t, "the host asks "+to, func(ctx context.Context) string {
			if out, err := n.Run(ctx, machines.Echo, "ask", "tcp", to, "10", "1s"); err != nil ||
				strings.Count(out, "outside ") != 10 {
				return fmt.Sprintf("%v\n%s", err, out)
			}
			return ""
		})
	}
	// Hosts outside have no route to pods.
	ip := machines.Kubectl(b.t, b.Cluster, "", "get", "pod", "a", "-o", "jsonpath={.status.podIP}")
	if out, err := b.Outside.Run(b.t.Context(), "ping", "-n", "-c1", "-W1", ip); err == nil {
		b.t.Errorf("outside reaches pod address %s:\n%s", ip, out)
	}
}

// gatewayByHand stops n2's agent, makes n2 a gateway by hand, undoes that, and starts the agent again. The master
// follows through the Node's annotations.
func (b bed) gatewayByHand(n1, n2 *node.Node) {
	b.t.Helper()
	machines.StopAgent(b.t, b.Cluster, n2)
	const helper = "--physical-bridge=" + node.PhysicalBridge
	run := func(argv ...string) { b.t.Log(strings.Join(argv, " ") + "\n" + machines.Run(b.t, n2, argv...)) }
	run(b.gatewayInit(n2)...)
	run("ovnkube", "gateway-helper", helper, "--physical-interface="+underlay.Uplink, "--pidfile=/run/helper.pid",
		"--detach")
	for _, p := range addrs(n2) {
		b.awaitSource("b", p.Addr())
	}
	if got := machines.Kubectl(b.t, b.Cluster, "", "get", "node", n2.Spec.Name, "-o",
		`jsonpath={.metadata.annotations.k8s\.ovn\.org/l3-gateway-config}`); !strings.Contains(got, addrs(n2)[0].String()) {
		b.t.Errorf("the Node's annotation is %q", got)
	}
	run("sh", "-c", "kill $(cat /run/helper.pid)")
	machines.AwaitOutput(b.t, n2, "gone", "sh", "-c", "test -e /run/helper.pid || echo gone")
	run("ovnkube", "gateway-helper", helper, "--physical-interface="+underlay.Uplink, "--undo")
	run(append(b.gatewayInit(n2), "--undo")...)
	for _, p := range addrs(n1) {
		b.awaitSource("b", p.Addr())
	}
	if got := machines.Kubectl(b.t, b.Cluster, "", "get", "node", n2.Spec.Name, "-o",
		`jsonpath={.metadata.annotations}`); strings.Contains(got, "l3-gateway-config") {
		b.t.Errorf("the Node's annotations are %s", got)
	}
	machines.RestartAgent(b.t, b.Cluster, n2)
}

// byHandFlags are the common flags of the commands by hand. They also write annotations that the master writes
// otherwise, so they need an administrator's rights.
func (b bed) byHandFlags(n *node.Node) []string {
	keys := machines.MasterKeys(b.t, b.Cluster, n)
	nb := netip.AddrPortFrom(machines.Databases(b.Cluster)[0].Addr(), control.NBPort)
	return []string{"--node-name", n.Spec.Name, "--kubeconfig", b.Control.AdminKubeconfig(), "--nb-address",
		fmt.Sprintf("ssl:%s", nb), "--nb-privkey", keys.Key, "--nb-cert", keys.Cert, "--nb-cacert", keys.CA,
		"--cluster-ip-subnet", "10.244.0.0/16,fd00:10:244::/48", "--datapath-type", "netdev"}
}

// gatewayInit is the command that makes a node a gateway.
func (b bed) gatewayInit(n *node.Node) []string {
	var ips, routers []string
	for i, p := range addrs(n) {
		ips, routers = append(ips, p.String()), append(routers, families().Control()[i].Addr().String())
	}
	return append([]string{"ovnkube", "gateway-init", "--bridge-interface", node.PhysicalBridge, "--physical-ip",
		strings.Join(ips, ","),
		"--default-gw", strings.Join(routers, ",")}, b.byHandFlags(n)...)
}

// byHand runs the commands by hand on the node. They must find nothing to change.
func (b bed) byHand(n *node.Node) {
	b.t.Helper()
	for _, argv := range [][]string{
		append([]string{"ovnkube", "minion-init", "--minion-switch-subnet", strings.Join(b.subnets(n), ","), "--mtu", "1400",
			"--k8s-service-cidrs", b.Options.ServiceCIDRs()}, b.byHandFlags(n)...),
		b.gatewayInit(n),
	} {
		if out := machines.Run(b.t, n, argv...); out != "Nothing to do: it is as it should be." {
			b.t.Errorf("%s:\n%s", strings.Join(argv, " "), out)
		}
	}
}
