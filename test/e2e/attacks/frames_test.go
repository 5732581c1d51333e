package attacks

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// ethernet is a frame (IEEE 802.3). VLAN tags are part of the payload.
func ethernet(to, from net.HardwareAddr, kind uint16, payload ...[]byte) []byte {
	out := slices.Concat(to, from, binary.BigEndian.AppendUint16(nil, kind), slices.Concat(payload...))
	return append(out, make([]byte, max(0, 60-len(out)))...)
}

// arp is the body of an ARP packet (RFC 826).
func arp(op byte, mac net.HardwareAddr, sender netip.Addr, to net.HardwareAddr, target netip.Addr) []byte {
	return slices.Concat([]byte{0, 1, 0x08, 0, 6, 4, 0, op}, mac, sender.AsSlice(), to, target.AsSlice())
}

// etherType is that of an address's family.
func etherType(a netip.Addr) uint16 {
	if a.Is4() {
		return unix.ETH_P_IP
	}
	return unix.ETH_P_IPV6
}

// packet is an IP packet of either family, with the checksum of its transport protocol if that has one.
func packet(from, to netip.Addr, protocol byte, body []byte) []byte {
	body = slices.Clone(body)
	at := map[byte]int{unix.IPPROTO_UDP: 6, unix.IPPROTO_TCP: 16, unix.IPPROTO_ICMPV6: 2}[protocol]
	if at > 0 {
		length := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
		pseudo := slices.Concat(from.AsSlice(), to.AsSlice(), length, []byte{0, 0, 0, protocol}, body)
		binary.BigEndian.PutUint16(body[at:], machines.Checksum(pseudo))
	}
	if protocol == unix.IPPROTO_ICMP || protocol == unix.IPPROTO_IGMP {
		binary.BigEndian.PutUint16(body[2:], machines.Checksum(body))
	}
	return header(from, to, protocol, 0, body)
}

// header puts an IP header before a body. fragment is the field of IPv4 that has the flags and the offset.
func header(from, to netip.Addr, protocol byte, fragment uint16, body []byte) []byte {
	length := binary.BigEndian.AppendUint16(nil, uint16(len(body)))
	if to.Is6() {
		return slices.Concat([]byte{0x60, 0, 0, 0}, length, []byte{protocol, 255}, from.AsSlice(), to.AsSlice(), body)
	}
	binary.BigEndian.PutUint16(length, uint16(20+len(body)))
	head := slices.Concat([]byte{0x45, 0}, length, []byte{0x12, 0x34}, binary.BigEndian.AppendUint16(nil, fragment),
		[]byte{255, protocol, 0, 0}, from.AsSlice(), to.AsSlice())
	binary.BigEndian.PutUint16(head[10:], machines.Checksum(head))
	return append(head, body...)
}

// udp is a datagram.
func udp(from, to netip.AddrPort, payload []byte) []byte {
	body := binary.BigEndian.AppendUint16(nil, from.Port())
	body = binary.BigEndian.AppendUint16(body, to.Port())
	body = binary.BigEndian.AppendUint16(body, uint16(8+len(payload)))
	return packet(from.Addr(), to.Addr(), unix.IPPROTO_UDP, append(append(body, 0, 0), payload...))
}

// halves are a packet's two fragments, of which the first has size bytes after the IP header (RFC 791, RFC 8200).
func halves(p []byte, size int) [][]byte {
	if p[0]>>4 == 4 {
		from, to := netip.AddrFrom4([4]byte(p[12:])), netip.AddrFrom4([4]byte(p[16:]))
		const more = 1 << 13
		return [][]byte{header(from, to, p[9], more, p[20:20+size]), header(from, to, p[9], uint16(size/8), p[20+size:])}
	}
	from, to := netip.AddrFrom16([16]byte(p[8:])), netip.AddrFrom16([16]byte(p[24:]))
	part := func(offset, more int, body []byte) []byte {
		head := binary.BigEndian.AppendUint16([]byte{p[6], 0}, uint16(offset|more))
		return header(from, to, unix.IPPROTO_FRAGMENT, 0, slices.Concat(head, []byte{1, 2, 3, 4}, body))
	}
	return [][]byte{part(0, 1, p[40:40+size]), part(size, 0, p[40+size:])}
}

// discovery is a message of neighbour discovery (RFC 4861): its type, the eight bytes after type, code and checksum, or
// more, and options.
func discovery(kind byte, fixed []byte, options ...[]byte) []byte {
	return slices.Concat([]byte{kind, 0, 0, 0}, fixed, slices.Concat(options...))
}

// option is an option of neighbour discovery. The value has 6 bytes, or 8 more, and so on.
func option(kind byte, value []byte) []byte {
	return append([]byte{kind, byte((len(value) + 2) / 8)}, value...)
}

// multicast is the MAC of an address's group (RFC 1112, RFC 2464).
func multicast(a netip.Addr) net.HardwareAddr {
	b := a.AsSlice()
	if a.Is4() {
		return net.HardwareAddr{0x01, 0, 0x5e, b[1] & 0x7f, b[2], b[3]}
	}
	return append(net.HardwareAddr{0x33, 0x33}, b[12:]...)
}

// broadcast is the MAC of all.
func broadcast() net.HardwareAddr { return net.HardwareAddr{255, 255, 255, 255, 255, 255} }

// solicited is the group in which the owner of an address is asked for its MAC (RFC 4291 section 2.7.1).
func solicited(a netip.Addr) netip.Addr {
	b := a.As16()
	out := netip.MustParseAddr("ff02::1:ff00:0").As16()
	copy(out[13:], b[13:])
	return netip.AddrFrom16(out)
}

// linkLocal is the address that follows from a MAC (RFC 4291 appendix A).
func linkLocal(m net.HardwareAddr) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3],
		14: m[4], 15: m[5]})
}
