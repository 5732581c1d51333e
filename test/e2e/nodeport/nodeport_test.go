package nodeport

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// n1 is a gateway. The backends are on n2.
const workload = `
apiVersion: v1
kind: Service
metadata: {name: pods}
spec:
  type: LoadBalancer
  ipFamilyPolicy: RequireDualStack
  selector: {backend: pod}
  externalIPs: [192.0.2.7, "2001:db8:2::7"]
  ports:
  - {name: t, port: 8080, nodePort: 30010}
  - {name: u, protocol: UDP, port: 8080, nodePort: 30010}
  - {name: s, protocol: SCTP, port: 8080, nodePort: 30010}
---
apiVersion: v1
kind: Service
metadata: {name: hosts}
spec:
  type: LoadBalancer
  ipFamilyPolicy: RequireDualStack
  selector: {backend: host}
  externalIPs: [192.0.2.9, "2001:db8:2::9"]
  ports:
  - {name: t, port: 9090, nodePort: 30020}
  - {name: u, protocol: UDP, port: 9090, nodePort: 30020}
  - {name: s, protocol: SCTP, port: 9090, nodePort: 30020}
---
apiVersion: v1
kind: Service
metadata: {name: nobody}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  selector: {backend: none}
  ports:
  - {name: t, port: 8080, nodePort: 30011}
  - {name: u, protocol: UDP, port: 8080, nodePort: 30011}
  - {name: s, protocol: SCTP, port: 8080, nodePort: 30011}
---
` + podHead + `
metadata: {name: backend, labels: {backend: pod, local: pod}}
spec: {nodeName: n2, ` + podBody + `
---
` + podHead + `
metadata: {name: host-backend, labels: {backend: host, local: host}}
spec: {nodeName: n2, hostNetwork: true, ` + podBody + `
---
` + podHead + `
metadata: {name: same-node}
spec: {nodeName: n2, ` + podBody + `
---
` + podHead + `
metadata: {name: other-node}
spec: {nodeName: n3, ` + podBody + `
---
` + podHead + `
metadata: {name: on-gateway}
spec: {nodeName: n1, ` + podBody + `
---
` + podHead + `
metadata: {name: host-network}
spec: {nodeName: n3, hostNetwork: true, ` + podBody + `
`

// Every pod serves on the ports of both services, because on a host one of them may be in use.
const (
	podHead = "apiVersion: v1\nkind: Pod"
	podBody = `terminationGracePeriodSeconds: 0, ` + podEcho + `exec /bin/echo-server serve 8080"]}]}`
	podEcho = `containers: [{name: echo, image: "localhost/echo:1", imagePullPolicy: IfNotPresent, ` +
		`command: [/bin/sh, -c, "/bin/echo-server serve 9090 & `
)

// bed is the sandbox with the workload.
type bed struct {
	*sandbox.Cluster
	names map[netip.Addr]string // name of each address in the table
}

// client is a place from which services are asked.
type client struct {
	name string
	node int  // 1 is n1; 0 is outside
	pod  bool // has an address of its own
	ask  func(ctx context.Context, protocol string, to netip.AddrPort) string
}

func onMachine(name string, m *member.Member) client {
	return client{name: name, ask: func(ctx context.Context, protocol string, to netip.AddrPort) string {
		return machines.AskOn(ctx, m, protocol, to)
	}}
}

func (b bed) inPod(name, pod string) client {
	return client{name: name, ask: func(ctx context.Context, protocol string, to netip.AddrPort) string {
		return machines.AskIn(ctx, b.Cluster, pod, protocol, to)
	}}
}

// on returns the node of a client.
func (c client) on(node int, pod bool) client {
	c.node, c.pod = node, pod
	return c
}

// askAtOnce makes all clients ask at the same time.
func askAtOnce(t *testing.T, clients []client, ask func(t *testing.T, c client)) {
	t.Run("table", func(t *testing.T) {
		for _, c := range clients {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				ask(t, c)
			})
		}
	})
}

func (b bed) clients() []client {
	return []client{
		b.inPod("pod on the backend's node", "same-node").on(2, true), b.inPod("pod on another node", "other-node").on(3,
			true),
		b.inPod("pod on the gateway", "on-gateway").on(1, true), onMachine("the backend's node", b.Nodes[1].Member).on(2,
			false),
		onMachine("another node", b.Nodes[2].Member).on(3, false), onMachine("the gateway", b.Nodes[0].Member).on(1, false),
		b.inPod("host-network pod", "host-network").on(3, false), onMachine("outside", b.Outside),
	}
}

// way is an address of a service: one in each family, with a port.
type way struct {
	name  string
	addrs []netip.Addr
	port  uint16
}

func (b bed) ways(nodePort, port uint16, external, ingress string) []way {
	parse := func(last string) []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("192.0.2." + last), netip.MustParseAddr("2001:db8:2::" + last)}
	}
	var out []way
	for i, name := range []string{"node port, the gateway's", "node port, the backend's node's",
		"node port, another node's"} {
		w := way{name: name, port: nodePort}
		for _, p := range b.Nodes[i].Config.Addrs {
			w.addrs = append(w.addrs, p.Addr())
		}
		out = append(out, w)
	}
	return append(out, way{"external IP", parse(external), port}, way{"load balancer's IP", parse(ingress), port})
}

// route makes the router outside send packets for an address to a node.
func (b bed) route(t *testing.T, last string, node int) {
	t.Helper()
	for i, prefix := range []string{"192.0.2.", "2001:db8:2::"} {
		via := b.Nodes[node].Config.Addrs[i].Addr().String()
		if out, err := b.Control.Run(t.Context(), "ip", "route", "replace", prefix+last, "via", via); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

func up(t *testing.T) bed {
	c := machines.Up(t, sandbox.Options{Name: "nodeport", Nodes: 3, Gateways: 1, DualStack: true})
	machines.Kubectl(t, c, workload+localWorkload, "apply", "-f", "-")
	for service, last := range map[string]string{"pods": "8", "hosts": "10", "local-pods": "12", "local-hosts": "14"} {
		setIngress(t, c, service, last)
	}
	machines.Kubectl(t, c, "", "wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
	b := bed{c, map[netip.Addr]string{}}
	for _, n := range c.Nodes {
		for _, p := range n.Config.Addrs {
			b.names[p.Addr()] = n.Spec.Name
		}
		for _, a := range machines.ManagementAddresses(t, c, n.Spec.Name) {
			b.names[a] = n.Spec.Name + "'s management port"
		}
	}
	for _, pod := range []string{"same-node", "other-node", "on-gateway"} {
		for _, ip := range machines.PodIPs(t, c, pod) {
			b.names[ip] = "the client"
		}
	}
	for _, a := range b.outside() {
		b.names[a] = "the client"
	}
	for last, node := range map[string]int{"7": 2, "8": 0, "9": 2, "10": 0, "11": 1, "12": 2, "13": 1, "14": 2} {
		b.route(t, last, node)
	}
	return b
}

func setIngress(t *testing.T, c *sandbox.Cluster, service, last string) {
	t.Helper()
	machines.Kubectl(t, c, "", "patch", "service", service, "--subresource=status", "--type=merge", "-p",
		fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.%s"},{"ip":"2001:db8:2::%s"}]}}}`, last, last))
}

// table has the client address that a backend sees, by backend and way, and by client.
type table struct {
	mu    sync.Mutex
	cells map[[3]string]string
}

// fill asks in every protocol and family, waits until a server answers, and checks that it sees the same client in
// each.
func (tb *table) fill(t *testing.T, b bed, c client, w way, backend, who string) {
	for _, protocol := range machines.Protocols(t) {
		for _, a := range w.addrs {
			to := netip.AddrPortFrom(a, w.port)
			seen := ""
			machines.Eventually(t, fmt.Sprintf("%s asks %s over %s", c.name, to, protocol), func(ctx context.Context) string {
				got := c.ask(ctx, protocol, to)
				name, from, _ := strings.Cut(got, " ")
				source, err := netip.ParseAddrPort(from)
				if name != who || err != nil {
					return fmt.Sprintf("%q, want %s to answer", got, who)
				}
				if seen = b.names[source.Addr().Unmap()]; seen == "" {
					return fmt.Sprintf("it is seen from %s, which is nobody's", source)
				}
				return ""
			})
			tb.set(t, backend, w.name, c.name, seen)
		}
	}
}

// set records the client address, which must be the same in every protocol and family.
func (tb *table) set(t *testing.T, backend, way, client, seen string) {
	t.Helper()
	key := [3]string{backend, way, client}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if had := tb.cells[key]; had != "" && had != seen {
		t.Errorf("%v: seen as %s and as %s", key, had, seen)
	}
	tb.cells[key] = seen
}

// print prints the table and compares it with the documentation.
func (tb *table) print(t *testing.T, backend string, clients []client, ways []way) {
	t.Helper()
	var s strings.Builder
	fmt.Fprintf(&s, "| backend: %s; client |", backend)
	for _, w := range ways {
		fmt.Fprintf(&s, " %s |", w.name)
	}
	s.WriteString("\n|" + strings.Repeat("---|", len(ways)+1) + "\n")
	for _, c := range clients {
		fmt.Fprintf(&s, "| %s |", c.name)
		for _, w := range ways {
			fmt.Fprintf(&s, " %s |", tb.cells[[3]string{backend, w.name, c.name}])
		}
		s.WriteString("\n")
	}
	t.Log("\n" + s.String())
	page, err := os.ReadFile("../../../docs/reference/service-clients.md")
	if err != nil || !strings.Contains(string(page), s.String()) {
		t.Errorf("docs/reference/service-clients.md has another table (%v)", err)
	}
}

func TestFromOutside(t *testing.T) {
	b := up(t)
	tb := &table{cells: map[[3]string]string{}}
	backends := []struct {
		name, who string
		ways      []way
	}{
		{"pod", "backend", b.ways(30010, 8080, "7", "8")},
		{"host network", "n2", b.ways(30020, 9090, "9", "10")},
	}
	clients := b.clients()
	askAtOnce(t, clients, func(t *testing.T, c client) {
		for _, backend := range backends {
			for _, w := range backend.ways {
				tb.fill(t, b, c, w, backend.name, backend.who)
			}
		}
	})
	for _, backend := range backends {
		tb.print(t, backend.name, clients, backend.ways)
	}
	t.Run("no endpoints", func(t *testing.T) { b.refused(t) })
	t.Run("loadBalancerSourceRanges", func(t *testing.T) { b.limited(t, "pods", "8", 30010) })
	t.Run("further", func(t *testing.T) { b.further(t) })
	t.Run("externalTrafficPolicy Local", func(t *testing.T) { b.local(t) })
}

// outside returns the addresses of the client outside, one in each family.
func (b bed) outside() (out []netip.Addr) {
	for _, p := range (underlay.Families{DualStack: true}).Outside() {
		out = append(out, p.Addr())
	}
	return out
}

// nodePorts returns a port at the nodes' addresses.
func (b bed) nodePorts(port uint16) (out []netip.AddrPort) {
	for _, n := range b.Nodes {
		for _, p := range n.Config.Addrs {
			out = append(out, netip.AddrPortFrom(p.Addr(), port))
		}
	}
	return out
}

// expect asks in every protocol until the answer contains one of these strings.
func (c client) expect(t *testing.T, to netip.AddrPort, want ...string) {
	t.Helper()
	c.expectOver(t, machines.Protocols(t), to, want...)
}

func (c client) expectOver(t *testing.T, protocols []string, to netip.AddrPort, want ...string) {
	t.Helper()
	for _, protocol := range protocols {
		machines.Eventually(t, fmt.Sprintf("%s asks %s over %s", c.name, to, protocol), func(ctx context.Context) string {
			got := c.ask(ctx, protocol, to)
			if slices.ContainsFunc(want, func(w string) bool { return strings.Contains(got, w) }) {
				return ""
			}
			return fmt.Sprintf("%q, want one of %q", got, want)
		})
	}
}

// noAnswer lists the errors for dropped packets. The last one is the error for a datagram that the host itself sends
// (nft(8), verdict drop in an output hook).
func noAnswer() []string {
	return []string{"deadline exceeded", "i/o timeout", "operation not permitted"}
}

// refusals lists the errors of refused connections. The last one is SCTP's.
func refusals() []string { return []string{"connection refused", "aborted by the other side"} }

// refused checks that a service without endpoints refuses connections at once.
func (b bed) refused(t *testing.T) {
	for _, to := range b.nodePorts(30011) {
		onMachine("outside", b.Outside).expect(t, to, refusals()...)
		onMachine("n3", b.Nodes[2].Member).expect(t, to, refusals()...)
	}
}

// limited checks that only the sources in loadBalancerSourceRanges get an answer at the load balancer's addresses, and
// that everybody does at the node ports.
func (b bed) limited(t *testing.T, service, last string, nodePort uint16) {
	var outside []string
	for _, a := range b.outside() {
		outside = append(outside, netip.PrefixFrom(a, a.BitLen()).String())
	}
	balanced := []netip.AddrPort{netip.MustParseAddrPort("192.0.2." + last + ":8080"),
		netip.MustParseAddrPort("[2001:db8:2::" + last + "]:8080")}
	set := func(ranges ...string) {
		raw, err := json.Marshal(map[string]any{"spec": map[string]any{"loadBalancerSourceRanges": ranges}})
		if err != nil {
			t.Fatal(err)
		}
		machines.Kubectl(t, b.Cluster, "", "patch", "service", service, "--type=merge", "-p", string(raw))
	}
	from, node := onMachine("outside", b.Outside), onMachine("n3", b.Nodes[2].Member)
	set(outside...)
	for i, to := range balanced {
		node.expect(t, to, noAnswer()...)
		from.expect(t, to, "backend ")
		from.expect(t, b.nodePorts(nodePort)[2+i], "backend ")
	}
	set("198.51.100.0/24", "2001:db8:77::/48")
	for i, to := range balanced {
		from.expect(t, to, noAnswer()...)
		from.expect(t, b.nodePorts(nodePort)[2+i], "backend ")
	}
	set()
	for _, to := range balanced {
		from.expect(t, to, "backend ")
		node.expect(t, to, "backend ")
	}
}
