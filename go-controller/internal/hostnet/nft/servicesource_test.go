package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// hostPorts is what CNI's portmap writes with masqAll, for port 31000 of the node and port 8080 of a pod.
const hostPorts = `
table inet portmap {
	chain ports {
		fib daddr type != local return
		meta nfproto ipv4 meta l4proto { tcp, udp, sctp } th dport 31000 mark set mark or 0x2000 dnat ip to 10.1.0.6:8080
		meta nfproto ipv6 meta l4proto { tcp, udp, sctp } th dport 31000 mark set mark or 0x2000 dnat ip6 to [fd01::6]:8080
	}
	chain in { type nat hook prerouting priority dstnat; jump ports; }
	chain out { type nat hook output priority -100; jump ports; }
	chain after { type nat hook postrouting priority srcnat; mark and 0x2000 != 0 masquerade; }
}`

// seenAs is the address and port that the server of a connection sees, from connection tracking. The connection is the
// only one from this port.
func seenAs(t *testing.T, protocol uint8, to netip.Addr, from uint16) (seen netip.AddrPort, ok bool) {
	t.Helper()
	family := netlink.InetFamily(unix.AF_INET)
	if to.Is6() {
		family = unix.AF_INET6
	}
	list, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if f.Forward.Protocol == protocol && f.Forward.SrcPort == from && f.Forward.DstIP.Equal(net.IP(to.AsSlice())) {
			ip, _ := netip.AddrFromSlice(f.Reverse.DstIP)
			return netip.AddrPortFrom(ip.Unmap(), f.Reverse.DstPort), true
		}
	}
	return seen, false
}

// begin begins a TCP or UDP connection, from a port.
func begin(t *testing.T, netns string, protocol uint8, to netip.AddrPort, from uint16) error {
	t.Helper()
	return testkit.InNetns(netns, func() error {
		d := net.Dialer{Timeout: answerWait}
		if protocol == unix.IPPROTO_TCP {
			d.LocalAddr = &net.TCPAddr{Port: int(from)}
			c, err := d.DialContext(t.Context(), "tcp", to.String())
			if err != nil {
				return err
			}
			return errors.Join(c.(*net.TCPConn).SetLinger(0), c.Close()) // the port is free at once
		}
		d.LocalAddr = &net.UDPAddr{Port: int(from)}
		c, err := d.DialContext(t.Context(), "udp", to.String())
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = exchange(c, answerWait)
		return err
	})
}

// initSeenAs sends an SCTP INIT, from a port, and tells from where it arrives.
func initSeenAs(t *testing.T, netns, server string, to netip.AddrPort, from uint16) (seen netip.AddrPort, err error) {
	t.Helper()
	network := map[bool]string{true: "ip4:sctp", false: "ip6:sctp"}[to.Addr().Is4()]
	var l net.PacketConn
	if err := testkit.InNetns(server, func() (err error) {
		l, err = net.ListenPacket(network, map[bool]string{true: "0.0.0.0", false: "::"}[to.Addr().Is4()])
		return err
	}); err != nil {
		return seen, err
	}
	defer l.Close()
	if err := testkit.InNetns(netns, func() error {
		c, err := net.Dial(network, to.Addr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write(sctpInit(from, to.Port()))
		return err
	}); err != nil {
		return seen, err
	}
	if err := l.SetReadDeadline(time.Now().Add(answerWait)); err != nil {
		return seen, err
	}
	buf := make([]byte, 100)
	n, source, err := l.ReadFrom(buf)
	if err != nil || n < 12 {
		return seen, fmt.Errorf("%d bytes: %w", n, err)
	}
	ip, err := netip.ParseAddr(source.String())
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(buf)), err
}

// What the node forwards with the management port's address has a port of names.SNATPorts. What the node itself sends
// keeps its port, so that a policy can tell it apart.
func TestForwardedPorts(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := localBed(t)
	testkit.Run(t, "nft", hostPorts)
	var entries []string
	for _, protocol := range []string{"TCP", "UDP", "SCTP"} {
		entries = append(entries, "serve "+protocol+" 0.0.0.0:30080 to 10.96.0.10:8080",
			"serve "+protocol+" [::]:30080 to [fd02::10]:8080")
	}
	entries = append(entries, localEntries("0.0.0.0:30081", "", "10.1.0.6:8080")...)
	entries = append(entries, localEntries("[::]:30081", "", "[fd01::6]:8080")...)
	converge(t, k, servicePorts(t, entries...))
	const keeps, forwarded = true, false
	for _, c := range []struct {
		client, server string
		port           uint16
		own            bool
		from           []uint16
	}{
		{"outside", "ovn", 30080, forwarded, []uint16{40000, 9999, 30000, 12345}},
		{"p5", "ovn", 30080, forwarded, []uint16{40001}},
		{"other", "ovn", 30080, forwarded, []uint16{40002}}, {"", "ovn", 30080, keeps, []uint16{40003, 9998, 30001}},
		{"p5", "ovn", 30081, forwarded, []uint16{40004}}, {"other", "p6", 30081, forwarded, []uint16{40005}},
		{"", "ovn", 30081, keeps, []uint16{40006}},
		{"outside", "p6", 31000, forwarded, []uint16{40007, 9997}}, {"p5", "p6", 31000, forwarded, []uint16{40008}},
		{"", "p6", 31000, keeps, []uint16{40009}},
	} {
		for node, management := range map[string]string{"198.51.100.1": "10.1.0.2", "2001:db8:5::1": "fd01::2"} {
			to := netip.AddrPortFrom(netip.MustParseAddr(node), c.port)
			for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP} {
				for _, from := range c.from {
					seen, err := netip.AddrPort{}, error(nil)
					if protocol == unix.IPPROTO_SCTP {
						seen, err = initSeenAs(t, c.client, c.server, to, from)
					} else if err = begin(t, c.client, protocol, to, from); err == nil {
						seen, _ = seenAs(t, protocol, to.Addr(), from)
					}
					inRange := names.FirstSNATPort <= seen.Port() && seen.Port() <= names.LastSNATPort
					if err != nil || seen.Addr().String() != management || inRange == c.own || c.own && seen.Port() != from {
						t.Errorf("protocol %d from port %d of %q to %s is seen as %s, %v; want %s, and its own port %v", protocol, from,
							c.client, to, seen, err, management, c.own)
					}
				}
			}
		}
	}
}

// This node's pods find no node port at the management port's address, which every policy lets them reach. Other nodes'
// pods find it there, as the policies see them.
func TestNodePortOfManagementPort(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := localBed(t)
	entries := slices.Concat(localEntries("0.0.0.0:30081", "", "10.1.0.6:8080"),
		localEntries("[::]:30081", "", "[fd01::6]:8080"))
	converge(t, k, servicePorts(t, append(entries, "serve TCP 0.0.0.0:30080 to 10.96.0.10:8080",
		"serve TCP [::]:30080 to [fd02::10]:8080")...))
	for _, address := range []string{"10.1.0.2", "fd01::2"} {
		for _, port := range []string{"30080", "30081"} {
			to := net.JoinHostPort(address, port)
			if seen, err := testkit.AskOnce("p5", "tcp", to); !errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("a pod of this node at %s: seen as %q, %v; want it to be refused", to, seen, err)
			}
			if seen, err := testkit.AskOnce("other", "tcp", to); err != nil || seen != address {
				t.Errorf("a pod of another node at %s: seen as %q, %v; want %s", to, seen, err, address)
			}
		}
		if seen, err := testkit.AskOnce("p5", "tcp", net.JoinHostPort(address, "9090")); err != nil {
			t.Errorf("a pod of this node at a server of the node: seen as %q, %v", seen, err)
		}
	}
}

// Without the rule, what arrives with the node's own IPv6 address would count as the node's. Linux drops IPv4 itself.
func TestOwnSourceFromOutside(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := localBed(t)
	spoof := hostplan.AntiSpoof{Link: "m0", Own: "10.1.0.0/24,fd01::/64"}
	served := servicePorts(t, "serve UDP [::]:30080 to [fd02::10]:8080", "serve UDP 0.0.0.0:30080 to 10.96.0.10:8080")
	testkit.Run(t, "sh", "-ec", `ip -n outside addr add 2001:db8:5::1/128 dev eth0 nodad
ip -n outside addr add 198.51.100.1/32 dev eth0; ip -n outside addr add 2001:db8:5::100/64 dev eth0 nodad
ip addr add 2001:db8:5::99/64 dev eth0 nodad; ip addr add 198.51.100.99/24 dev eth0`)
	// arrives sends a datagram from outside to another address of the node, and tells whether the node has tracked it
	// by the time that an honest one, which comes after it, is answered.
	arrives := func(source, node, honest string, port uint16) bool {
		t.Helper()
		to := netip.AddrPortFrom(netip.MustParseAddr(node), 30080)
		err := testkit.InNetns("outside", func() error {
			d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(source), port))}
			c, err := d.DialContext(t.Context(), "udp", to.String())
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write([]byte("?"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ask(t, netip.MustParseAddr(honest), to.String(), 5*time.Second); err != nil {
			t.Fatalf("%s asks %s: %v", honest, to, err)
		}
		_, ok := seenAs(t, unix.IPPROTO_UDP, to.Addr(), port)
		return ok
	}
	converge(t, k, served)
	if !arrives("2001:db8:5::1", "2001:db8:5::99", "2001:db8:5::2", 41001) {
		t.Error("without the rule the IPv6 packet does not arrive either: the test shows nothing")
	}
	if arrives("198.51.100.1", "198.51.100.99", "198.51.100.2", 41002) {
		t.Error("Linux lets the IPv4 packet in")
	}
	converge(t, k, served, spoof)
	if arrives("2001:db8:5::1", "2001:db8:5::99", "2001:db8:5::2", 41003) {
		t.Error("an IPv6 packet with the node's own address arrives")
	}
	if rules := testkit.Run(t, "nft", "list", "chain", "inet", "northbound", antiSpoofChain); !strings.Contains(rules,
		`iifname != "m0" iifname != "lo" meta l4proto != ipv6-icmp fib saddr type local drop`) {
		t.Errorf("the rules are\n%s", rules)
	}
	if err := k.Apply(item.Change{Have: spoof}); err != nil {
		t.Fatal(err)
	}
}
