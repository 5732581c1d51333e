package nodeport

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// Further addresses of n2: one at the NIC that it has, and one at a NIC of its own.
const (
	secondAddress = "198.18.0.2"
	otherNIC      = "198.18.0.3"
)

// furtherWorkload has services whose target ports have names, one of them without node ports, and one whose endpoint is
// a further address of a node.
const furtherWorkload = `
apiVersion: v1
kind: Service
metadata: {name: portless}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  allocateLoadBalancerNodePorts: false
  ipFamilyPolicy: RequireDualStack
  selector: {named: pod}
  ports: [{port: 8080, targetPort: web}]
---
apiVersion: v1
kind: Service
metadata: {name: named}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  selector: {named: pod}
  ports: [{port: 8080, targetPort: web, nodePort: 30040}]
---
apiVersion: v1
kind: Service
metadata: {name: named-local}
spec:
  type: NodePort
  externalTrafficPolicy: Local
  ipFamilyPolicy: RequireDualStack
  selector: {named: pod}
  ports: [{port: 8080, targetPort: web, nodePort: 30041}]
---
apiVersion: v1
kind: Service
metadata: {name: named-hosts}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  selector: {named: host}
  ports: [{port: 8080, targetPort: web, nodePort: 30042}]
---
apiVersion: v1
kind: Service
metadata: {name: elsewhere}
spec:
  clusterIP: 10.96.0.77
  ports: [{port: 8080, targetPort: 9090}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: elsewhere, labels: {kubernetes.io/service-name: elsewhere}}
addressType: IPv4
endpoints: [{addresses: [` + secondAddress + `]}]
ports: [{port: 9090, protocol: TCP}]
---
` + podHead + `
metadata: {name: named, labels: {named: pod}}
spec: {nodeName: n2, ` + podServe + `"8080"], ports: [{name: web, containerPort: 8080}]}]}
---
` + podHead + `
metadata: {name: named-host-1, labels: {named: host}}
spec: {nodeName: n1, hostNetwork: true, ` + podServe + `"9191"], ports: [{name: web, containerPort: 9191}]}]}
---
` + podHead + `
metadata: {name: named-host-3, labels: {named: host}}
spec: {nodeName: n3, hostNetwork: true, ` + podServe + `"9292"], ports: [{name: web, containerPort: 9292}]}]}
`

const podServe = `terminationGracePeriodSeconds: 0, containers: [{name: echo, image: "localhost/echo:1", ` +
	`imagePullPolicy: IfNotPresent, command: [/bin/echo-server, serve, `

// further asks at addresses that a node got later, and by names of ports.
func (b bed) further(t *testing.T) {
	machines.Kubectl(t, b.Cluster, furtherWorkload, "apply", "-f", "-")
	machines.Kubectl(t, b.Cluster, "", "wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
	setIngress(t, b.Cluster, "portless", "15")
	b.route(t, "15", 1)
	tcp := []string{"tcp"}
	outside, n2, n3 := onMachine("outside", b.Outside), b.Nodes[1], b.Nodes[2]
	t.Run("further addresses", func(t *testing.T) { b.furtherAddresses(t) })
	t.Run("without node ports", func(t *testing.T) {
		for i, a := range []string{"192.0.2.15", "2001:db8:2::15"} {
			to := netip.AddrPortFrom(netip.MustParseAddr(a), 8080)
			client := netip.AddrPortFrom(b.outside()[i], 0).String()
			outside.expectOver(t, tcp, to, "named "+strings.TrimSuffix(client, "0"))
		}
		b.route(t, "15", 2) // no endpoint is there
		for _, a := range []string{"192.0.2.15", "2001:db8:2::15"} {
			outside.expectOver(t, tcp, netip.AddrPortFrom(netip.MustParseAddr(a), 8080), noAnswer()...)
		}
	})
	t.Run("named ports", func(t *testing.T) {
		for f, p := range n2.Config.Addrs {
			for _, port := range []uint16{30040, 30041} {
				for _, c := range []client{outside, onMachine("n3", n3.Member)} {
					c.expectOver(t, tcp, netip.AddrPortFrom(p.Addr(), port), "named ")
				}
			}
			for _, who := range []string{"n1 ", "n3 "} {
				outside.expectOver(t, tcp, netip.AddrPortFrom(n2.Config.Addrs[f].Addr(), 30042), who)
			}
		}
	})
}

// furtherAddresses gives n2 two more addresses. Node ports answer there, and so does a service with such an endpoint.
func (b bed) furtherAddresses(t *testing.T) {
	n2 := b.Nodes[1]
	at := n2.Config.Addrs[0].Addr()
	machines.Run(t, n2, "bash", "-euc", fmt.Sprintf(`
nic=$(ip -br address | awk '$0 ~ " %[1]s/" {sub("@.*", "", $1); print $1}')
ip address add %[2]s/32 dev $nic
ip link add further type veth peer name further-end
ip link set further-end up
ip link set further up
ip address add %[3]s/32 dev further`, at, secondAddress, otherNIC))
	for _, a := range []string{secondAddress, otherNIC} {
		if out, err := b.Control.Run(t.Context(), "ip", "route", "replace", a, "via", at.String()); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, port := range []uint16{30010, 30012} { // policies Cluster and Local
			for _, c := range []client{onMachine("outside", b.Outside), onMachine("n3", b.Nodes[2].Member)} {
				c.expect(t, netip.AddrPortFrom(netip.MustParseAddr(a), port), "backend ")
			}
		}
	}
	for _, c := range b.clients() {
		if c.node > 0 {
			c.expectOver(t, []string{"tcp"}, netip.MustParseAddrPort("10.96.0.77:8080"), "n2 ")
		}
	}
}
