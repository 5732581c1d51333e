package podif

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Announce makes other hosts update the MAC of the pod's addresses. It sends an ARP announcement for each IPv4 address
// (RFC 5227 section 2.3) and an unsolicited neighbour advertisement for each IPv6 address (RFC 4861 section 7.2.6).
func Announce(s Spec) error {
	podNS, err := openNetns(s.Netns)
	if err != nil {
		return err
	}
	defer podNS.Close()
	return podNS.Do(func(ns.NetNS) error {
		link, err := netlink.LinkByName(s.IfName)
		if err != nil {
			return fmt.Errorf("reading %s in the container: %w", s.IfName, err)
		}
		index := link.Attrs().Index
		var errs []error
		for _, p := range s.Network.IPs {
			send := sendARP
			if p.Addr().Is6() {
				send = sendNA
			}
			if err := send(index, s.Network.MAC, p.Addr()); err != nil {
				errs = append(errs, fmt.Errorf("announcing %s: %w", p.Addr(), err))
			}
		}
		return errors.Join(errs...)
	})
}

// sendARP broadcasts an ARP request (RFC 826) whose sender and target are addr.
func sendARP(index int, mac ipnet.MAC, addr netip.Addr) error {
	// packet(7) wants the protocol in network byte order.
	proto := binary.NativeEndian.Uint16([]byte{unix.ETH_P_ARP >> 8, unix.ETH_P_ARP & 0xff})
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(proto))
	if err != nil {
		return fmt.Errorf("opening a packet socket: %w", err)
	}
	defer unix.Close(fd)
	ip := addr.As4()
	m := []byte{0, 1, unix.ETH_P_IP >> 8, unix.ETH_P_IP & 0xff, 6, 4, 0, 1} // Ethernet, IPv4, lengths, request
	m = append(append(m, mac[:]...), ip[:]...)
	m = append(append(m, make([]byte, 6)...), ip[:]...)
	broadcast := [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	return unix.Sendto(fd, m, 0, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: index, Halen: 6, Addr: broadcast})
}

// sendNA sends an advertisement of addr to all nodes (RFC 4861 section 4.4).
func sendNA(index int, mac ipnet.MAC, addr netip.Addr) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
	if err != nil {
		return fmt.Errorf("opening a raw socket: %w", err)
	}
	defer unix.Close(fd)
	ip := addr.As16()
	// A receiver drops advertisements with a hop limit other than 255: a router may have forwarded them.
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 255),
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, index),
		unix.Bind(fd, &unix.SockaddrInet6{Addr: ip}),
	)
	if err != nil {
		return fmt.Errorf("setting up a raw socket: %w", err)
	}
	m := []byte{136, 0, 0, 0}                        // type, code, and the checksum, which the kernel fills in
	m = binary.BigEndian.AppendUint32(m, 0x20000000) // override
	m = append(m, ip[:]...)
	m = append(append(m, 2, 1), mac[:]...) // target link-layer address
	allNodes := netip.MustParseAddr("ff02::1").As16()
	return unix.Sendto(fd, m, 0, &unix.SockaddrInet6{Addr: allNodes, ZoneId: uint32(index)})
}
