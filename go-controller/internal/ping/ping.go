package ping

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Outcomes of a ping.
var (
	ErrTooBig   = errors.New("the packet does not fit")
	ErrNoAnswer = errors.New("no answer")
)

// How often an echo request is sent, and how long to wait for each reply.
const (
	tries = 3
	wait  = 700 * time.Millisecond
)

// Sizes of headers in bytes (RFC 791, RFC 8200, RFC 792, RFC 4443).
const (
	ipv4Header = 20
	ipv6Header = 40
	icmpHeader = 8
)

// family has the constants in which IPv4 and IPv6 differ.
type family struct {
	network       string
	header        int
	level, option int // the socket option that sets the "don't fragment" behaviour, ip(7), ipv6(7)
	protocol      int
	echo          icmp.Type
	reply         icmp.Type
}

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return family{"ip4:icmp", ipv4Header, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IPPROTO_ICMP,
			ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply}
	}
	return family{"ip6:ipv6-icmp", ipv6Header, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPPROTO_ICMPV6,
		ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply}
}

// Headers returns the size in bytes of an echo request's headers, which ping(8) -s does not count.
func Headers(to netip.Addr) int { return familyOf(to).header + icmpHeader }

// Send pings the address to, a few times if need be. from is the source address; with the zero Addr the kernel chooses.
// size is that of the IP packet in bytes; 0 stands for the smallest packet. It needs a raw socket (raw(7)). The error
// is ErrTooBig if the packet exceeds the path's MTU, ErrNoAnswer without a reply, or that of ctx.
func Send(ctx context.Context, from, to netip.Addr, size int) error {
	f := familyOf(to)
	what := fmt.Sprintf("pinging %s", to)
	if from.IsValid() {
		what += fmt.Sprintf(" from %s", from)
	}
	if size = max(size, Headers(to)); size > Headers(to) {
		what += fmt.Sprintf(" with %d bytes", size)
	}
	conn, err := listen(ctx, f, from)
	if err != nil {
		return fmt.Errorf("%s: opening a raw socket from %s: %w", what, from, err)
	}
	defer func() { _ = conn.Close() }()
	id := os.Getpid() & 0xffff
	for seq := 1; seq <= tries; seq++ {
		if err := sendEcho(conn, f, to, id, seq, size); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		answered, err := awaitEcho(ctx, conn, f, to, id, size-f.header)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if answered {
			return nil
		}
	}
	return fmt.Errorf("%s, %d times: %w", what, tries, ErrNoAnswer)
}

// listen opens a socket whose packets are not fragmented here or on their path, and that ignores the path MTU that the
// kernel remembers. IP_PMTUDISC_PROBE has the same number for IPv6.
func listen(ctx context.Context, f family, from netip.Addr) (net.PacketConn, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var optErr error
		err := c.Control(func(fd uintptr) {
			optErr = unix.SetsockoptInt(int(fd), f.level, f.option, unix.IP_PMTUDISC_PROBE)
		})
		return errors.Join(err, optErr)
	}}
	local := ""
	if from.IsValid() {
		local = from.String()
	}
	return config.ListenPacket(ctx, f.network, local)
}

func sendEcho(conn net.PacketConn, f family, to netip.Addr, id, seq, size int) error {
	data := make([]byte, size-Headers(to))
	m := icmp.Message{Type: f.echo, Body: &icmp.Echo{ID: id, Seq: seq, Data: data}}
	b, err := m.Marshal(nil) // the kernel fills in the checksum of ICMPv6 (RFC 3542 section 3.1)
	if err != nil {
		return err
	}
	_, err = conn.WriteTo(b, &net.IPAddr{IP: to.AsSlice(), Zone: to.Zone()})
	if errors.Is(err, unix.EMSGSIZE) {
		return ErrTooBig
	}
	return err
}

// awaitEcho waits for a reply with our id and length: the length tells the replies to different pings apart.
func awaitEcho(ctx context.Context, conn net.PacketConn, f family, to netip.Addr, id, length int) (bool, error) {
	deadline := time.Now().Add(wait)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := conn.SetReadDeadline(deadline); err != nil {
		return false, err
	}
	buffer := make([]byte, 1<<16)
	for {
		n, peer, err := conn.ReadFrom(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false, ctx.Err()
		}
		if err != nil {
			return false, err
		}
		ip, ok := peer.(*net.IPAddr)
		if !ok || n != length {
			continue
		}
		m, err := icmp.ParseMessage(f.protocol, buffer[:n])
		if err == nil && ipnet.OfIP(ip.IP) == to.WithZone("") && m.Type == f.reply &&
			int(binary.BigEndian.Uint16(buffer[4:6])) == id {
			return true, nil
		}
	}
}
