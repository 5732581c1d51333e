package gateway

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// The sandbox's pods have an MTU of 1400, its NICs have 1500.
const (
	podMTU    = 1400
	nicMTU    = 1500
	smallMTU  = 1300
	headroom6 = 20 // an IPv6 header is that much longer

	udpHeaders = 28                // over IPv4
	forPods    = 1450 - udpHeaders // too large for pods, but not for NICs
	forSmall   = 1350 - udpHeaders // too large for the small MTU, but not for pods
)

// mirror sends datagrams from a pod to the host outside, which sends them back, until one returns complete.
func (b bed) mirror(pod string, to netip.Addr, size int) {
	b.t.Helper()
	machines.Eventually(b.t, fmt.Sprintf("pod %s exchanges %d bytes with %s", pod, size, to),
		func(ctx context.Context) string {
			out, err := b.Kubectl(ctx, "exec", pod, "--", machines.EchoInPod, "mirror", netip.AddrPortFrom(to, 8080).String(),
				"2", fmt.Sprint(size)).CombinedOutput()
			if !strings.Contains(string(out), fmt.Sprintf("%d bytes\n", size)) {
				return fmt.Sprintf("%v: %s", err, out)
			}
			return ""
		})
}

// mtu checks that senders of packets that are too large for the network behind a gateway learn its MTU and send smaller
// packets.
func (b bed) mtu(n *node.Node) {
	b.t.Helper()
	for i, outside := range families().Outside() {
		for _, pod := range []string{"a", "b"} {
			b.mirror(pod, outside.Addr(), forPods)
		}
		ip := addrs(n)[i].Addr().String()
		out, err := b.Outside.Run(b.t.Context(), "ip", "route", "get", ip)
		if err != nil || !strings.Contains(out, fmt.Sprintf("mtu %d", podMTU)) {
			b.t.Errorf("the host outside knows of no MTU of %d on the way to %s: %v %s", podMTU, ip, err, out)
		}
	}
	// The external network accepts smaller packets than pods send: the NIC of the gateway's switch silently drops larger
	// ones.
	b.setMTU(n, smallMTU)
	defer b.setMTU(n, nicMTU)
	if out, err := b.Kubectl(b.t.Context(), "exec", "a", "--", machines.EchoInPod, "mirror",
		netip.AddrPortFrom(families().Outside()[0].Addr(), 8080).String(), "3",
		fmt.Sprint(forSmall)).CombinedOutput(); err == nil {
		b.t.Errorf("packets are not dropped that should be, so that nothing is proved here: %s", out)
	}
	b.requestMTU(n, smallMTU)
	defer b.requestMTU(n, nicMTU)
	for i, outside := range families().Outside() {
		b.mirror("a", outside.Addr(), forSmall-i*headroom6)
	}
}

// bothPort is the node port of a Service of the pods a and b.
const bothPort = 30909

const both = `
apiVersion: v1
kind: Service
metadata: {name: both}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  selector: {app: both}
  externalTrafficPolicy: %[1]s
  ports: [{protocol: UDP, port: 80, targetPort: 8080, nodePort: %[2]d}]
`

// mtuOfService has a client outside send datagrams to a Service that are too large for its pods. The client learns the
// MTU. Those of exactly that size are all answered, whichever pod they go to. Older releases of OVN lose larger ones:
// see package services about fragments.
func (b bed) mtuOfService(n *node.Node) {
	b.t.Helper()
	defer machines.Kubectl(b.t, b.Cluster, "", "delete", "service", "both")
	for policy, pods := range map[string][]string{"Cluster": {"a", "b"}, "Local": {"a"}} {
		machines.Kubectl(b.t, b.Cluster, fmt.Sprintf(both, policy, bothPort), "apply", "-f", "-")
		for i, p := range addrs(n) {
			b.answeredBy(p.Addr(), pods)
			b.learns(p.Addr(), forPods-i*headroom6)
			b.returns(p.Addr(), podMTU-udpHeaders-i*headroom6)
		}
	}
}

// answeredBy waits until all of these pods answer the client, and no others.
func (b bed) answeredBy(to netip.Addr, pods []string) {
	b.t.Helper()
	machines.Eventually(b.t, fmt.Sprintf("%v answer at %s", pods, to), func(ctx context.Context) string {
		out, err := b.Outside.Run(ctx, machines.Echo, "ask", "udp", netip.AddrPortFrom(to, bothPort).String(), "16", "1s")
		answers := map[string]bool{}
		for line := range strings.Lines(out) {
			name, _, _ := strings.Cut(line, " ")
			answers[name] = true
		}
		if have := slices.Sorted(maps.Keys(answers)); err != nil || !slices.Equal(have, pods) {
			return fmt.Sprintf("%v did: %v: %s", have, err, out)
		}
		return ""
	})
}

// forget has the host outside and the pods forget the MTUs that they have learned: pods would send fragments.
func (b bed) forget() {
	b.t.Helper()
	for _, family := range []string{"-4", "-6"} {
		flush := []string{"ip", family, "route", "flush", "cache"}
		if out, err := b.Outside.Run(b.t.Context(), flush...); err != nil {
			b.t.Fatalf("%q on the host outside: %v: %s", flush, err, out)
		}
		for _, pod := range []string{"a", "b"} {
			cmd, err := b.PodNetworkCommand(b.t.Context(), "default", pod, flush...)
			if err != nil {
				b.t.Fatal(err)
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				b.t.Fatalf("%q in pod %s: %v: %s", flush, pod, err, out)
			}
		}
	}
}

// learns has the client send datagrams until it knows the MTU of pods on the way to a Service.
func (b bed) learns(to netip.Addr, size int) {
	b.t.Helper()
	b.forget()
	out, err := b.Outside.Run(b.t.Context(), "ip", "route", "get", to.String())
	if err != nil || strings.Contains(out, "mtu") {
		b.t.Errorf("the client still knows an MTU on the way to %s: %v: %s", to, err, out)
	}
	machines.Eventually(b.t, "the client learns the MTU to "+to.String(), func(ctx context.Context) string {
		_, _ = b.Outside.Run(ctx, machines.Echo, "mirror", netip.AddrPortFrom(to, bothPort).String(), "1",
			fmt.Sprint(size)) // lost, or sent again in fragments
		out, err := b.Outside.Run(ctx, "ip", "route", "get", to.String())
		if err != nil || !strings.Contains(out, fmt.Sprintf("mtu %d", podMTU)) {
			return fmt.Sprintf("%v: got %s", err, out)
		}
		return ""
	})
}

// returns has the client send datagrams to a Service, which all come back.
func (b bed) returns(to netip.Addr, size int) {
	b.t.Helper()
	const times = 20
	machines.Eventually(b.t, fmt.Sprintf("datagrams of %d bytes return from %s", size, to),
		func(ctx context.Context) string {
			out, err := b.Outside.Run(ctx, machines.Echo, "mirror", netip.AddrPortFrom(to, bothPort).String(),
				fmt.Sprint(times), fmt.Sprint(size))
			if came := strings.Count(out, " bytes\n"); err != nil || came != times {
				return fmt.Sprintf("%d of %d did: %v: %s", came, times, err, out)
			}
			return ""
		})
}

// requestMTU sets the MTU of a gateway's bridge, and waits until the gateway router tells it.
func (b bed) requestMTU(n *node.Node, mtu int) {
	b.t.Helper()
	machines.Run(b.t, n, "ovs-vsctl", "set", "interface", node.PhysicalBridge, fmt.Sprintf("mtu_request=%d", mtu))
	machines.Eventually(b.t, fmt.Sprintf("gateway %s tells MTU %d", n.Spec.Name, mtu), func(ctx context.Context) string {
		out, err := b.NBCtl(ctx, "--bare", "--columns=options", "list", "Logical_Router_Port", "rtoe-GR_"+n.Spec.Name)
		if err != nil || !strings.Contains(out, fmt.Sprintf("gateway_mtu=%d", mtu)) {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
}

// setMTU sets the MTU of the port that a node is connected to.
func (b bed) setMTU(n *node.Node, mtu int) {
	b.t.Helper()
	h, err := b.Control.Netlink()
	if err != nil {
		b.t.Fatal(err)
	}
	defer h.Close()
	link, err := h.LinkByName("ul-" + n.Spec.Name)
	if err == nil {
		err = h.LinkSetMTU(link, mtu)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
