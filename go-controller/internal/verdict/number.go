package verdict

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// number is an unsigned integer of 128 bits, as long as the longest field.
type number struct{ hi, lo uint64 }

func (n number) and(m number) number { return number{n.hi & m.hi, n.lo & m.lo} }

func (n number) compare(m number) int {
	return cmp.Or(cmp.Compare(n.hi, m.hi), cmp.Compare(n.lo, m.lo))
}

// width is the number of bits that n needs.
func (n number) width() int {
	if n.hi != 0 {
		return 64 + bits.Len64(n.hi)
	}
	return bits.Len64(n.lo)
}

// ones is a number whose lowest bits are set.
func ones(count int) number {
	if count > 64 {
		return number{1<<(count-64) - 1, ^uint64(0)}
	}
	return number{0, 1<<count - 1}
}

// prefixMask is the mask of a prefix length in a field of this width.
func prefixMask(length, width int) number {
	all, host := ones(width), ones(width-length)
	return number{all.hi &^ host.hi, all.lo &^ host.lo}
}

func ofAddr(a netip.Addr) number {
	if a.Is4() {
		b := a.As4()
		return number{0, uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return number{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// form is how a constant is written.
type form int

const (
	decimal form = iota
	hexadecimal
	ipv4
	ipv6
	mac
)

// constant is an integer constant of a match or of an address set.
type constant struct {
	value, mask number
	masked      bool
	form        form
}

// equals tells whether a field's value is the constant in the bits of the mask.
func (c constant) equals(n number) bool { return n.and(c.mask) == c.value }

// width is the least number of bits of a field that can be compared with c.
func (c constant) width() int {
	switch {
	case c.masked:
		return c.mask.width()
	case c.form == ipv4:
		return 32
	case c.form == ipv6:
		return 128
	case c.form == mac:
		return 48
	}
	return c.value.width()
}

// parseConstant reads a constant such as 80, 0x10/0xf0, 10.0.0.0/8 or fd00::1.
func parseConstant(text string) (constant, error) {
	value, mask, masked := strings.Cut(text, "/")
	out := constant{mask: ones(128), masked: masked}
	var err error
	if out.value, out.form, err = parseNumber(value); err != nil || !masked {
		return out, err
	}
	m, form, err := parseNumber(mask)
	length := int(min(m.lo, 128))
	switch {
	case err != nil:
		return out, err
	case form == out.form:
		out.mask = m
	case out.form == ipv4 && form == decimal && length <= 32:
		out.mask = prefixMask(length, 32)
	case out.form == ipv6 && form == decimal && m.lo <= 128:
		out.mask = prefixMask(length, 128)
	case out.form == decimal && out.value == number{} && form == hexadecimal:
		out.form, out.mask = hexadecimal, m
	default:
		return out, fmt.Errorf("%s: want a mask of the form of the value, or a prefix length", text)
	}
	out.value = out.value.and(out.mask)
	return out, nil
}

func parseNumber(text string) (number, form, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		if a.Is4() {
			return ofAddr(a), ipv4, nil
		}
		return ofAddr(a), ipv6, nil
	}
	if hex, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		if n, err := strconv.ParseUint(hex, 16, 64); err == nil {
			return number{0, n}, hexadecimal, nil
		}
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && (text == "0" || text[0] != '0') {
		return number{0, n}, decimal, nil
	}
	var m ipnet.MAC
	if err := m.UnmarshalText([]byte(text)); err == nil {
		var b [8]byte
		copy(b[2:], m[:])
		return number{0, binary.BigEndian.Uint64(b[:])}, mac, nil
	}
	return number{}, 0, fmt.Errorf("%q: want a decimal number without leading zeros, a hexadecimal number of at most 64 "+
		"bits, an IP address or a MAC", text)
}
