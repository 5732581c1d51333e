package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// servePackets answers each datagram from the address that it was sent to: the machine may have several.
func servePackets(conn *net.UDPConn, name string) error {
	if err := askForDestinations(conn); err != nil {
		return err
	}
	buf, control := make([]byte, maxDatagram), make([]byte, 256)
	for {
		size, n, _, from, err := conn.ReadMsgUDPAddrPort(buf, control)
		if err != nil {
			return fmt.Errorf("receiving: %w", err)
		}
		source, err := answerFrom(control[:n])
		if err != nil {
			return err
		}
		answer := []byte(name + " " + netip.AddrPortFrom(from.Addr().Unmap(), from.Port()).String() + "\n")
		if size > 0 && buf[0] == mirrored {
			answer = buf[:size]
		}
		// An answer that cannot be sent is lost for the client.
		_, _, _ = conn.WriteMsgUDPAddrPort(answer, source, from)
	}
}

// askForDestinations makes the kernel report the destination of datagrams (ip(7), IP_PKTINFO; ipv6(7), IPV6_PKTINFO,
// which on a dual-stack socket reports IPv4 addresses, too).
func askForDestinations(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("asking for destinations: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		if failed != nil { // an IPv4-only socket
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("asking for destinations: %w", err)
	}
	return nil
}

// answerFrom returns the control message that makes the destination of a datagram the source of the answer. The routes
// choose the interface.
func answerFrom(control []byte) ([]byte, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, fmt.Errorf("reading where a datagram was sent: %w", err)
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO &&
			len(m.Data) >= unix.SizeofInet6Pktinfo:
			info := &unix.Inet6Pktinfo{}
			copy(info.Addr[:], m.Data)
			return unix.PktInfo6(info), nil
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			info := &unix.Inet4Pktinfo{}
			copy(info.Spec_dst[:], m.Data[8:]) // struct in_pktinfo: ipi_ifindex, ipi_spec_dst, ipi_addr
			return unix.PktInfo4(info), nil
		}
	}
	return nil, nil
}
