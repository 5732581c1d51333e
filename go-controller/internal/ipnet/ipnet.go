package ipnet

import (
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"slices"
)

// Nth returns p's network address plus n; Nth(10.0.0.0/24, 1) is 10.0.0.1. ok is false if the result is not in p.
func Nth(p netip.Prefix, n uint64) (a netip.Addr, ok bool) {
	p = p.Masked()
	hi, lo := words(p.Addr())
	lo, carry := bits.Add64(lo, n, 0)
	hi += carry
	a = fromWords(hi, lo, p.Addr().Is4())
	return a, a.IsValid() && p.Contains(a)
}

// Single is the prefix of one address: 10.0.0.1/32, fd00::1/128.
func Single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Index is the inverse of Nth: the distance of a from p's network address. ok is false if a is not in p or the
// distance does not fit 64 bits.
func Index(p netip.Prefix, a netip.Addr) (n uint64, ok bool) {
	p = p.Masked()
	if !p.Contains(a) {
		return 0, false
	}
	bh, bl := words(p.Addr())
	ah, al := words(a)
	lo, borrow := bits.Sub64(al, bl, 0)
	hi, _ := bits.Sub64(ah, bh, borrow)
	return lo, hi == 0
}

// MaxNumber is the largest n for which Nth addresses are allocated, even in larger subnets: up to there, MACOf derives
// a different MAC from each IPv6 address.
const MaxNumber = 1<<32 - 1

// Size returns the number of addresses in p, saturated at 1<<63.
func Size(p netip.Prefix) uint64 {
	host := p.Addr().BitLen() - p.Bits()
	if host >= 63 {
		return 1 << 63
	}
	return 1 << host
}

// Subnet returns the n-th subnet of p with the given prefix length. ok is false if there is no such subnet.
func Subnet(p netip.Prefix, length int, n uint64) (s netip.Prefix, ok bool) {
	if length < p.Bits() || length > p.Addr().BitLen() || n >= Subnets(p, length) {
		return netip.Prefix{}, false
	}
	p = p.Masked()
	hi, lo := words(p.Addr())
	shift := uint(p.Addr().BitLen() - length)
	addHi, addLo := shl(n, shift)
	lo, carry := bits.Add64(lo, addLo, 0)
	hi += addHi + carry
	return netip.PrefixFrom(fromWords(hi, lo, p.Addr().Is4()), length), true
}

// Subnets returns how many subnets of the given prefix length p has, saturated at 1<<63.
func Subnets(p netip.Prefix, length int) uint64 {
	if length < p.Bits() {
		return 0
	}
	if length-p.Bits() >= 63 {
		return 1 << 63
	}
	return 1 << (length - p.Bits())
}

// Last returns p's last address: the broadcast address of an IPv4 subnet.
func Last(p netip.Prefix) netip.Addr {
	p = p.Masked()
	hi, lo := words(p.Addr())
	mh, ml := ^uint64(0), ^uint64(0)
	switch host := uint(p.Addr().BitLen() - p.Bits()); {
	case host == 0:
		mh, ml = 0, 0
	case host < 64:
		mh, ml = 0, 1<<host-1
	case host == 64:
		mh = 0
	case host < 128:
		mh = 1<<(host-64) - 1
	}
	return fromWords(hi|mh, lo|ml, p.Addr().Is4())
}

// MAC is an Ethernet address.
type MAC [6]byte

// String is the usual form, lower case with colons.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// MarshalText implements encoding.TextMarshaler: the form of String.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *MAC) UnmarshalText(text []byte) error {
	mac, err := net.ParseMAC(string(text))
	if err != nil || len(mac) != len(m) {
		return fmt.Errorf("parsing MAC %q: want six bytes such as 0a:58:0a:80:02:02", text)
	}
	copy(m[:], mac)
	return nil
}

// MACOf derives the MAC of the interface with address a: 0a:58, followed by the IPv4 address, or by the exclusive or
// of the IPv6 address's four words. In one subnet, the MACs of IPv6 addresses that differ only in the low 32 bits
// are different: see MaxNumber.
func MACOf(a netip.Addr) MAC {
	a = a.Unmap()
	var w uint32
	if a.Is4() {
		b := a.As4()
		w = binary.BigEndian.Uint32(b[:])
	} else {
		b := a.As16()
		for i := 0; i < 16; i += 4 {
			w ^= binary.BigEndian.Uint32(b[i:])
		}
	}
	m := MAC{0x0a, 0x58}
	binary.BigEndian.PutUint32(m[2:], w)
	return m
}

// MACFor derives the MAC of an interface with several addresses: from the first IPv4 address if there is one, else
// from the first address.
func MACFor(addrs []netip.Addr) MAC {
	for _, a := range addrs {
		if a.Unmap().Is4() {
			return MACOf(a)
		}
	}
	if len(addrs) == 0 {
		return MAC{}
	}
	return MACOf(addrs[0])
}

// MACOfText derives the MAC of an interface without an address from a text that no other interface has.
func MACOfText(text string) MAC {
	sum := sha1.Sum([]byte(text))
	m := MAC{0x0a, 0x58}
	copy(m[2:], sum[:])
	return m
}

// Derived is true for a MAC that begins as those that are derived from addresses or texts.
func (m MAC) Derived() bool { return m[0] == 0x0a && m[1] == 0x58 }

// Unicast is true for a MAC that an interface can have.
func (m MAC) Unicast() bool { return m[0]&1 == 0 && m != MAC{} }

// LinkLocal derives the link-local address of an interface from its MAC (RFC 4291, appendix A).
func LinkLocal(m MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3],
		14: m[4], 15: m[5]})
}

// Minus is the range p without the others, as ranges in order. All are masked.
func Minus(p netip.Prefix, without []netip.Prefix) []netip.Prefix {
	var inside []netip.Prefix
	for _, w := range without {
		switch {
		case !w.Overlaps(p):
		case w.Bits() <= p.Bits():
			return nil
		default:
			inside = append(inside, w)
		}
	}
	if len(inside) == 0 {
		return []netip.Prefix{p}
	}
	var out []netip.Prefix
	for i := range uint64(2) {
		if half, ok := Subnet(p, p.Bits()+1, i); ok {
			out = append(out, Minus(half, inside)...)
		}
	}
	return out
}

// Sort puts prefixes into the project's usual order: IPv4 before IPv6, then by address and length. Addr.Compare
// orders IPv4 before IPv6.
func Sort(ps []netip.Prefix) {
	slices.SortFunc(ps, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
}

// Union returns the prefixes of a, followed by those of b that are not in a.
func Union(a, b []netip.Prefix) []netip.Prefix {
	out := slices.Clone(a)
	for _, p := range b {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// Prefixes parses and sorts addresses or networks with prefix lengths. It leaves malformed ones out.
func Prefixes(list []string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		if p, err := netip.ParsePrefix(s); err == nil {
			out = append(out, p)
		}
	}
	Sort(out)
	return out
}

// FirstOf returns the first address of a family. ok is false if there is none.
func FirstOf(addrs []netip.Addr, is4 bool) (a netip.Addr, ok bool) {
	i := slices.IndexFunc(addrs, func(a netip.Addr) bool { return a.Is4() == is4 })
	if i < 0 {
		return netip.Addr{}, false
	}
	return addrs[i], true
}

// OfIP converts an address of package net. It returns the zero Addr for none.
func OfIP(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// OfIPNet converts a network of package net. ok is false for none.
func OfIPNet(n *net.IPNet) (p netip.Prefix, ok bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	ones, _ := n.Mask.Size()
	p = netip.PrefixFrom(OfIP(n.IP), ones)
	return p, p.Addr().IsValid()
}

// IPNet converts a prefix to a network of package net. The address keeps its host part.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Addrs returns the address part of each prefix.
func Addrs(ps []netip.Prefix) []netip.Addr {
	out := make([]netip.Addr, len(ps))
	for i, p := range ps {
		out[i] = p.Addr()
	}
	return out
}

func words(a netip.Addr) (hi, lo uint64) {
	if a.Is4() {
		b := a.As4()
		return 0, uint64(binary.BigEndian.Uint32(b[:]))
	}
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

// fromWords is the inverse of words. It returns the zero Addr if the words do not fit an IPv4 address.
func fromWords(hi, lo uint64, is4 bool) netip.Addr {
	if is4 {
		if hi != 0 || lo > 1<<32-1 {
			return netip.Addr{}
		}
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(lo))
		return netip.AddrFrom4(b)
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], hi)
	binary.BigEndian.PutUint64(b[8:], lo)
	return netip.AddrFrom16(b)
}

func shl(n uint64, shift uint) (hi, lo uint64) {
	switch {
	case shift >= 128:
		return 0, 0
	case shift >= 64:
		return n << (shift - 64), 0
	case shift == 0:
		return 0, n
	default:
		return n >> (64 - shift), n << shift
	}
}
