package hostback

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// The client address that a backend sees for connections through its own node's kernel.
const hairpin = "the node itself"

// nodes of the cluster.
const nodes = 2

// workload has, for each node, a service whose only backend is on that node's host network, and a pod.
func workload() string {
	const body = `terminationGracePeriodSeconds: 0, containers: [{name: echo, image: "localhost/echo:1", ` +
		`imagePullPolicy: IfNotPresent, command: [/bin/echo-server, serve, "9090"]}]}`
	var docs []string
	for i := range nodes {
		n := fmt.Sprint("n", i+1)
		docs = append(docs, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: on-%[1]s}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  selector: {backend: %[1]s}
  externalIPs: [192.0.2.%[2]d, "2001:db8:2::%[2]d"]
  ports:
  - {name: t, port: %[3]d, targetPort: 9090, nodePort: 3000%[2]d}
  - {name: u, protocol: UDP, port: %[3]d, targetPort: 9090, nodePort: 3000%[2]d}
  - {name: s, protocol: SCTP, port: %[3]d, targetPort: 9090, nodePort: 3000%[2]d}
---
apiVersion: v1
kind: Pod
metadata: {name: backend-%[1]s, labels: {backend: %[1]s}}
spec: {nodeName: %[1]s, hostNetwork: true, `+body+`
---
apiVersion: v1
kind: Pod
metadata: {name: pod-%[1]s}
spec: {nodeName: %[1]s, `+body, n, i+1, servicePort(i)))
	}
	return strings.Join(docs, "\n---\n")
}

func servicePort(backend int) uint16 { return uint16(7001 + backend) }

// bed is a cluster with the workload.
type bed struct {
	*sandbox.Cluster
	names map[netip.Addr]string // name of each address
}

func up(t *testing.T, gateways int) bed {
	c := machines.Up(t, sandbox.Options{Name: "hostback-test", Nodes: nodes, Gateways: gateways, DualStack: true})
	b := bed{c, map[netip.Addr]string{netip.MustParseAddr("169.254.169.6"): hairpin,
		netip.MustParseAddr("fd69::6"): hairpin}}
	machines.Kubectl(t, c, workload(), "apply", "-f", "-")
	machines.Kubectl(t, c, "", "wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
	for i, n := range c.Nodes {
		name := n.Spec.Name
		// the kernel needs a route before it changes the destination
		for f, external := range []string{"192.0.2.0/24", "2001:db8:2::/64"} {
			machines.Run(t, n, "ip", "route", "replace", external, "via", c.Nodes[(i+1)%nodes].Config.Addrs[f].Addr().String())
		}
		for _, p := range n.Config.Addrs {
			b.names[p.Addr()] = name
		}
		for _, a := range machines.ManagementAddresses(t, c, name) {
			b.names[a] = name + "'s management port"
		}
		for _, ip := range machines.PodIPs(t, c, "pod-"+name) {
			b.names[ip] = "the client"
		}
	}
	return b
}

// client is a place from which services are asked.
type client struct {
	name string
	node int  // its node, -1 for outside
	pod  bool // its packets reach OVN before a node's kernel
	ask  func(ctx context.Context, protocol string, to netip.AddrPort) string
}

func (b bed) machine(name string, node int, m *member.Member) client {
	return client{name, node, false, func(ctx context.Context, protocol string, to netip.AddrPort) string {
		return machines.AskOn(ctx, m, protocol, to)
	}}
}

func (b bed) pod(node int) client {
	name := fmt.Sprint("pod-n", node+1)
	return client{name, node, true, func(ctx context.Context, protocol string, to netip.AddrPort) string {
		return machines.AskIn(ctx, b.Cluster, name, protocol, to)
	}}
}

// way is an address of a service: one in each family, with a port.
type way struct {
	name  string
	node  int // the node of the node port, else -1
	addrs []netip.Addr
	port  uint16
}

func (b bed) ways(t *testing.T, backend int) []way {
	name := fmt.Sprint("on-n", backend+1)
	clusterIP := way{name: "ClusterIP", node: -1, port: servicePort(backend), addrs: machines.Addresses(t, b.Cluster,
		"service", name, "{.spec.clusterIPs[*]}")}
	external := way{name: "external IP", node: -1, port: servicePort(backend), addrs: []netip.Addr{
		netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", backend+1)),
		netip.MustParseAddr(fmt.Sprintf("2001:db8:2::%d", backend+1)),
	}}
	out := []way{clusterIP, external}
	for i, n := range b.Nodes {
		w := way{name: "node port of " + n.Spec.Name, node: i, port: uint16(30001 + backend)}
		for _, p := range n.Config.Addrs {
			w.addrs = append(w.addrs, p.Addr())
		}
		out = append(out, w)
	}
	return out
}

// entry is the node whose kernel sends a connection into OVN, -1 for a pod's connection, which enters OVN directly.
func entry(c client, w way) int {
	switch {
	case w.node >= 0:
		return w.node
	case c.pod:
		return -1
	}
	return c.node
}

// seen is the client address that the backend on a node's host network sees.
type seen func(b bed, c client, w way, backend int) string

// withoutGateways: connections leave OVN through the management port by which they entered, or that of the pod's node.
func withoutGateways(b bed, c client, w way, backend int) string {
	e := entry(c, w)
	switch {
	case e < 0 && c.node == backend:
		return "the client"
	case e < 0:
		return b.Nodes[c.node].Spec.Name
	case e == backend:
		return hairpin
	}
	return b.Nodes[e].Spec.Name
}

// behindGateway: n1 is the gateway. OVN uses its own address towards its host, and its router towards all others.
func behindGateway(b bed, c client, w way, backend int) string {
	e := entry(c, w)
	switch {
	case backend != 0:
		return b.Nodes[0].Spec.Name
	case e < 0:
		return "the client"
	case e == backend:
		return hairpin
	}
	return b.Nodes[e].Spec.Name + "'s management port"
}

func TestHostBackends(t *testing.T) {
	for _, c := range []struct {
		name     string
		gateways int
		seen     seen
	}{{"no gateway", 0, withoutGateways}, {"gateway", 1, behindGateway}} {
		t.Run(c.name, func(t *testing.T) {
			b := up(t, c.gateways)
			var clients []client
			for i, n := range b.Nodes {
				clients = append(clients, b.machine(n.Spec.Name, i, n.Member), b.pod(i))
			}
			if c.gateways > 0 {
				clients = append(clients, b.machine("outside", -1, b.Outside))
			}
			for backend := range b.Nodes {
				for _, w := range b.ways(t, backend) {
					b.ask(t, slices.Values(clients), w, backend, c.seen)
				}
			}
			for _, n := range b.Nodes {
				b.source(t, n)
			}
			if c.gateways == 0 {
				b.repaired(t, clients[0])
			}
		})
	}
}

// ask makes every client ask, over all protocols and both families, until the backend answers, and checks that it sees
// the right client.
func (b bed) ask(t *testing.T, clients func(func(client) bool), w way, backend int, sees seen) {
	for c := range clients {
		if c.node < 0 && w.node < 0 {
			continue // hosts outside have no route to these
		}
		for _, a := range w.addrs {
			for _, protocol := range machines.Protocols(t) {
				to, want := netip.AddrPortFrom(a, w.port), sees(b, c, w, backend)
				machines.Eventually(t, fmt.Sprintf("%s asks %s (%s of on-n%d) over %s", c.name, to, w.name, backend+1, protocol),
					func(ctx context.Context) string {
						got := c.ask(ctx, protocol, to)
						name, from, _ := strings.Cut(got, " ")
						source, err := netip.ParseAddrPort(from)
						if name != b.Nodes[backend].Spec.Name || err != nil {
							return fmt.Sprintf("%q, want %s to answer", got, b.Nodes[backend].Spec.Name)
						}
						if who := b.names[source.Addr().Unmap()]; who != want {
							return fmt.Sprintf("seen from %s, %q, want %s", source, who, want)
						}
						return ""
					})
			}
		}
	}
}

// source checks that UDP servers that let the kernel choose their source address answer the node from the address that
// it asked.
func (b bed) source(t *testing.T, n *node.Node) {
	for i, seen := range []string{"169.254.169.6", "fd69::6"} {
		if got, want := machines.Run(t, n, "ip", "-o", "route", "get", seen), " src "+n.Config.Addrs[i].Addr().String()+
			" "; !strings.Contains(got, want) {
			t.Errorf("on %s: %s, want%s", n.Spec.Name, got, want)
		}
	}
}

// repaired checks that the row and the rules are restored.
func (b bed) repaired(t *testing.T, c client) {
	acls := func() string {
		out, err := b.NBCtl(t.Context(), "--bare", "--columns=action,match", "list", "ACL")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	before := acls()
	if n := strings.Count(before, "allow-stateless"); n != nodes {
		t.Errorf("%d ACLs, want one of each node:\n%s", n, before)
	}
	if out, err := b.NBCtl(t.Context(), "clear", "Logical_Switch", "n1", "acls"); err != nil {
		t.Fatal(err, out)
	}
	machines.Eventually(t, "the ACL is back", func(context.Context) string {
		if now := acls(); strings.Count(now, "allow-stateless") != nodes {
			return "got " + now
		}
		return ""
	})
	machines.Run(t, b.Nodes[0], "ip", "route", "del", "169.254.169.6")
	b.ask(t, slices.Values([]client{c}), b.ways(t, 0)[0], 0, withoutGateways)
}
