package networks

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// lead has a pod send what is for a range to a host of its own subnet.
func lead(t *testing.T, pod machines.Namespace, subnet string, via netip.Addr) {
	t.Helper()
	changeRoute(t, pod, subnet, func(r *netlink.Route) error {
		r.Gw = via.AsSlice()
		return netlink.RouteReplace(r)
	})
}

// changeRoute changes a route of a pod's eth0 to a range.
func changeRoute(t *testing.T, pod machines.Namespace, subnet string, change func(*netlink.Route) error) {
	t.Helper()
	_, dst, err := net.ParseCIDR(subnet)
	if err == nil {
		err = pod.Within(func() error {
			link, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return change(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst})
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tryLeavingByEth0 has pods send by eth0 what is for nodes and Services: their authors may change routes. Nobody
// answers.
func tryLeavingByEth0(t *testing.T, c *sandbox.Cluster) {
	n1, router := c.Nodes[0], map[bool]netip.Addr{}
	for _, s := range machines.Subnets(t, c, n1.Spec.Name) {
		router[s.Addr().Is4()] = s.Addr().Next()
	}
	ports := map[netip.Addr][]uint16{netip.MustParseAddr("10.96.0.10"): {53}, netip.MustParseAddr("fd02::a"): {53},
		netip.MustParseAddr("10.96.0.1"): {443}}
	for _, n := range c.Nodes {
		for _, a := range n.Config.Addrs {
			ports[a.Addr()] = []uint16{10250, ownNodePort} // the kubelet's, and a node port
		}
	}
	for ns, name := range map[string]string{"red": "red-1", "blue": "blue-1"} {
		pod := machines.PodNamespace(t, n1, ns, name)
		defer func() { _ = pod.Close() }()
		var to []netip.AddrPort
		for a, numbers := range ports {
			only := netip.PrefixFrom(a, a.BitLen()).String()
			lead(t, pod, only, router[a.Is4()])
			defer changeRoute(t, pod, only, netlink.RouteDel)
			for _, number := range numbers {
				to = append(to, netip.AddrPortFrom(a, number))
			}
		}
		if wrong := everyWay(t.Context(), c, []client{inPod(ns, name)}, to, answered(false)); wrong != "" {
			t.Error(wrong)
		}
	}
}

// within runs a function in the network namespace of a pod or a machine.
type within interface{ Within(do func() error) error }

// countPackets begins to count the packets to port 7777 that arrive at an interface. The function that it returns ends
// that.
func countPackets(t *testing.T, at within, link string) func() int {
	t.Helper()
	var fd int
	err := at.Within(func() (err error) { fd, err = machines.PacketSocket(link); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func() (n int) {
		frame := make([]byte, 2048)
		for {
			length, from, err := unix.Recvfrom(fd, frame, 0)
			switch {
			case errors.Is(err, unix.EAGAIN):
				return n
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				t.Fatal(err)
			}
			at, is := from.(*unix.SockaddrLinklayer)
			if is && at.Pkttype != unix.PACKET_OUTGOING && toPort(frame[:length], 7777) {
				n++
			}
		}
	}
}

// toPort is true for a frame with a TCP or UDP packet to a port, without options of IP.
func toPort(frame []byte, port uint16) bool {
	const ethernet, ipv4, ipv6 = 14, 20, 40
	for kind, header := range map[uint16]int{unix.ETH_P_IP: ipv4, unix.ETH_P_IPV6: ipv6} {
		if len(frame) >= ethernet+header+4 && binary.BigEndian.Uint16(frame[ethernet-2:]) == kind {
			return binary.BigEndian.Uint16(frame[ethernet+header+2:]) == port
		}
	}
	return false
}

// tryManagementPorts sends packets from pods of primary networks to the nodes' management ports, which see none. What a
// pod of the cluster's own network sends there does arrive.
func tryManagementPorts(t *testing.T, c *sandbox.Cluster) {
	for _, n := range c.Nodes {
		link := "k8s-" + n.Spec.Name
		arrive := func(ns, pod string) int {
			count := countPackets(t, n.Member, link)
			for _, a := range machines.ManagementAddresses(t, c, n.Spec.Name) {
				to := netip.AddrPortFrom(a, 7777)
				cmd, err := machines.EchoFrom(t.Context(), c, ns, pod, "flood", to.String(), "20", "10")
				if err == nil {
					err = cmd.Run()
				}
				if err != nil {
					t.Fatal(err)
				}
				if pod == "red-1" {
					_ = machines.AskFrom(t.Context(), c, ns, pod, "tcp", to)
				}
			}
			return count()
		}
		for ns, pods := range map[string][]string{"red": {"red-1", "red-2"}, "green": {"green-1"}, "blue": {"blue-1"},
			"violet": {"violet-1"}} {
			for _, pod := range pods {
				if got := arrive(ns, pod); got > 0 {
					t.Errorf("%d packets of %s arrive at %s, want none", got, pod, link)
				}
			}
		}
		if arrive("default", "plain") == 0 {
			t.Errorf("no packet of a pod of the cluster's own network arrives at %s: the test shows nothing", link)
		}
	}
}
