package gateway

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// spoofed is how many packets each attempt sends.
const spoofed = 50

// The protocols of the attempts, and the TCP flag of a first segment (RFC 9293 section 3.1).
const (
	udp = unix.IPPROTO_UDP
	tcp = unix.IPPROTO_TCP
	syn = 0x02
)

// attempt is a series of packets from outside to a pod.
type attempt struct {
	mac      net.HardwareAddr // the frames' destination
	source   netip.Addr
	pod      string
	to       netip.Addr // an address of the pod
	protocol byte
}

func (a attempt) String() string {
	return fmt.Sprintf("IP protocol %d from %s to pod %s at %s", a.protocol, a.source, a.pod, a.to)
}

// frame is packet n of the attempt: n is its source port, too.
func (a attempt) frame(n uint16) []byte {
	body := binary.BigEndian.AppendUint16(nil, n)
	body = binary.BigEndian.AppendUint16(body, 8080)
	checksumAt := 6
	if a.protocol == tcp {
		body = append(body, 0, 0, 0, 1, 0, 0, 0, 0, 5<<4, syn, 0xff, 0xff, 0, 0, 0, 0)
		checksumAt = 16
	} else {
		body = append(body, 0, 12, 0, 0, 's', 'p', 'o', 'f')
	}
	pseudo := slices.Concat(a.source.AsSlice(), a.to.AsSlice(), []byte{0, a.protocol, 0, byte(len(body))}, body)
	binary.BigEndian.PutUint16(body[checksumAt:], machines.Checksum(pseudo))
	out := append(slices.Clone(a.mac), 2, 0, 0, 0, 0, 0x66)
	if a.to.Is4() {
		head := []byte{0x45, 0, 0, byte(20 + len(body)), 0, 0, 0, 0, 63, a.protocol, 0, 0}
		head = slices.Concat(head, a.source.AsSlice(), a.to.AsSlice())
		binary.BigEndian.PutUint16(head[10:], machines.Checksum(head))
		return slices.Concat(out, []byte{0x08, 0}, head, body)
	}
	head := []byte{0x60, 0, 0, 0, 0, byte(len(body)), a.protocol, 63}
	return slices.Concat(out, []byte{0x86, 0xdd}, head, a.source.AsSlice(), a.to.AsSlice(), body)
}

// delivered counts the packets that Open vSwitch delivers to pods of a node, by source, pod and protocol.
type delivered struct {
	fd    int
	mu    sync.Mutex
	count map[string]int
}

func key(source, to netip.Addr, protocol byte) string { return fmt.Sprint(source, to, protocol) }

func (d *delivered) of(a attempt) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count[key(a.source, a.to, a.protocol)]
}

// listen opens a packet socket for one link of a machine, or for all.
func listen(t *testing.T, m *member.Member, link string) int {
	t.Helper()
	const everything = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8 // in network byte order
	fd := -1
	err := m.Within(func() error {
		i, err := net.InterfaceByName(link)
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, everything); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: i.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// deliveries counts what a pod's interface gets until the test ends.
func (b bed) deliveries(n *node.Node, pod string) *delivered {
	b.t.Helper()
	link := machines.Run(b.t, n, "ovs-vsctl", "--bare", "--columns=name", "find", "Interface",
		"external_ids:iface-id=default_"+pod)
	d := &delivered{fd: listen(b.t, n.Member, link), count: map[string]int{}}
	if err := unix.SetsockoptTimeval(d.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
		b.t.Fatal(err)
	}
	done, ended := make(chan struct{}), b.t.Context().Done()
	go func() {
		defer close(done)
		for frame := make([]byte, 2048); ; {
			n, _, err := unix.Recvfrom(d.fd, frame, 0)
			if err == nil {
				d.look(frame[:n])
			}
			select {
			case <-ended:
				return
			default:
			}
		}
	}()
	b.t.Cleanup(func() { <-done; _ = unix.Close(d.fd) })
	return d
}

func (d *delivered) look(frame []byte) {
	var source, to netip.Addr
	var protocol byte
	switch {
	case len(frame) >= 34 && frame[12] == 0x08 && frame[13] == 0:
		source, to, protocol = netip.AddrFrom4([4]byte(frame[26:30])), netip.AddrFrom4([4]byte(frame[30:34])), frame[23]
	case len(frame) >= 54 && frame[12] == 0x86 && frame[13] == 0xdd:
		source, to, protocol = netip.AddrFrom16([16]byte(frame[22:38])), netip.AddrFrom16([16]byte(frame[38:54])), frame[20]
	default:
		return
	}
	d.mu.Lock()
	d.count[key(source, to, protocol)]++
	d.mu.Unlock()
}

// spoof checks that frames to the nodes' NICs whose source is within the cluster do not reach pods: sources of pods,
// another node's management port, the join switch, and ClusterIPs. The receivers are a node's MAC, as a router with a
// route to the pods sends, and a multicast MAC, which the gateway router would take. An honest host's packets arrive.
func (b bed) spoof() {
	b.t.Helper()
	for i, pod := range []string{"a", "b"} {
		got := b.deliveries(b.Nodes[i], pod)
		for f, to := range machines.PodIPs(b.t, b.Cluster, pod) {
			honest := families().Outside()[f].Addr().Next()
			for _, source := range []netip.Addr{
				machines.PodIPs(b.t, b.Cluster, []string{"b", "a"}[i])[f],
				machines.ManagementAddresses(b.t, b.Cluster, b.Nodes[1-i].Spec.Name)[f],
				inside()[2+f].Addr().Next().Next(), netip.MustParseAddr([]string{"10.96.0.10", "fd02::a"}[f]),
			} {
				for _, by := range b.Nodes {
					b.spoofThrough(by, got, attempt{source: source, pod: pod, to: to}, honest)
				}
			}
		}
	}
}

// spoofThrough sends an attempt's packets to a node's NIC, and then those of an honest host. Once the latter have
// arrived, all packets before them had their time.
func (b bed) spoofThrough(by *node.Node, got *delivered, a attempt, honest netip.Addr) {
	b.t.Helper()
	out := listen(b.t, b.Control.Member, underlay.Port(by.Spec.Name))
	defer func() { _ = unix.Close(out) }()
	mac, err := net.ParseMAC(machines.Run(b.t, by, "cat", "/sys/class/net/"+node.PhysicalBridge+"/address"))
	if err != nil {
		b.t.Fatal(err)
	}
	send := func(a attempt, n int) {
		for i := range n {
			if _, err := unix.Write(out, a.frame(uint16(20000+i))); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	for _, protocol := range []byte{udp, tcp} {
		a.protocol = protocol
		fence := a
		fence.source, fence.mac = honest, mac
		for _, a.mac = range []net.HardwareAddr{mac, {0x01, 0, 0x5e, 0, 0, 1}} {
			send(a, spoofed)
		}
		before := got.of(fence)
		send(fence, spoofed)
		machines.Eventually(b.t, "through "+by.Spec.Name+": "+fence.String(), func(context.Context) string {
			if n := got.of(fence) - before; n < spoofed {
				send(fence, 1)
				return fmt.Sprintf("%d of %d packets of an honest host arrive", n, spoofed)
			}
			return ""
		})
		if n := got.of(a); n != 0 {
			b.t.Errorf("through %s: %s: %d of %d packets are delivered", by.Spec.Name, a, n, 2*spoofed)
		}
	}
}

// boundPrograms checks that programs bound to their node's own address reach other nodes' management addresses.
// The answers come through the NIC with a source within the cluster, after the other node has asked for a MAC from it.
func (b bed) boundPrograms() {
	b.t.Helper()
	for i, n := range b.Nodes {
		other := b.Nodes[1-i]
		for f, to := range machines.ManagementAddresses(b.t, b.Cluster, other.Spec.Name) {
			own := addrs(n)[f].Addr().String()
			machines.Run(b.t, other, "ip", "neigh", "flush", "to", own)
			if out, err := n.Run(b.t.Context(), "ping", "-n", "-c3", "-i0.2", "-W2", "-I", own, to.String()); err != nil {
				b.t.Errorf("%s asks %s from %s: %v\n%s", n.Spec.Name, to, own, err, out)
			}
		}
	}
}
