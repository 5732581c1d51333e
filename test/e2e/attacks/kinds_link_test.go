package attacks

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// resolution are ARP packets (RFC 826, RFC 5227).
func (m *making) resolution() {
	const request, reply = 1, 2
	a, b, r, g := m.attacker, m.sibling, m.router, m.management
	own, all, zero := a.addrs[0], broadcast(), make(net.HardwareAddr, 6)
	unused := m.unused[0]
	m.arp("ARP request from another pod's address", a.mac, arp(request, a.mac, b.addrs[0], zero, unused), all, g.mac)
	m.arp("ARP request from the gateway's address", a.mac, arp(request, a.mac, r.addrs[0], zero, unused), all, b.mac,
		g.mac)
	m.arp("ARP request with a foreign MAC inside", a.mac, arp(request, m.evil, own, zero, unused), all, b.mac, g.mac)
	m.arp("ARP request from a foreign MAC", m.evil, arp(request, m.evil, own, zero, unused), all, b.mac)
	m.arp("ARP probe for another pod's address", a.mac,
		arp(request, a.mac, netip.IPv4Unspecified(), zero, b.addrs[0]), b.mac, g.mac)
	m.arp("ARP reply: the gateway's address", a.mac, arp(reply, a.mac, r.addrs[0], b.mac, b.addrs[0]), b.mac, g.mac)
	m.arp("ARP reply: another pod's address", a.mac, arp(reply, a.mac, b.addrs[0], g.mac, g.addrs[0]), g.mac, r.mac)
	m.arp("ARP reply: own address, foreign MAC", a.mac, arp(reply, m.evil, own, b.mac, b.addrs[0]), b.mac, g.mac, r.mac)
	m.arp("gratuitous ARP: the gateway's address", a.mac, arp(request, a.mac, r.addrs[0], zero, r.addrs[0]), all, r.mac)
	m.arp("gratuitous ARP reply: another pod's address", a.mac, arp(reply, a.mac, b.addrs[0], all, b.addrs[0]), all, r.mac)
	m.arp("gratuitous ARP: a node's address", a.mac, arp(request, a.mac, m.tunnels[0], zero, m.tunnels[0]), all, g.mac)
	m.add("reverse ARP for a foreign MAC", func(mark []byte) [][]byte {
		body := slices.Concat(arp(3, m.evil, own, m.evil, unused), mark)
		return [][]byte{ethernet(all, a.mac, 0x8035, body), ethernet(b.mac, a.mac, 0x8035, body)}
	})
}

// Types of messages and options of neighbour discovery (RFC 4861 sections 4 and 13, RFC 3971).
const (
	routerSolicitation, routerAdvertisement       = 133, 134
	neighbourSolicitation, neighbourAdvertisement = 135, 136
	redirect                                      = 137
	sourceLink, targetLink, prefixInfo, nonce     = 1, 2, 3, 14
)

// icmp adds a kind of neighbour discovery.
func (m *making) icmp(what string, from netip.Addr, message func(mark []byte) []byte, to ...netip.Addr) {
	m.add(what, func(mark []byte) (out [][]byte) {
		for _, t := range to {
			p := packet(from, t, unix.IPPROTO_ICMPV6, message(mark))
			out = append(out, ethernet(m.macOf(t), m.attacker.mac, unix.ETH_P_IPV6, p))
		}
		return out
	})
}

// macOf is where a frame for an address of the link goes.
func (m *making) macOf(to netip.Addr) net.HardwareAddr {
	if to.IsMulticast() {
		return multicast(to)
	}
	for _, p := range []party{m.sibling, m.management} {
		if to == p.addrs[1] || to == linkLocal(p.mac) {
			return p.mac
		}
	}
	return m.router.mac
}

// advertisement says that a target has a MAC, and that this is newer than what was known.
func advertisement(target netip.Addr, mac net.HardwareAddr) func([]byte) []byte {
	return func(mark []byte) []byte {
		return discovery(neighbourAdvertisement, append([]byte{0x20, 0, 0, 0}, target.AsSlice()...),
			option(targetLink, mac), option(nonce, mark))
	}
}

// solicitation asks for a target's MAC, and says which MAC the sender has.
func solicitation(target netip.Addr, mac net.HardwareAddr) func([]byte) []byte {
	return func(mark []byte) []byte {
		options := [][]byte{option(nonce, mark)}
		if mac != nil {
			options = append(options, option(sourceLink, mac))
		}
		return discovery(neighbourSolicitation, append(make([]byte, 4), target.AsSlice()...), options...)
	}
}

// besides are datagrams by the link-local addresses that everybody has, which no policy's address set knows.
func (m *making) besides() {
	m.add("link-local addresses, around policies", func(mark []byte) (out [][]byte) {
		for _, to := range []party{m.sibling, m.management} {
			for _, ends := range [][2]netip.Addr{
				{linkLocal(m.attacker.mac), linkLocal(to.mac)}, {linkLocal(m.attacker.mac), to.addrs[1]},
				{m.attacker.addrs[1], linkLocal(to.mac)},
			} {
				datagram := udp(netip.AddrPortFrom(ends[0], 4000), netip.AddrPortFrom(ends[1], 4000), mark)
				out = append(out, ethernet(to.mac, m.attacker.mac, unix.ETH_P_IPV6, datagram))
			}
		}
		return out
	})
}

// discoveries are messages of neighbour discovery.
func (m *making) discoveries() {
	const itself = "OVN lets a pod's own address have any MAC there: the pod harms itself"
	a, b, r, g := m.attacker, m.sibling, m.router, m.management
	own, ours, nodes := a.addrs[1], linkLocal(a.mac), netip.IPv6LinkLocalAllNodes()
	unused := m.unused[1]
	m.icmp("ND solicitation from another pod's address", b.addrs[1], solicitation(unused, a.mac), solicited(unused),
		g.addrs[1])
	m.icmp("ND solicitation with a foreign MAC inside", own, solicitation(unused, m.evil), solicited(unused), b.addrs[1],
		g.addrs[1])
	m.harmless(itself)
	m.icmp("ND solicitation from link-local, foreign MAC inside", ours, solicitation(unused, m.evil), solicited(unused),
		b.addrs[1], g.addrs[1])
	m.harmless(itself)
	m.icmp("ND solicitation from the gateway's link-local", linkLocal(r.mac), solicitation(unused, a.mac),
		solicited(unused), b.addrs[1], g.addrs[1])
	m.icmp("ND advertisement: another pod's address", own, advertisement(b.addrs[1], a.mac), nodes, g.addrs[1])
	m.icmp("ND advertisement: the gateway's address", ours, advertisement(r.addrs[1], a.mac), nodes, b.addrs[1],
		g.addrs[1])
	m.icmp("ND advertisement: the gateway's link-local", ours, advertisement(linkLocal(r.mac), a.mac), nodes, b.addrs[1])
	m.icmp("ND advertisement: own address, foreign MAC", own, advertisement(own, m.evil), nodes, b.addrs[1], g.addrs[1])
	m.icmp("ND advertisement from the gateway's address", r.addrs[1], advertisement(r.addrs[1], a.mac), nodes, b.addrs[1])
	router := func(mark []byte) []byte {
		prefix := slices.Concat([]byte{64, 0xc0, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0},
			netip.MustParseAddr("fdbb::").AsSlice())
		return discovery(routerAdvertisement, append([]byte{64, 0, 0xff, 0xff}, make([]byte, 8)...),
			option(sourceLink, a.mac), option(prefixInfo, prefix), option(nonce, mark))
	}
	m.icmp("router advertisement", ours, router, nodes, linkLocal(b.mac), linkLocal(g.mac))
	m.harmless("pods and management ports take none (accept_ra)")
	m.icmp("router advertisement from the gateway's link-local", linkLocal(r.mac), router, nodes, b.addrs[1])
	m.icmp("router solicitation with a foreign MAC inside", ours, func(mark []byte) []byte {
		return discovery(routerSolicitation, make([]byte, 4), option(sourceLink, m.evil), option(nonce, mark))
	}, netip.IPv6LinkLocalAllRouters(), linkLocal(g.mac))
	m.harmless(itself)
	away := func(mark []byte) []byte {
		to := slices.Concat(make([]byte, 4), ours.AsSlice(), m.outside[1].AsSlice())
		return discovery(redirect, to, option(targetLink, a.mac), option(nonce, mark))
	}
	m.icmp("redirect (ICMPv6) from link-local", ours, away, linkLocal(b.mac), b.addrs[1], g.addrs[1])
	m.icmp("redirect (ICMPv6) from the gateway", linkLocal(r.mac), away, linkLocal(b.mac), b.addrs[1], g.addrs[1])
	m.add("redirect (ICMPv4) from the gateway", func(mark []byte) [][]byte {
		inner := udp(netip.AddrPortFrom(b.addrs[0], 9), netip.AddrPortFrom(m.outside[0], 9), mark)
		p := packet(r.addrs[0], b.addrs[0], unix.IPPROTO_ICMP, slices.Concat([]byte{5, 1, 0, 0}, a.addrs[0].AsSlice(), inner))
		return [][]byte{ethernet(b.mac, a.mac, unix.ETH_P_IP, p)}
	})
	m.hidden(advertisement(r.addrs[1], a.mac))
}

// hidden are advertisements behind extension headers (RFC 8200 section 4), and in fragments (RFC 6980).
func (m *making) hidden(message func([]byte) []byte) {
	ours, nodes := linkLocal(m.attacker.mac), netip.IPv6LinkLocalAllNodes()
	frames := func(packets ...[]byte) (out [][]byte) {
		for _, p := range packets {
			for _, to := range []net.HardwareAddr{multicast(nodes), m.sibling.mac, m.management.mac} {
				out = append(out, ethernet(to, m.attacker.mac, unix.ETH_P_IPV6, p))
			}
		}
		return out
	}
	padded := func(next byte) []byte { return []byte{next, 0, 1, 4, 0, 0, 0, 0} }
	for what, chain := range inOrder(map[string][]byte{
		"hop-by-hop options":  {unix.IPPROTO_HOPOPTS},
		"destination options": {unix.IPPROTO_DSTOPTS, unix.IPPROTO_DSTOPTS},
		"an atomic fragment":  {unix.IPPROTO_FRAGMENT},
	}) {
		m.add("ND advertisement of the gateway behind "+what, func(mark []byte) [][]byte {
			p := packet(ours, nodes, unix.IPPROTO_ICMPV6, message(mark))
			body, next := p[40:], byte(unix.IPPROTO_ICMPV6)
			for _, h := range chain {
				head := padded(next)
				if h == unix.IPPROTO_FRAGMENT {
					head = []byte{next, 0, 0, 0, 1, 2, 3, 4}
				}
				body, next = append(head, body...), h
			}
			return frames(header(ours, nodes, next, 0, body))
		})
	}
	m.add("ND advertisement of the gateway in two fragments", func(mark []byte) [][]byte {
		p := packet(ours, nodes, unix.IPPROTO_ICMPV6, message(mark))
		long := header(ours, nodes, unix.IPPROTO_DSTOPTS, 0, append(padded(unix.IPPROTO_ICMPV6), p[40:]...))
		return frames(halves(long, 8)...)
	})
	m.harmless("kernels take no neighbour discovery in fragments (RFC 6980)")
}

// services are messages that only a server or a client without an address sends.
func (m *making) services() {
	a, b := m.attacker, m.sibling
	all := broadcast()
	bootp := func(op byte, mark []byte) []byte {
		body := slices.Concat([]byte{op, 1, 6, 0, 1, 2, 3, 4}, make([]byte, 20), b.mac, make([]byte, 10), mark)
		return slices.Concat(body, make([]byte, 236-len(body)), []byte{0x63, 0x82, 0x53, 0x63, 53, 1, op, 255})
	}
	at := netip.AddrPortFrom
	m.add("DHCPv4 discover", func(mark []byte) [][]byte {
		p := udp(at(netip.IPv4Unspecified(), 68), at(netip.AddrFrom4([4]byte{255, 255, 255, 255}), 67), bootp(1, mark))
		return [][]byte{ethernet(all, a.mac, unix.ETH_P_IP, p)}
	})
	m.add("DHCPv4 offer", func(mark []byte) [][]byte {
		p := udp(at(a.addrs[0], 67), at(netip.AddrFrom4([4]byte{255, 255, 255, 255}), 68), bootp(2, mark))
		q := udp(at(a.addrs[0], 67), at(b.addrs[0], 68), bootp(2, mark))
		return [][]byte{ethernet(all, a.mac, unix.ETH_P_IP, p), ethernet(b.mac, a.mac, unix.ETH_P_IP, q)}
	})
	m.add("DHCPv4 offer from the gateway", func(mark []byte) [][]byte {
		q := udp(at(m.router.addrs[0], 67), at(b.addrs[0], 68), bootp(2, mark))
		return [][]byte{ethernet(b.mac, a.mac, unix.ETH_P_IP, q)}
	})
	servers := netip.MustParseAddr("ff02::1:2")
	m.add("DHCPv6 solicit from another pod's address", func(mark []byte) [][]byte {
		p := udp(at(linkLocal(b.mac), 546), at(servers, 547), append([]byte{1, 1, 2, 3}, mark...))
		return [][]byte{ethernet(multicast(servers), a.mac, unix.ETH_P_IPV6, p)}
	})
	m.add("DHCPv6 advertise", func(mark []byte) [][]byte {
		body := append([]byte{2, 1, 2, 3}, mark...)
		p := udp(at(linkLocal(a.mac), 547), at(linkLocal(b.mac), 546), body)
		q := udp(at(a.addrs[1], 547), at(b.addrs[1], 546), body)
		return [][]byte{ethernet(b.mac, a.mac, unix.ETH_P_IPV6, p), ethernet(b.mac, a.mac, unix.ETH_P_IPV6, q)}
	})
}

// groups are messages about groups, and to those of bridges.
func (m *making) groups() {
	a, b := m.attacker, m.sibling
	m.add("IGMP report from another pod's address", func(mark []byte) [][]byte {
		group := netip.AddrFrom4([4]byte{239, 1, 2, 3})
		p := packet(b.addrs[0], group, unix.IPPROTO_IGMP, slices.Concat([]byte{0x16, 0, 0, 0}, group.AsSlice(), mark))
		return [][]byte{ethernet(multicast(group), a.mac, unix.ETH_P_IP, p)}
	})
	m.icmp("MLD report from another pod's link-local", linkLocal(b.mac), func(mark []byte) []byte {
		return slices.Concat([]byte{131, 0, 0, 0, 0, 0, 0, 0}, netip.MustParseAddr("ff05::1:3").AsSlice(), mark)
	}, netip.MustParseAddr("ff05::1:3"))
	for what, f := range inOrder(map[string]struct {
		to   net.HardwareAddr
		head []byte
	}{
		"spanning tree": {net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 0}, []byte{0, 38, 0x42, 0x42, 3, 0, 0, 0, 0}},
		"LLDP":          {net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 0x0e}, []byte{0x88, 0xcc, 2, 7, 4}},
		"LACP":          {net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 2}, []byte{0x88, 0x09, 1, 1}},
		"CDP":           {net.HardwareAddr{1, 0, 0x0c, 0xcc, 0xcc, 0xcc}, []byte{0, 40, 0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0}},
	}) {
		m.add(what, func(mark []byte) [][]byte {
			return [][]byte{ethernet(f.to, a.mac, binary.BigEndian.Uint16(f.head), f.head[2:], mark)}
		})
	}
}

// wrapped are Geneve packets to the nodes: what is inside would come from another node (RFC 8926).
func (m *making) wrapped() {
	for what, through := range inOrder(map[string]net.HardwareAddr{
		"": m.router.mac, " through its node": m.management.mac,
	}) {
		m.add("another pod's frame in a tunnel to a node"+what, func(mark []byte) (out [][]byte) {
			inside := ethernet(macOf(m.elsewhere[0]), m.otherRouter, unix.ETH_P_IP,
				udp(netip.AddrPortFrom(m.sibling.addrs[0], 4000), netip.AddrPortFrom(m.elsewhere[0], 4000), mark))
			for _, to := range m.tunnels {
				from := m.attacker.addrs[0]
				if to.Is6() {
					from = m.attacker.addrs[1]
				}
				p := udp(netip.AddrPortFrom(from, 4000), netip.AddrPortFrom(to, 6081), m.tunnelled(inside))
				out = append(out, ethernet(through, m.attacker.mac, etherType(to), p))
			}
			return out
		})
		m.harmless("from its own address: what is inside must get no further than to the node's kernel")
	}
}
