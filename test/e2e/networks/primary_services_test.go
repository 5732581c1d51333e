package networks

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// tenantServices are the services of a tenant: of two pods, one that keeps clients at a backend, one of the first pod
// alone, one without endpoints, one that is not served, one that everybody reaches, and one that keeps the addresses of
// clients from outside.
func tenantServices(ns string, nodePort int) string {
	const service = `
apiVersion: v1
kind: Service
metadata: {name: %s, namespace: %s}
spec:
  %s
  ipFamilyPolicy: RequireDualStack
  ports:
    - {name: tcp, port: 80, targetPort: 8080, protocol: TCP%[4]s}
    - {name: udp, port: 80, targetPort: 8080, protocol: UDP%[4]s}
---
`
	var out strings.Builder
	for _, s := range [][3]string{
		{"web", "selector: {app: web}", ""},
		{"sticky", "selector: {app: web}\n  sessionAffinity: ClientIP", ""},
		{"itself", `selector: {itself: "yes"}`, ""},
		{"empty", "selector: {app: none}", ""},
		{"near", "selector: {app: web}\n  internalTrafficPolicy: Local", ""},
		{"open", "selector: {app: web}\n  type: NodePort", fmt.Sprintf(", nodePort: %d", nodePort)},
		{"local", "selector: {itself: \"yes\"}\n  type: LoadBalancer\n  externalTrafficPolicy: Local",
			fmt.Sprintf(", nodePort: %d", nodePort+localPorts)},
	} {
		fmt.Fprintf(&out, service, s[0], ns, s[1], s[2])
	}
	return out.String()
}

// localPorts is what is added to the number of a tenant's node port for that of its service of policy Local.
const localPorts = 10

// clusterIPs is the ClusterIPs of a service, with its port.
func clusterIPs(t *testing.T, c *sandbox.Cluster, ns, service string) (out []netip.AddrPort) {
	t.Helper()
	text := machines.Kubectl(t, c, "", "get", "service", "-n", ns, service, "-o", "jsonpath={.spec.clusterIPs[*]}")
	for _, ip := range strings.Fields(text) {
		out = append(out, netip.AddrPortFrom(netip.MustParseAddr(ip), 80))
	}
	if len(out) != 2 {
		t.Fatalf("service %s/%s has the ClusterIPs %q, want two", ns, service, text)
	}
	return out
}

// tryServices makes services of a tenant. Its pods reach them, and nobody else does.
func tryServices(t *testing.T, c *sandbox.Cluster, ns string, nodePort int) {
	machines.Kubectl(t, c, tenantServices(ns, nodePort), "apply", "-f", "-")
	one, two, three := ns+"-1", ns+"-2", ns+"-3"
	for _, protocol := range []string{"tcp", "udp"} {
		for k := range 2 {
			for _, pod := range []string{one, two, three} {
				bothAnswer(t, c, ns, pod, protocol, clusterIPs(t, c, ns, "web")[k], k)
			}
			itself := clusterIPs(t, c, ns, "itself")[k]
			hairpin := []string{"169.254.169.5:", "[fd69::5]:"}[k]
			untilService(t, c, ns, one, protocol, itself, one+" "+hairpin)
			untilService(t, c, ns, two, protocol, itself, one+" ")
			sticks(t, c, ns, protocol, clusterIPs(t, c, ns, "sticky")[k])
		}
	}
	for _, to := range clusterIPs(t, c, ns, "empty") {
		untilService(t, c, ns, one, "tcp", to, "refused")
	}
	notServed(t, c, ns)
	nobodyElse(t, c, ns)
	everybody(t, c, ns, nodePort)
	tryLocal(t, c, ns, uint16(nodePort+localPorts))
	atExternalIPs(t, c, ns, nodePort-30200)
	tryKeptPort(t, c, ns, nodePort-30200)
	// An endpoint goes and comes back.
	machines.Kubectl(t, c, "", "label", "pod", "-n", ns, one, "app-")
	for _, to := range clusterIPs(t, c, ns, "web") {
		machines.Eventually(t, "only "+two+" is a backend", func(ctx context.Context) string {
			for range 10 {
				if got := machines.AskFrom(ctx, c, ns, three, "tcp", to); !strings.HasPrefix(got, two+" ") {
					return "got " + got
				}
			}
			return ""
		})
	}
	machines.Kubectl(t, c, "", "label", "pod", "-n", ns, one, "app=web")
}

// untilService asks until the answer contains a text.
func untilService(t *testing.T, c *sandbox.Cluster, ns, pod, protocol string, to netip.AddrPort, want string) {
	t.Helper()
	machines.Eventually(t, fmt.Sprintf("%s asks %s by %s", pod, to, protocol), func(ctx context.Context) string {
		if got := machines.AskFrom(ctx, c, ns, pod, protocol, to); !strings.Contains(got, want) {
			return fmt.Sprintf("the answer is %q, want %q", got, want)
		}
		return ""
	})
}

// bothAnswer asks until both backends have answered. They see the client's address in the network, except a client that
// reaches itself.
func bothAnswer(t *testing.T, c *sandbox.Cluster, ns, pod, protocol string, to netip.AddrPort, family int) {
	t.Helper()
	client := strings.TrimSuffix(netip.AddrPortFrom(on(t, c, ns, pod, "ovn-udn1")[family], 0).String(), "0")
	seen := map[string]bool{}
	machines.Eventually(t, fmt.Sprintf("%s asks %s by %s", pod, to, protocol), func(ctx context.Context) string {
		got := machines.AskFrom(ctx, c, ns, pod, protocol, to)
		who, source, _ := strings.Cut(got, " ")
		seen[who] = seen[who] || who == pod || strings.HasPrefix(source, client)
		if seen[ns+"-1"] && seen[ns+"-2"] {
			return ""
		}
		return fmt.Sprintf("answers by %v, the last %q: want both backends, which see %s", seen, got, client)
	})
	for who := range seen {
		if strings.Contains(who, "-") && !slices.Contains([]string{ns + "-1", ns + "-2"}, who) {
			t.Errorf("%s asks %s: %s answers", pod, to, who)
		}
	}
}

// sticks asks a service with session affinity often: one backend answers.
func sticks(t *testing.T, c *sandbox.Cluster, ns, protocol string, to netip.AddrPort) {
	t.Helper()
	pod := ns + "-3"
	untilService(t, c, ns, pod, protocol, to, ns+"-")
	first, _, _ := strings.Cut(machines.AskFrom(t.Context(), c, ns, pod, protocol, to), " ")
	for range 10 {
		if got, _, _ := strings.Cut(machines.AskFrom(t.Context(), c, ns, pod, protocol, to), " "); got != first {
			t.Errorf("%s asks %s by %s: %s answers after %s, want the same", pod, to, protocol, got, first)
		}
	}
}

// notServed checks what Events say of services, and that the one of internal policy Local does not answer its own pods.
func notServed(t *testing.T, c *sandbox.Cluster, ns string) {
	t.Helper()
	machines.Eventually(t, "Events of services", func(ctx context.Context) string {
		out, err := c.Kubectl(ctx, "get", "events", "-n", ns, "--field-selector", "reason=ServiceNotServed").Output()
		if err != nil || !strings.Contains(string(out), "internalTrafficPolicy") {
			return fmt.Sprintf("%v: %s: want internalTrafficPolicy", err, out)
		}
		return ""
	})
	noAnswer(t, c, ns+"-", clusterIPs(t, c, ns, "near"), inPod(ns, ns+"-1"))
}

// nobodyElse asks a tenant's service without node ports from another tenant, a pod of the cluster's own network and a
// node.
func nobodyElse(t *testing.T, c *sandbox.Cluster, ns string) {
	t.Helper()
	other := map[string]string{"red": "green", "green": "blue", "blue": "red"}[ns]
	noAnswer(t, c, ns+"-", clusterIPs(t, c, ns, "web"), inPod(other, other+"-1"), inPod("kube-system", "dns-1"),
		onMachine("node n1", c.Nodes[0].Member))
}

// tryKeptPort has a client send from one UDP port to the ClusterIPs of a service before there is one. It gets answers
// once the service is made.
func tryKeptPort(t *testing.T, c *sandbox.Cluster, ns string, number int) {
	addrs := []string{fmt.Sprintf("10.96.200.%d", number), fmt.Sprintf("fd02::c8%d", number)}
	pod := machines.PodNamespace(t, c.Nodes[0], ns, ns+"-1")
	defer func() { _ = pod.Close() }()
	var conns []net.Conn
	for _, a := range addrs {
		err := pod.Within(func() error {
			conn, err := net.DialTimeout("udp", net.JoinHostPort(a, "80"), time.Second)
			conns = append(conns, conn)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	asked := func(conn net.Conn) string {
		defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
		if _, err := conn.Write([]byte("?")); err != nil {
			return err.Error()
		}
		answer := make([]byte, 200)
		if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err.Error()
		}
		n, err := conn.Read(answer)
		if err != nil {
			return err.Error()
		}
		return string(answer[:n])
	}
	for i, conn := range conns {
		defer func() { _ = conn.Close() }()
		for range 3 {
			if got := asked(conn); strings.HasPrefix(got, ns+"-") {
				t.Errorf("%s answers before there is a service: %s", addrs[i], got)
			}
		}
	}
	machines.Kubectl(t, c, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: late, namespace: %s}
spec:
  selector: {app: web}
  ipFamilyPolicy: RequireDualStack
  clusterIP: %[2]q
  clusterIPs: [%[2]q, %[3]q]
  ports: [{port: 80, targetPort: 8080, protocol: UDP}]
`, ns, addrs[0], addrs[1]), "apply", "-f", "-")
	for i, conn := range conns {
		machines.Eventually(t, addrs[i]+" answers the same port", func(context.Context) string {
			if got := asked(conn); !strings.HasPrefix(got, ns+"-") {
				return fmt.Sprintf("the answer is %q", got)
			}
			return ""
		})
	}
}
