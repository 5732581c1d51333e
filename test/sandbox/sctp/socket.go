package sctp

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrKernel is the error on a kernel that has SCTP itself.
var ErrKernel = errors.New("this machine's kernel has SCTP, and refuses what package sctp is asked for: unload it " +
	"(`modprobe -r sctp`), or use another machine")

// Usable returns ErrKernel if this package does not work here, else nil.
func Usable() error { return usable("/proc/net") }

// usable looks into /proc/net (proc_pid_net(5)), where SCTP has a directory while the kernel has it loaded.
func usable(procNet string) error {
	sctp := filepath.Join(procNet, "sctp")
	_, err := os.Stat(sctp)
	switch {
	case err == nil:
		return fmt.Errorf("%w: there is %s", ErrKernel, sctp)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("looking whether the kernel has SCTP: %w", err)
}

// maxPacket is the largest packet to receive.
const maxPacket = 65535

const ipv4Header = 20 // bytes, without options

// network is the name of SCTP's raw sockets in package net.
func network(a netip.Addr) string {
	if a.Is4() {
		return "ip4:132"
	}
	return "ip6:132"
}

// socket is a server's raw socket for one family. It knows the destinations of packets.
type socket struct {
	conn *net.IPConn
	any  netip.Addr // 0.0.0.0 or ::
	buf  []byte
}

func listen(addr netip.Addr) (*socket, error) {
	conn, err := net.ListenIP(network(addr), &net.IPAddr{IP: addr.AsSlice()})
	if err != nil {
		return nil, fmt.Errorf("opening a raw socket: %w", err)
	}
	s := &socket{conn, addr, make([]byte, maxPacket)}
	if addr.Is4() { // a packet comes with its header, which has the destination
		return s, nil
	}
	err = configure(conn, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("asking for destinations: %w", err), conn.Close())
	}
	return s, nil
}

// configure calls set with a socket's descriptor.
func configure(conn *net.IPConn, set func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = set(int(fd)) })
	return errors.Join(err, failed)
}

// path has the source and the destination of a packet.
type path struct{ from, to netip.Addr }

// receive waits for a packet. Its bytes are valid until the next call.
func (s *socket) receive() ([]byte, path, error) {
	control := make([]byte, 128)
	for {
		n, size, _, from, err := s.conn.ReadMsgIP(s.buf, control)
		if err != nil {
			return nil, path{}, fmt.Errorf("receiving: %w", err)
		}
		source, _ := netip.AddrFromSlice(from.IP)
		b, p := s.buf[:n], path{from: source.Unmap()}
		if from.Zone != "" {
			p.from = p.from.WithZone(from.Zone)
		}
		if s.any.Is6() {
			if p.to, err = destination(control[:size]); err != nil {
				return nil, path{}, err
			}
			return b, p, nil
		}
		if n < ipv4Header {
			continue
		}
		if header := int(b[0]&15) * 4; header <= n {
			p.to = netip.AddrFrom4([4]byte(b[16:20]))
			return b[header:], p, nil
		}
	}
}

// destination reads the address in IPV6_PKTINFO (ipv6(7)).
func destination(control []byte) (netip.Addr, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("reading where a packet was sent: %w", err)
	}
	for _, m := range messages {
		if m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO &&
			len(m.Data) >= unix.SizeofInet6Pktinfo {
			return netip.AddrFrom16([16]byte(m.Data[:16])), nil
		}
	}
	return netip.Addr{}, errors.New("reading where a packet was sent: the kernel does not say")
}

// answer sends a packet back along a path.
func (s *socket) answer(to path, p Packet) error {
	var control []byte
	if s.any.Is4() {
		control = unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: to.to.As4()})
	} else {
		control = unix.PktInfo6(&unix.Inet6Pktinfo{Addr: to.to.As16()})
	}
	peer := &net.IPAddr{IP: to.from.AsSlice(), Zone: to.from.Zone()}
	if _, _, err := s.conn.WriteMsgIP(p.Marshal(), control, peer); err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	return nil
}
