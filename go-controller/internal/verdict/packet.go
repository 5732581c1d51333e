package verdict

import (
	"fmt"
	"net/netip"
	"strings"
)

// Packet is the first packet of a connection.
type Packet struct {
	// Inport and Outport are the logical switch ports through which the packet enters and leaves.
	Inport, Outport string
	// Src and Dst are of the same family.
	Src, Dst netip.Addr
	Protocol Protocol
	// SrcPort and DstPort are those of TCP, UDP and SCTP.
	SrcPort, DstPort uint16
	// ICMPType and ICMPCode are those of ICMP and ICMPv6.
	ICMPType, ICMPCode uint8
	// Fragment is true for a later fragment of a packet, which has no ports.
	Fragment bool
}

// Protocol is the number of an IP protocol.
type Protocol uint8

// The protocols that matches can name.
const (
	ICMP   Protocol = 1
	TCP    Protocol = 6
	UDP    Protocol = 17
	ICMPv6 Protocol = 58
	SCTP   Protocol = 132

	igmp Protocol = 2
)

// valid is an error when the packet can't exist.
func (p *Packet) valid() error {
	if !p.Src.IsValid() || !p.Dst.IsValid() || p.Src.Is4() != p.Dst.Is4() || p.Src.Is4In6() || p.Dst.Is4In6() {
		return fmt.Errorf("packet from %s to %s: want two addresses of the same family", p.Src, p.Dst)
	}
	return nil
}

func (p *Packet) ip4() bool { return p.Src.Is4() }

func (p *Packet) ip6() bool { return !p.ip4() }

// neighborDiscovery tells whether OVN lets the packet pass all ACLs.
func (p *Packet) neighborDiscovery() bool {
	return p.ip6() && p.Protocol == ICMPv6 && p.ICMPType >= 133 && p.ICMPType <= 136 && p.ICMPCode == 0
}

// predicate is the condition that a name such as tcp stands for, nil when the name is no predicate.
func predicate(name string) func(*Packet) bool {
	is := func(proto Protocol) func(*Packet) bool {
		return func(p *Packet) bool { return p.Protocol == proto }
	}
	icmp4 := func(p *Packet) bool { return p.ip4() && p.Protocol == ICMP }
	icmp6 := func(p *Packet) bool { return p.ip6() && p.Protocol == ICMPv6 }
	switch name {
	case "ip":
		return func(*Packet) bool { return true }
	case "ip4":
		return (*Packet).ip4
	case "ip6":
		return (*Packet).ip6
	case "tcp":
		return is(TCP)
	case "udp":
		return is(UDP)
	case "sctp":
		return is(SCTP)
	case "icmp":
		return func(p *Packet) bool { return icmp4(p) || icmp6(p) }
	case "ip4.mcast":
		return func(p *Packet) bool { return p.ip4() && p.Dst.IsMulticast() }
	case "ip6.mcast":
		return func(p *Packet) bool { return p.ip6() && p.Dst.IsMulticast() }
	case "eth.mcast": // also broadcast
		return func(p *Packet) bool {
			return p.Dst.IsMulticast() || p.Dst == netip.AddrFrom4([4]byte{255, 255, 255, 255})
		}
	case "igmp":
		return func(p *Packet) bool { return p.ip4() && p.Protocol == igmp }
	case "icmp4":
		return icmp4
	case "icmp6":
		return icmp6
	case "nd":
		return func(p *Packet) bool { return p.neighborDiscovery() && p.ICMPType >= 135 }
	case "ip.is_frag":
		return func(p *Packet) bool { return p.Fragment }
	case "ct.est": // the packet is the first of its connection
		return func(*Packet) bool { return false }
	case "ct.new":
		return func(*Packet) bool { return true }
	}
	return nil
}

// field is a part of a packet that matches can compare.
type field struct {
	// width is in bits; 0 for a field whose value is the name of a port.
	width int
	// nominal fields can be compared for equality only: OVN has no mask for them.
	nominal bool
	// requires is the predicate that a comparison implies.
	requires func(*Packet) bool
	number   func(*Packet) number
	port     func(*Packet) string
}

// fieldOf is the field of a name, nil when there is none.
func fieldOf(name string) *field {
	switch name {
	case "inport":
		return &field{nominal: true, requires: predicate("ip"), port: func(p *Packet) string { return p.Inport }}
	case "outport":
		return &field{nominal: true, requires: predicate("ip"), port: func(p *Packet) string { return p.Outport }}
	case "eth.type":
		return &field{width: 16, nominal: true, requires: predicate("ip"), number: etherType}
	case "ip.proto":
		return &field{width: 8, nominal: true, requires: predicate("ip"), number: func(p *Packet) number {
			return number{lo: uint64(p.Protocol)}
		}}
	}
	if name == "ct_mark.blocked" {
		return &field{width: 1, requires: predicate("ip"), number: func(*Packet) number { return number{} }}
	}
	of, part, _ := strings.Cut(name, ".")
	f := &field{requires: predicate(of)}
	switch of {
	case "ip4", "ip6":
		f.width, f.number = map[string]int{"ip4": 32, "ip6": 128}[of], map[string]func(*Packet) number{
			"src": func(p *Packet) number { return ofAddr(p.Src) },
			"dst": func(p *Packet) number { return ofAddr(p.Dst) },
		}[part]
	case "tcp", "udp", "sctp":
		protocol := f.requires
		f.requires = func(p *Packet) bool { return protocol(p) && !p.Fragment }
		f.width, f.number = 16, map[string]func(*Packet) number{
			"src": func(p *Packet) number { return number{lo: uint64(p.SrcPort)} },
			"dst": func(p *Packet) number { return number{lo: uint64(p.DstPort)} },
		}[part]
	case "icmp4", "icmp6":
		f.width, f.nominal, f.number = 8, true, map[string]func(*Packet) number{
			"type": func(p *Packet) number { return number{lo: uint64(p.ICMPType)} },
			"code": func(p *Packet) number { return number{lo: uint64(p.ICMPCode)} },
		}[part]
	}
	if f.number == nil {
		return nil
	}
	return f
}

func etherType(p *Packet) number {
	if p.ip4() {
		return number{lo: 0x0800}
	}
	return number{lo: 0x86dd}
}
