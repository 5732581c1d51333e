package sctp

import (
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// destinationAt is where SCTP's common header has the destination port, in bytes (RFC 9260 §3.1).
const destinationAt = 2

// onlyPort has the kernel keep packets to other ports away from a raw socket. A client has one socket for each
// association. Without this, each of them would be woken by the packets of all others with the same server.
func onlyPort(conn *net.IPConn, family netip.Addr, port uint16) error {
	header := unix.SockFilter{Code: unix.BPF_LDX | unix.BPF_IMM, K: 0}
	if family.Is4() { // the packet begins with the IP header
		header = unix.SockFilter{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0}
	}
	program := []unix.SockFilter{
		header, // X is its length
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: destinationAt},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(port), Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: maxPacket},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	err := configure(conn, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
	if err != nil {
		return fmt.Errorf("filtering the packets of a raw socket: %w", err)
	}
	return nil
}
