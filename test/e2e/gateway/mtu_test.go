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
