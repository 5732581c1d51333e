package gateway

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// The sandbox's pods have an MTU of 1400, its NICs have 1500.
const (
	podMTU    = 1400
	smallMTU  = 1300
	forPods   = 1450 - 28 // UDP over IPv4, a little more over IPv6: too large for pods, but not for NICs
	forSmall  = 1350 - 28 // too large for the small MTU, but not for pods
	headroom6 = 20        // an IPv6 header is that much longer
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
	defer b.setMTU(n, 1500)
	if out, err := b.Kubectl(b.t.Context(), "exec", "a", "--", machines.EchoInPod, "mirror",
		netip.AddrPortFrom(families().Outside()[0].Addr(), 8080).String(), "3",
		fmt.Sprint(forSmall)).CombinedOutput(); err == nil {
		b.t.Errorf("packets are not dropped that should be, so that nothing is proved here: %s", out)
	}
	machines.Run(b.t, n, "ovs-vsctl", "set", "interface", node.PhysicalBridge, fmt.Sprintf("mtu_request=%d", smallMTU))
	defer machines.Run(b.t, n, "ovs-vsctl", "clear", "interface", node.PhysicalBridge, "mtu_request")
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
  externalTrafficPolicy: %s
  ports: [{protocol: UDP, port: 80, targetPort: 8080, nodePort: %d}]
`

// mtuOfService has a client outside send datagrams to a Service that are too large for its pods. The client learns the
// MTU. Those of exactly that size are all answered, whichever pod they go to. Older releases of OVN lose larger ones: see
// package services about fragments.
func (b bed) mtuOfService(n *node.Node) {
	b.t.Helper()
	outside := func(argv ...string) string {
		b.t.Helper()
		out, err := b.Outside.Run(b.t.Context(), argv...)
		if err != nil {
			b.t.Fatalf("%q on the host outside: %v: %s", argv, err, out)
		}
		return out
	}
	for _, policy := range []string{"Cluster", "Local"} {
		machines.Kubectl(b.t, b.Cluster, fmt.Sprintf(both, policy, bothPort), "apply", "-f", "-")
		for i, p := range addrs(n) {
			outside("ip", "route", "flush", "cache")
			outside("ip", "-6", "route", "flush", "cache")
			mirror := func(ctx context.Context, size, times int) (string, error) {
				return b.Outside.Run(ctx, machines.Echo, "mirror", netip.AddrPortFrom(p.Addr(), bothPort).String(),
					fmt.Sprint(times), fmt.Sprint(size-i*headroom6))
			}
			machines.Eventually(b.t, fmt.Sprintf("the client learns the MTU to %s, policy %s", p.Addr(), policy),
				func(ctx context.Context) string {
					_, _ = mirror(ctx, forPods, 1) // lost, or sent again in fragments
					out := outside("ip", "route", "get", p.Addr().String())
					if !strings.Contains(out, fmt.Sprintf("mtu %d", podMTU)) {
						return "got " + out
					}
					return ""
				})
			const times = 20
			out, err := mirror(b.t.Context(), podMTU-28, times)
			if came := strings.Count(out, " bytes\n"); err != nil || came != times {
				b.t.Errorf("to %s, policy %s: %d of %d datagrams came back: %v: %s", p.Addr(), policy, came, times, err, out)
			}
		}
	}
	machines.Kubectl(b.t, b.Cluster, "", "delete", "service", "both")
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
