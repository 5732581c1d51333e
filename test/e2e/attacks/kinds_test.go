package attacks

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// kind is a way in which a pod may pretend to be somebody else. All its frames have its key.
type kind struct {
	what     string
	key      string
	frames   [][]byte
	harmless string // why frames may arrive at the link; nobody may believe them
}

// party is an owner of addresses on a link.
type party struct {
	mac   net.HardwareAddr
	addrs []netip.Addr // one for each family
}

// place is the attacker's network. The router stands for whoever is not on its link.
type place struct {
	attacker, sibling, router, management party
	elsewhere, otherNode, outside         []netip.Addr            // a pod on another node, that node, a host outside
	pretended                             map[string][]netip.Addr // further addresses that are others', by what has them
	otherRouter                           net.HardwareAddr        // of the other node's link
	evil                                  net.HardwareAddr        // the MAC of nobody
	unused                                []netip.Addr            // in the attacker's subnets
	tunnels                               []netip.Addr            // where nodes take tunnelled frames
	tunnelled                             func(frame []byte) []byte
}

// markLength is the length of a mark: an option of neighbour discovery can have it.
const markLength = 6

// mark is what the network leaves as it is in frame i.
func mark(i int) string { return fmt.Sprintf("spf%03d", i) }

// making collects kinds.
type making struct {
	place
	kinds []kind
}

// add adds a kind whose frames have a mark.
func (m *making) add(what string, frames func(mark []byte) [][]byte) {
	key := mark(len(m.kinds))
	m.kinds = append(m.kinds, kind{what: what, key: key, frames: frames([]byte(key))})
}

// harmless says why the last kind's frames may arrive at the attacker's link.
func (m *making) harmless(why string) { m.kinds[len(m.kinds)-1].harmless = why }

// arp adds a kind of ARP packet. There is no room for a mark: the body is its key.
func (m *making) arp(what string, from net.HardwareAddr, body []byte, to ...net.HardwareAddr) {
	k := kind{what: what, key: string(body)}
	for _, t := range to {
		k.frames = append(k.frames, ethernet(t, from, unix.ETH_P_ARP, body))
	}
	m.kinds = append(m.kinds, k)
}

// towards are the MAC and the addresses through which the attacker reaches everybody.
func (p place) towards(family int) map[netip.Addr]net.HardwareAddr {
	return map[netip.Addr]net.HardwareAddr{
		p.sibling.addrs[family]: p.sibling.mac, p.management.addrs[family]: p.management.mac,
		p.elsewhere[family]: p.router.mac, p.otherNode[family]: p.router.mac, p.outside[family]: p.router.mac,
	}
}

// datagrams go from an address to everybody, in frames that wrap makes.
func (p place) datagrams(from netip.Addr, mark []byte, wrap func(net.HardwareAddr, []byte) [][]byte) [][]byte {
	family := 0
	if from.Is6() {
		family = 1
	}
	var out [][]byte
	for to, mac := range p.towards(family) {
		out = append(out, wrap(mac, udp(netip.AddrPortFrom(from, 4000), netip.AddrPortFrom(to, 4000), mark))...)
	}
	return out
}

// plain wraps a packet in a frame from a MAC.
func plain(from net.HardwareAddr) func(net.HardwareAddr, []byte) [][]byte {
	return func(to net.HardwareAddr, packet []byte) [][]byte {
		kind := uint16(unix.ETH_P_IP)
		if packet[0]>>4 == 6 {
			kind = unix.ETH_P_IPV6
		}
		return [][]byte{ethernet(to, from, kind, packet)}
	}
}

// both makes frames for each of the attacker's addresses.
func (p place) both(each func(own netip.Addr) [][]byte) [][]byte {
	var out [][]byte
	for _, own := range p.attacker.addrs {
		out = append(out, each(own)...)
	}
	return out
}

// spoofs are all kinds.
func spoofs(p place) []kind {
	m := &making{place: p}
	m.sources()
	m.links()
	m.resolution()
	m.besides()
	m.discoveries()
	m.services()
	m.groups()
	m.wrapped()
	return m.kinds
}

// sources are IP packets with a foreign source, from the pod's own MAC.
func (m *making) sources() {
	own := plain(m.attacker.mac)
	for what, addrs := range inOrder(m.pretended) {
		m.add("IP source: "+what, func(mark []byte) (out [][]byte) {
			for _, from := range addrs {
				out = append(out, m.datagrams(from, mark, own)...)
			}
			return out
		})
	}
	m.add("IP source: another pod, in fragments", func(mark []byte) (out [][]byte) {
		long := slices.Concat(mark, make([]byte, 18), mark, make([]byte, 18))
		for _, from := range m.sibling.addrs {
			out = append(out, m.datagrams(from, long, func(to net.HardwareAddr, packet []byte) (both [][]byte) {
				for _, half := range halves(packet, 32) {
					both = append(both, own(to, half)...)
				}
				return both
			})...)
		}
		return out
	})
	m.add("TCP reset from another pod", func(mark []byte) (out [][]byte) {
		for family, from := range m.sibling.addrs {
			for to, mac := range m.towards(family) {
				const dataOffset, rst = 5 << 4, 1 << 2
				head := []byte{0x1f, 0x90, 0x1f, 0x91, 0, 0, 0, 1, 0, 0, 0, 1, dataOffset, rst, 0xff, 0xff, 0, 0, 0, 0}
				body := append(head, mark...)
				out = append(out, own(mac, packet(from, to, unix.IPPROTO_TCP, body))...)
			}
		}
		return out
	})
	m.add("ICMP error from the router: too big", func(mark []byte) [][]byte {
		b, r := m.sibling, m.router
		inner := udp(netip.AddrPortFrom(b.addrs[0], 8080), netip.AddrPortFrom(m.elsewhere[0], 8080), mark)
		inner6 := udp(netip.AddrPortFrom(b.addrs[1], 8080), netip.AddrPortFrom(m.elsewhere[1], 8080), mark)
		four := packet(r.addrs[0], b.addrs[0], unix.IPPROTO_ICMP, append([]byte{3, 4, 0, 0, 0, 0, 0, 68}, inner...))
		six := packet(r.addrs[1], b.addrs[1], unix.IPPROTO_ICMPV6, append([]byte{2, 0, 0, 0, 0, 0, 5, 0}, inner6...))
		return slices.Concat(own(b.mac, four), own(b.mac, six))
	})
}

// inOrder are the values of a map with their keys, in the order of these.
func inOrder[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// links are frames with a foreign source MAC, or with tags.
func (m *making) links() {
	const vlan0 = "the tag of VLAN 0"
	for what, mac := range inOrder(map[string]net.HardwareAddr{"nobody's": m.evil, "another pod's": m.sibling.mac,
		"the router's": m.router.mac, "broadcast": broadcast(), "a group's": {1, 0, 0x5e, 0, 0, 1}}) {
		m.add("source MAC: "+what, func(mark []byte) [][]byte {
			return m.both(func(own netip.Addr) [][]byte { return m.datagrams(own, mark, plain(mac)) })
		})
	}
	for what, tags := range inOrder(map[string][]uint16{"a VLAN tag": {unix.ETH_P_8021Q}, vlan0: {unix.ETH_P_8021Q},
		"two VLAN tags": {unix.ETH_P_8021Q, unix.ETH_P_8021Q}, "a service VLAN tag": {unix.ETH_P_8021AD},
		"a service and a VLAN tag": {unix.ETH_P_8021AD, unix.ETH_P_8021Q}}) {
		tag := []byte{0, 10}
		if what == vlan0 {
			tag[1] = 0
		}
		m.add("own addresses, "+what, func(mark []byte) [][]byte {
			return m.both(func(own netip.Addr) [][]byte {
				return m.datagrams(own, mark, func(to net.HardwareAddr, packet []byte) [][]byte {
					rest := slices.Concat(tag, binary.BigEndian.AppendUint16(nil, etherType(own)), packet)
					for _, t := range tags[1:] {
						rest = slices.Concat(tag, binary.BigEndian.AppendUint16(nil, t), rest)
					}
					return [][]byte{ethernet(to, m.attacker.mac, tags[0], rest)}
				})
			})
		})
	}
	m.add("source MAC: nobody's, LLC and SNAP", func(mark []byte) [][]byte {
		return m.datagrams(m.attacker.addrs[0], mark, func(to net.HardwareAddr, packet []byte) [][]byte {
			return [][]byte{ethernet(to, m.evil, uint16(8+len(packet)), []byte{0xaa, 0xaa, 3, 0, 0, 0, 8, 0}, packet)}
		})
	})
}
