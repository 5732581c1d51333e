package nodeport

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// Services with externalTrafficPolicy Local. There are pods on n1, which is the gateway, and on n2. On the host network
// there is a backend on n2, and one with a service of its own on n1.
const localWorkload = `
---
apiVersion: v1
kind: Service
metadata: {name: local-pods}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  healthCheckNodePort: 30030
  ipFamilyPolicy: RequireDualStack
  selector: {local: pod}
  externalIPs: [192.0.2.11, "2001:db8:2::11"]
  ports:
  - {name: t, port: 8080, nodePort: 30012}
  - {name: u, protocol: UDP, port: 8080, nodePort: 30012}
  - {name: s, protocol: SCTP, port: 8080, nodePort: 30012}
---
apiVersion: v1
kind: Service
metadata: {name: local-hosts}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  ipFamilyPolicy: RequireDualStack
  selector: {local: host}
  externalIPs: [192.0.2.13, "2001:db8:2::13"]
  ports:
  - {name: t, port: 9090, nodePort: 30022}
  - {name: u, protocol: UDP, port: 9090, nodePort: 30022}
  - {name: s, protocol: SCTP, port: 9090, nodePort: 30022}
---
apiVersion: v1
kind: Service
metadata: {name: local-gateway}
spec:
  type: NodePort
  externalTrafficPolicy: Local
  sessionAffinity: ClientIP
  ipFamilyPolicy: RequireDualStack
  selector: {local: gateway-host}
  ports:
  - {name: t, port: 9090, nodePort: 30023}
  - {name: u, protocol: UDP, port: 9090, nodePort: 30023}
  - {name: s, protocol: SCTP, port: 9090, nodePort: 30023}
---
` + podHead + `
metadata: {name: gateway-backend, labels: {local: pod}}
spec: {nodeName: n1, ` + podBody + `
---
` + podHead + `
metadata: {name: gateway-host, labels: {local: gateway-host}}
spec: {nodeName: n1, hostNetwork: true, ` + podBody + `
`

// leaving is a pod of local-pods on n3 that keeps serving during its termination grace period: its first process, a
// shell, ignores the signal.
const leaving = podHead + `
metadata: {name: leaving, labels: {local: pod}}
spec: {nodeName: n3, terminationGracePeriodSeconds: 600, ` + podEcho + `/bin/echo-server serve 8080 & wait"]}]}
`

// localWay is an address of a service with policy Local: the node at which it arrives, and the backend there, "" for
// none.
type localWay struct {
	way
	node    int
	address bool // an external or load balancer's address, which all switches and nodes know
	who     string
}

// local checks externalTrafficPolicy Local: which clients are served, by which backend, and with which client address.
// Clients from outside are served by the endpoint of the node that they use, which sees their own address, or not at
// all.
func (b bed) local(t *testing.T) {
	tb := &table{cells: map[[3]string]string{}}
	backends := []struct {
		name string
		ways []localWay
	}{
		{"Local, pods on the gateway and on the backend's node", b.localWays(b.ways(30012, 8080, "11", "12"),
			"gateway-backend", "backend", "")},
		{"Local, host network", b.localWays(b.ways(30022, 9090, "13", "14"), "", "n2", "")},
	}
	clients := b.clients()
	askAtOnce(t, clients, func(t *testing.T, c client) {
		for _, backend := range backends {
			for _, w := range backend.ways {
				tb.fillLocal(t, b, c, w, backend.name)
			}
		}
	})
	for _, backend := range backends {
		var ways []way
		for _, w := range backend.ways {
			ways = append(ways, w.way)
		}
		tb.print(t, backend.name, clients, ways)
	}
	t.Run("host network of the gateway", func(t *testing.T) { b.localGateway(t) })
	t.Run("loadBalancerSourceRanges", func(t *testing.T) {
		b.route(t, "12", 1)
		b.limited(t, "local-pods", "12", 30012)
	})
	t.Run("terminating", func(t *testing.T) { b.terminating(t) })
	t.Run("without gateways", func(t *testing.T) { b.withoutGateways(t) })
}

// localWays returns the addresses at each node, with the backend there.
func (b bed) localWays(ways []way, who ...string) (out []localWay) {
	for i, w := range ways {
		node := map[int]int{3: 1, 4: 2}[i] // routes: the external IP to n2, the load balancer's to n3
		if i < 3 {
			node = i
		}
		out = append(out, localWay{w, node + 1, i >= 3, who[node]})
	}
	return out
}

// inside reports whether a client counts as inside the cluster, so that every endpoint serves it: at addresses, and,
// for a node or a pod of the gateway, at the ports of its own node. Other pods reach their own node through the
// gateway.
func (w localWay) inside(c client) bool {
	switch {
	case c.node == 0:
		return false
	case w.address:
		return true
	case c.pod:
		return w.node == 1 && c.node == 1
	}
	return w.node == c.node
}

// fillLocal asks in every protocol and family. A cell has the server and the client address that it sees.
func (tb *table) fillLocal(t *testing.T, b bed, c client, w localWay, backend string) {
	for _, protocol := range machines.Protocols(t) {
		for _, a := range w.addrs {
			to, cell := netip.AddrPortFrom(a, w.port), ""
			machines.Eventually(t, fmt.Sprintf("%s asks %s over %s", c.name, to, protocol), func(ctx context.Context) string {
				got := c.ask(ctx, protocol, to)
				who, from, _ := strings.Cut(got, " ")
				source, err := netip.ParseAddrPort(from)
				switch {
				case !w.inside(c) && w.who == "":
					if !isNoAnswer(got) {
						return fmt.Sprintf("%q, want no answer", got)
					}
					cell = "dropped"
					return ""
				case err != nil || !w.inside(c) && who != w.who:
					return fmt.Sprintf("%q, want %s to answer", got, w.who)
				}
				cell = b.names[source.Addr().Unmap()]
				if cell == "" {
					return fmt.Sprintf("it is seen from %s, which is nobody's", source)
				}
				if own := fmt.Sprint("n", c.node); !c.pod && !w.address && w.who == "" && cell != own {
					return fmt.Sprintf("it is seen as %s, want %s, as it is led to another node", cell, own)
				}
				if w.inside(c) {
					cell = "any; " + cell
				} else {
					cell = "its own; " + cell
				}
				return ""
			})
			tb.set(t, backend, w.name, c.name, cell)
		}
	}
}

func isNoAnswer(got string) bool {
	for _, n := range noAnswer() {
		if strings.Contains(got, n) {
			return true
		}
	}
	return false
}

// localGateway asks the backend from outside at the gateway's own addresses.
func (b bed) localGateway(t *testing.T) {
	for _, to := range b.nodePorts(30023)[:2] {
		b.keeps(t, to, "n1")
	}
}

// keeps checks that the backend answers the host outside, and sees its address.
func (b bed) keeps(t *testing.T, to netip.AddrPort, who string) {
	t.Helper()
	client := b.outside()[0]
	if to.Addr().Is6() {
		client = b.outside()[1]
	}
	onMachine("outside", b.Outside).expect(t, to, fmt.Sprintf("%s %s:", who, client), fmt.Sprintf("%s [%s]:", who, client))
}

// withoutGateways makes n1 an ordinary node: pods, and the answers, then use the egress path of their own nodes.
func (b bed) withoutGateways(t *testing.T) {
	machines.MakeGateway(t, b.Cluster, b.Nodes[0], false)
	machines.Eventually(t, "no policy leads answers back", func(ctx context.Context) string {
		out, err := b.NBCtl(ctx, "--bare", "--columns=match", "find", "Logical_Router_Policy", "priority=1000")
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(out)
	})
	for port, who := range map[uint16][]string{30012: {"gateway-backend", "backend", ""}, 30022: {"", "n2", ""},
		30023: {"n1", "", ""}} {
		for i, to := range b.nodePorts(port) {
			if name := who[i/2]; name != "" {
				b.keeps(t, to, name)
			} else {
				onMachine("outside", b.Outside).expect(t, to, noAnswer()...)
			}
		}
	}
}

// terminating ends the last endpoint of a node. While it still serves, it gets clients, although the load balancer is
// told to stop.
func (b bed) terminating(t *testing.T) {
	machines.Kubectl(t, b.Cluster, leaving, "apply", "-f", "-")
	machines.Kubectl(t, b.Cluster, "", "wait", "--for=condition=Ready", "pod/leaving", "--timeout=60s")
	outside := onMachine("outside", b.Outside)
	health := func(node int, want string) {
		t.Helper()
		for _, p := range b.Nodes[node].Config.Addrs {
			to := netip.AddrPortFrom(p.Addr(), 30030)
			machines.Eventually(t, fmt.Sprintf("health at %s", to), func(ctx context.Context) string {
				if got := outside.ask(ctx, "tcp", to); got != want {
					return fmt.Sprintf("%q, want %q", got, want)
				}
				return ""
			})
		}
	}
	said := func(endpoints int) string {
		return fmt.Sprintf(`{"service":{"namespace":"default","name":"local-pods"},"localEndpoints":%d,`+
			`"serviceProxyHealthy":true}`, endpoints)
	}
	for node := range b.Nodes {
		health(node, said(1))
	}
	ports := b.nodePorts(30012)[4:]
	for _, to := range ports {
		outside.expect(t, to, "leaving ")
	}
	machines.Kubectl(t, b.Cluster, "", "delete", "pod", "leaving", "--wait=false")
	health(2, said(0))
	health(1, said(1))
	for _, to := range ports {
		outside.expect(t, to, "leaving ")
	}
	machines.Kubectl(t, b.Cluster, "", "delete", "pod", "leaving", "--grace-period=0", "--force", "--wait=true")
	for _, to := range ports {
		outside.expect(t, to, noAnswer()...)
	}
}
