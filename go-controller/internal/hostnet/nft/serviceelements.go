package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// changeElements makes the changes in one transaction, with one message for removals
// and one for additions in each set.
func changeElements(changes []hostplan.ServiceChange) error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening nftables: %w", err)
	}
	drops, adds := map[string][]nftables.SetElement{}, map[string][]nftables.SetElement{}
	for _, change := range changes {
		if err := errors.Join(gather(drops, change.Drop), gather(adds, change.Add)); err != nil {
			return err
		}
	}
	for _, write := range []struct {
		elements map[string][]nftables.SetElement
		do       func(*nftables.Set, []nftables.SetElement) error
	}{{drops, c.SetDeleteElements}, {adds, c.SetAddElements}} {
		for _, s := range serviceSets() {
			if list := write.elements[s.name()]; len(list) > 0 {
				if err := write.do(s.set(), list); err != nil {
					return fmt.Errorf("writing nftables set %s: %w", s.name(), err)
				}
			}
		}
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("writing nftables elements: %w", err)
	}
	return nil
}

// gather adds an entry to the elements of its set, unless it is the zero one.
func gather(to map[string][]nftables.SetElement, e hostplan.ServiceEntry) error {
	if e == (hostplan.ServiceEntry{}) {
		return nil
	}
	s := serviceSetOf(e)
	element, err := s.element(e)
	to[s.name()] = append(to[s.name()], element)
	return err
}

// element is an entry as a set element; entry is the inverse.
func (s serviceSet) element(e hostplan.ServiceEntry) (out nftables.SetElement, err error) {
	protocol, err := protocolNumber(e.Protocol)
	if err != nil {
		return out, err
	}
	if !s.ports {
		out.Key = e.At.Addr().AsSlice()
	}
	out.Key = append(out.Key, protocol, 0, 0, 0) // each part fills whole registers
	out.Key = append(binary.BigEndian.AppendUint16(out.Key, e.At.Port()), 0, 0)
	if e.Kind.HasBuckets() {
		out.Key = binary.NativeEndian.AppendUint32(out.Key, uint32(e.Bucket))
	}
	if e.Kind == hostplan.AllowEntry {
		out.KeyEnd = append(slices.Clone(out.Key), ipnet.Last(e.From).AsSlice()...)
	}
	if e.Kind.HasFrom() {
		out.Key = append(out.Key, e.From.Masked().Addr().AsSlice()...)
	}
	if e.Kind.HasTo() {
		out.Val = append(binary.BigEndian.AppendUint16(e.To.Addr().AsSlice(), e.To.Port()), 0, 0)
	}
	return out, nil
}

// entry reads an element. One that is not ours becomes an entry that is not wanted, and
// is removed so.
func (s serviceSet) entry(e nftables.SetElement) hostplan.ServiceEntry {
	out := hostplan.ServiceEntry{Kind: s.kind}
	key, size := e.Key, int(s.family.size)
	at := netip.IPv4Unspecified()
	if size > 4 {
		at = netip.IPv6Unspecified()
	}
	if !s.ports && len(key) >= size {
		at, _ = netip.AddrFromSlice(key[:size])
		key = key[size:]
	}
	if len(key) >= 8 {
		out.Protocol = protocolName(key[0])
		out.At = netip.AddrPortFrom(at, binary.BigEndian.Uint16(key[4:]))
		key = key[8:]
	}
	if s.kind.HasBuckets() && len(key) >= 4 {
		out.Bucket = int(binary.NativeEndian.Uint32(key))
		key = key[4:]
	}
	if s.kind.HasFrom() && len(key) == size {
		from, _ := netip.AddrFromSlice(key)
		last := from
		if s.kind == hostplan.AllowEntry && len(e.KeyEnd) >= size {
			last, _ = netip.AddrFromSlice(e.KeyEnd[len(e.KeyEnd)-size:])
		}
		out.From = rangePrefix(from, last)
	}
	if s.kind.HasTo() && len(e.Val) >= size+2 {
		to, _ := netip.AddrFromSlice(e.Val[:size])
		out.To = netip.AddrPortFrom(to, binary.BigEndian.Uint16(e.Val[size:]))
	}
	return out
}

// rangePrefix is the prefix from first to last, or first alone when they are the ends
// of none.
func rangePrefix(first, last netip.Addr) netip.Prefix {
	for bits := range first.BitLen() {
		if p := netip.PrefixFrom(first, bits); p.Masked() == p && ipnet.Last(p) == last {
			return p
		}
	}
	return ipnet.Single(first)
}
