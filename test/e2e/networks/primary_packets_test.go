package networks

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// podNamespace is the network namespace of a pod.
func podNamespace(t *testing.T, c *sandbox.Cluster, n *node.Node, namespace, pod string) machines.Namespace {
	t.Helper()
	text := machines.Kubectl(t, c, "", "get", "pod", "-n", namespace, pod, "-o", `jsonpath={.metadata.annotations.ovn}`)
	_, mac, _ := strings.Cut(text, `"mac_address":"`)
	hw, err := net.ParseMAC(strings.TrimSuffix(mac, `"}`))
	if err != nil {
		t.Fatalf("annotation %s of pod %s: %v", text, pod, err)
	}
	out, err := machines.PodNamespace(n.Member, hw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// lead has a pod send what is for a range to a host of its own subnet.
func lead(t *testing.T, pod machines.Namespace, subnet string, via netip.Addr) {
	t.Helper()
	_, dst, err := net.ParseCIDR(subnet)
	if err == nil {
		err = pod.Within(func() error {
			link, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst, Gw: via.AsSlice()})
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// countPackets begins to count the packets to port 7777 that arrive at an interface of a pod. The function that it
// returns ends that.
func countPackets(t *testing.T, pod machines.Namespace, link string) func() int {
	t.Helper()
	var fd int
	err := pod.Within(func() (err error) { fd, err = machines.PacketSocket(link); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func() (n int) {
		frame := make([]byte, 2048)
		for {
			length, from, err := unix.Recvfrom(fd, frame, 0)
			if errors.Is(err, unix.EAGAIN) {
				return n
			}
			if err != nil {
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
