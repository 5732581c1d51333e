package networks

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// tryLocal asks a tenant's service of externalTrafficPolicy Local, whose one endpoint is the tenant's first pod on n1.
// Then the second pod on n2 takes its place for a while.
func tryLocal(t *testing.T, c *sandbox.Cluster, ns string, nodePort uint16) {
	other := map[string]string{"red": "green", "green": "blue", "blue": "red"}[ns]
	localAt(t, c, ns, nodePort, 0)
	for k, a := range c.Nodes[0].Config.Addrs {
		to := netip.AddrPortFrom(a.Addr(), nodePort)
		for _, protocol := range []string{"tcp", "udp"} {
			localAnswer(t, "node n1", to, ns+"-1 ", func(ctx context.Context) string {
				return machines.AskOn(ctx, c.Nodes[0].Member, protocol, to)
			})
			own := netip.AddrPortFrom(c.Nodes[1].Config.Addrs[k].Addr(), nodePort)
			localAnswer(t, "node n2", own, ns+"-1 "+beginning(own.Addr()), func(ctx context.Context) string {
				return machines.AskOn(ctx, c.Nodes[1].Member, protocol, own)
			})
			for _, pod := range [][2]string{{"kube-system", "dns-1"}, {"kube-system", "dns-2"}, {other, other + "-1"},
				{other, other + "-2"}, {ns, ns + "-1"}, {ns, ns + "-3"}} {
				localAnswer(t, pod[1], to, ns+"-1 ", func(ctx context.Context) string {
					return machines.AskFrom(ctx, c, pod[0], pod[1], protocol, to)
				})
			}
			clusterIP := clusterIPs(t, c, ns, "local")[k]
			localAnswer(t, "dns-2", clusterIP, ns+"-1 ", func(ctx context.Context) string {
				return machines.AskFrom(ctx, c, "kube-system", "dns-2", protocol, clusterIP)
			})
		}
	}
	localAtExternalIPs(t, c, ns, int(nodePort)-30200)
	tryPretenders(t, c, ns, nodePort+localPorts)
	tryLocalPolicy(t, c, ns, nodePort)
	for i, pod := range []string{ns + "-1", ns + "-2"} {
		machines.Kubectl(t, c, "", "label", "pod", "-n", ns, "--overwrite", pod, []string{"itself=no", "itself=yes"}[i])
	}
	localAt(t, c, ns, nodePort, 1)
	for i, pod := range []string{ns + "-1", ns + "-2"} {
		machines.Kubectl(t, c, "", "label", "pod", "-n", ns, "--overwrite", pod, []string{"itself=yes", "itself=no"}[i])
	}
	localAt(t, c, ns, nodePort, 0)
}

// localAt asks the service from outside at each node. The pod of the i-th node answers there, and sees the client's
// address. The other node has no endpoint, which is what a load balancer hears of it, too.
func localAt(t *testing.T, c *sandbox.Cluster, ns string, nodePort uint16, i int) {
	t.Helper()
	health := machines.Kubectl(t, c, "", "get", "service", "-n", ns, "local", "-o", "jsonpath={.spec.healthCheckNodePort}")
	for k, a := range c.Nodes[i].Config.Addrs {
		client := netip.MustParseAddr([]string{"203.0.113.10", "2001:db8:30::a"}[k])
		to, away := netip.AddrPortFrom(a.Addr(), nodePort), netip.AddrPortFrom(c.Nodes[1-i].Config.Addrs[k].Addr(), nodePort)
		for _, protocol := range []string{"tcp", "udp"} {
			localAnswer(t, "outside", to, fmt.Sprintf("%s-%d %s", ns, i+1, beginning(client)),
				func(ctx context.Context) string { return machines.AskOn(ctx, c.Outside, protocol, to) })
			machines.Eventually(t, "outside asks "+away.String(), func(ctx context.Context) string {
				if got := machines.AskOn(ctx, c.Outside, protocol, away); strings.HasPrefix(got, ns+"-") {
					return got + ", want no answer"
				}
				return ""
			})
		}
		for at, endpoints := range map[netip.Addr]int{to.Addr(): 1, away.Addr(): 0} {
			check := netip.MustParseAddrPort(net.JoinHostPort(at.String(), health))
			localAnswer(t, "outside", check, fmt.Sprintf(`{"service":{"namespace":%q,"name":"local"},"localEndpoints":%d,`,
				ns, endpoints), func(ctx context.Context) string { return machines.AskOn(ctx, c.Outside, "tcp", check) })
		}
	}
}

// beginning is what the text of an address and any port begins with.
func beginning(a netip.Addr) string {
	return strings.TrimSuffix(netip.AddrPortFrom(a, 0).String(), "0")
}

// localAnswer asks until the answer begins with a text.
func localAnswer(t *testing.T, who string, to netip.AddrPort, want string, ask func(context.Context) string) {
	t.Helper()
	machines.Eventually(t, who+" asks "+to.String(), func(ctx context.Context) string {
		if got := ask(ctx); !strings.HasPrefix(got, want) {
			return fmt.Sprintf("the answer is %q, want %q", got, want)
		}
		return ""
	})
}

// localAtExternalIPs asks the service from outside at external IPs, which the router outside sends to n1.
func localAtExternalIPs(t *testing.T, c *sandbox.Cluster, ns string, number int) {
	t.Helper()
	var addrs []netip.Addr
	for k, format := range []string{"192.0.2.%d", "2001:db8:2::%d"} {
		a := netip.MustParseAddr(fmt.Sprintf(format, 40+number))
		addrs = append(addrs, a)
		outsideRoute(t, c, a, c.Nodes[0].Config.Addrs[k].Addr())
	}
	machines.Kubectl(t, c, "", "patch", "service", "-n", ns, "local", "--patch",
		fmt.Sprintf(`{"spec":{"externalIPs":[%q,%q]}}`, addrs[0], addrs[1]))
	for k, a := range addrs {
		client := netip.MustParseAddr([]string{"203.0.113.10", "2001:db8:30::a"}[k])
		for _, protocol := range []string{"tcp", "udp"} {
			to := netip.AddrPortFrom(a, 80)
			localAnswer(t, "outside", to, ns+"-1 "+beginning(client), func(ctx context.Context) string {
				return machines.AskOn(ctx, c.Outside, protocol, to)
			})
		}
	}
}

// outsideRoute has the router outside send what is for an address to a machine.
func outsideRoute(t *testing.T, c *sandbox.Cluster, a, via netip.Addr) {
	t.Helper()
	if _, err := c.Control.Run(t.Context(), "ip", "route", "replace", a.String(), "via", via.String()); err != nil {
		t.Fatal(err)
	}
}

// tryPretenders sends datagrams from outside to a service of policy Local, with sources in the network's own ranges.
// None arrives: policies would take them for the network's pods. Those of another source do.
func tryPretenders(t *testing.T, c *sandbox.Cluster, ns string, nodePort uint16) {
	machines.Kubectl(t, c, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: counted, namespace: %s}
spec:
  type: NodePort
  externalTrafficPolicy: Local
  ipFamilyPolicy: RequireDualStack
  selector: {itself: "yes"}
  ports: [{port: 80, targetPort: 7777, protocol: UDP, nodePort: %d}]
`, ns, nodePort), "apply", "-f", "-")
	pod := machines.PodNamespace(t, c.Nodes[0], ns, ns+"-1")
	defer func() { _ = pod.Close() }()
	count, number := countPackets(t, pod, "ovn-udn1"), nodePort%10 // each tenant's senders have other addresses
	for k, outside := range []string{"203.0.113.10", "2001:db8:30::a"} {
		to := netip.AddrPortFrom(c.Nodes[0].Config.Addrs[k].Addr(), nodePort)
		send := func(source string) int {
			a := netip.MustParseAddr(source)
			outsideRoute(t, c, a, netip.MustParseAddr(outside))
			add := []string{"ip", "address", "replace", source, "dev", "lo"}
			if a.Is6() {
				add = append(add, "nodad") // the kernel looks for duplicates a moment later, on lo, too
			}
			if _, err := c.Outside.Run(t.Context(), add...); err != nil {
				t.Fatal(err)
			}
			err := c.Outside.Within(func() error {
				dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0))}
				conn, err := dialer.DialContext(t.Context(), "udp", to.String())
				if err != nil {
					return err
				}
				defer func() { _ = conn.Close() }()
				_, err = conn.Write([]byte("?"))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return count()
		}
		sent, arrived := 0, 0
		others := func(context.Context) string {
			sent++
			if arrived += send(fmt.Sprintf([]string{"198.51.100.%d", "2001:db8:99::%d"}[k], number)); arrived == 0 {
				return "no datagram arrives"
			}
			return ""
		}
		machines.Eventually(t, "datagrams to "+to.String(), others)
		sent, arrived = 0, count()
		arrived += send(fmt.Sprintf([]string{"10.77.9.%d", "fd77::9:%d"}[k], number))
		machines.Eventually(t, "datagrams to "+to.String(), others)
		if arrived > sent {
			t.Errorf("%d datagrams arrive at %s, want %d: none from the network's own ranges", arrived, to, sent)
		}
	}
}

// tryLocalPolicy has a policy about the endpoint, which admits the client outside by its own address, and no others.
func tryLocalPolicy(t *testing.T, c *sandbox.Cluster, ns string, nodePort uint16) {
	policy := fmt.Sprintf(`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: local-clients, namespace: %s}
spec:
  podSelector: {matchLabels: {itself: "yes"}}
  policyTypes: [Ingress]
  ingress: [{from: [{ipBlock: {cidr: 203.0.113.0/24}}, {ipBlock: {cidr: '2001:db8:30::/64'}}]}]
`, ns)
	machines.Kubectl(t, c, policy, "apply", "-f", "-")
	defer machines.Kubectl(t, c, "", "delete", "networkpolicy", "-n", ns, "local-clients")
	for k, to := range clusterIPs(t, c, ns, "local") {
		machines.Eventually(t, "dns-2 asks "+to.String(), func(ctx context.Context) string {
			if got := machines.AskFrom(ctx, c, "kube-system", "dns-2", "tcp", to); strings.HasPrefix(got, ns+"-") {
				return got + ", want no answer"
			}
			return ""
		})
		at := netip.AddrPortFrom(c.Nodes[0].Config.Addrs[k].Addr(), nodePort)
		localAnswer(t, "outside", at, ns+"-1 ", func(ctx context.Context) string {
			return machines.AskOn(ctx, c.Outside, []string{"tcp", "udp"}[k], at)
		})
	}
}
