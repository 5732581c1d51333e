package policy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// The datagrams of TestFragments. A large one leaves its pod in three packets.
const (
	smallDatagram = 100
	largeDatagram = 4000
	fragmented    = 20 // of each size, to each address and port
)

// A datagram that is larger than the MTU arrives where a rule allows its port, if OVN finds ports in connection
// tracking (--acl-ct-translation), and not at another port. An OVN that cannot loses it, as docs/features/policy.md
// says. A ClusterNetworkPolicy that denies the port denies all fragments, too: else whoever splits a datagram so that
// its port is in none of them would get around it.
func TestFragments(t *testing.T) {
	b := up(t, "fragments", "--acl-ct-translation")
	udp, port := corev1.ProtocolUDP, intstr.FromInt32(lowPort)
	b.makePolicy(t, shop, "one-port", networkingv1.NetworkPolicySpec{PodSelector: selects("app", "server"),
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: &udp, Port: &port}}}}})
	server := serverPod(shop, "server", home, map[string]string{"app": "server"})
	server.Spec.Containers = server.Spec.Containers[1:] // lowPort is for the test's own socket
	server.Spec.Containers[0].Args = []string{"1"}
	b.makePod(t, server)
	b.makePod(t, serverPod(shop, "client", away, nil))
	for _, p := range []string{"server", "client"} {
		b.awaitPod(t, shop, p)
	}
	to, from := b.inside(t, shop, "server", home), b.inside(t, shop, "client", away)
	system, err := sandbox.Provide(t.Context(), b.Options)
	must(t, err)
	large := 0
	if !system.Release.Before(sandbox.Release{25, 3, 3}) {
		large = fragmented
	}
	for _, ip := range b.pods[shop+"/server"] {
		// The first packets between two nodes may be lost, so this may take a second attempt.
		machines.Eventually(t, "datagrams arrive at the port of the rule", func(context.Context) string {
			have := arrived(t, from, to, netip.AddrPortFrom(ip, lowPort), fragmented+large)
			if have[smallDatagram] == fragmented && have[largeDatagram] == large {
				return ""
			}
			return fmt.Sprintf("%s: %v by size, want %d small and %d large ones", ip, have, fragmented, large)
		})
		if have := arrived(t, from, to, netip.AddrPortFrom(ip, highPort), 0); len(have) > 0 {
			t.Errorf("%s: at another port %v by size arrived, want none", ip, have)
		}
	}
	if n := fragments(t, to); (n > 0) != (large > 0) {
		t.Errorf("%d fragments arrived, and %d large datagrams: the count of the pod's kernel shows nothing", n, large)
	}
	b.denyFragments(t, from, to)
}

// denyFragments denies the port that a NetworkPolicy allows: neither a datagram nor a fragment of one reaches the pod.
func (b *bed) denyFragments(t *testing.T, from, to machines.Namespace) {
	t.Helper()
	machines.InstallClusterPolicies(t, b.Cluster)
	machines.Kubectl(t, b.Cluster, clusterPolicy("no-port", "Admin", 1,
		"{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: server}}}}", fmt.Sprintf("ingress: [{action: Deny, "+
			"from: [{namespaces: {}}], protocols: [{udp: {destinationPort: {number: %d}}}]}]", lowPort)), "apply", "-f", "-")
	b.awaitRows(t, "no-port", true)
	machines.FlowsInSync(t, b.Cluster)
	for _, ip := range b.pods[shop+"/server"] {
		before := fragments(t, to)
		if have := arrived(t, from, to, netip.AddrPortFrom(ip, lowPort), 0); len(have) > 0 {
			t.Errorf("%s: at the denied port %v by size arrived, want none", ip, have)
		}
		if now := fragments(t, to); now != before {
			t.Errorf("%s: %d fragments arrived, want none", ip, now-before)
		}
	}
}

// fragments counts the fragments that a pod has received, of both address families (proc(5), /proc/net/snmp).
func fragments(t *testing.T, in machines.Namespace) (n int) {
	t.Helper()
	must(t, in.Within(func() error {
		v4, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		v6, err := os.ReadFile("/proc/thread-self/net/snmp6")
		if err != nil {
			return err
		}
		lines := strings.Split(string(v4), "\n") // names, and below them values
		values := strings.Fields(lines[1])
		_, after, _ := strings.Cut(string(v6), "Ip6ReasmReqds")
		v4Count := values[slices.Index(strings.Fields(lines[0]), "ReasmReqds")]
		for _, value := range []string{v4Count, strings.Fields(after)[0]} {
			count, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			n += count
		}
		return nil
	}))
	return n
}

// arrived sends datagrams of both sizes, and counts those that arrive. It waits for as many as are wanted, and then a
// second for more.
func arrived(t *testing.T, from, to machines.Namespace, at netip.AddrPort, want int) map[int]int {
	t.Helper()
	var server, client net.PacketConn
	must(t, to.Within(func() (err error) {
		server, err = net.ListenPacket("udp", netip.AddrPortFrom(at.Addr(), at.Port()).String())
		return err
	}))
	defer server.Close()
	must(t, from.Within(func() (err error) {
		client, err = net.ListenPacket("udp", ":0")
		return err
	}))
	defer client.Close()
	must(t, sendBoth(client, net.UDPAddrFromAddrPort(at)))
	have, buf := map[int]int{}, make([]byte, 65536)
	must(t, server.SetReadDeadline(time.Now().Add(5*time.Second)))
	for total := 0; ; total++ {
		if total == want {
			must(t, server.SetReadDeadline(time.Now().Add(time.Second)))
		}
		n, _, err := server.ReadFrom(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return have
		}
		must(t, err)
		have[n]++
	}
}

// sendBoth sends datagrams of both sizes in turn.
func sendBoth(c net.PacketConn, to net.Addr) error {
	for range fragmented {
		for _, size := range []int{smallDatagram, largeDatagram} {
			if _, err := c.WriteTo(make([]byte, size), to); err != nil {
				return err
			}
		}
	}
	return nil
}
