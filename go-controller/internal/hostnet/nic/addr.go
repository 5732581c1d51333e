package nic

import (
	"encoding/binary"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
)

// Attributes of an address that golang.org/x/sys/unix has no name for
// (linux/if_addr.h).
const (
	ifaRTPriority = 9
	ifaProto      = 11
)

// readAddrs reads the addresses of an interface in the kernel's order. The library's
// reader leaves out the metric and the protocol.
func readAddrs(link string, index int) ([]nicmove.Addr, error) {
	messages, err := dump(unix.RTM_GETADDR, unix.RTM_NEWADDR, nl.NewIfAddrmsg(unix.AF_UNSPEC))
	if err != nil {
		return nil, err
	}
	var out []nicmove.Addr
	for _, m := range messages {
		if len(m) < unix.SizeofIfAddrmsg || int(nl.DeserializeIfAddrmsg(m).Index) != index {
			continue
		}
		a, ok, err := decodeAddr(m)
		if err != nil {
			return nil, err
		}
		if ok {
			a.Link = link
			out = append(out, a)
		}
	}
	return out, nil
}

// decodeAddr reads a struct ifaddrmsg and its attributes (rtnetlink(7)).
func decodeAddr(m []byte) (a nicmove.Addr, ok bool, err error) {
	attrs, err := nl.ParseRouteAttr(m[unix.SizeofIfAddrmsg:])
	if err != nil {
		return a, false, err
	}
	header := nl.DeserializeIfAddrmsg(m)
	a = nicmove.Addr{Flags: uint32(header.Flags), Scope: header.Scope, Valid: nicmove.Forever, Preferred: nicmove.Forever}
	var local, address netip.Addr
	for _, at := range attrs {
		switch at.Attr.Type {
		case unix.IFA_LOCAL:
			local, _ = netip.AddrFromSlice(at.Value)
		case unix.IFA_ADDRESS:
			address, _ = netip.AddrFromSlice(at.Value)
		case unix.IFA_BROADCAST:
			a.Broadcast, _ = netip.AddrFromSlice(at.Value)
		case unix.IFA_LABEL:
			a.Label = nl.BytesToString(at.Value)
		case unix.IFA_FLAGS:
			a.Flags = binary.NativeEndian.Uint32(at.Value)
		case unix.IFA_CACHEINFO:
			info := nl.DeserializeIfaCacheInfo(at.Value)
			a.Preferred, a.Valid = info.Prefered, info.Valid
		case ifaRTPriority:
			a.Metric = binary.NativeEndian.Uint32(at.Value)
		case ifaProto:
			a.Protocol = at.Value[0]
		}
	}
	if !local.IsValid() {
		local = address
	}
	if local != address {
		a.Peer = address
	}
	a.Flags &= nicmove.SettableFlags | nicmove.FlagTentative | nicmove.FlagDADFailed
	a.Prefix = netip.PrefixFrom(local, int(header.Prefixlen))
	return a, local.IsValid(), nil
}

// carryAddr adds or removes an address. An IPv6 address that its former
// interface had checked for duplicates (RFC 4862 section 5.4) is not checked
// again, which would take a second; the flag for that does not stay.
func (n NICs) carryAddr(a nicmove.Addr, remove bool) error {
	link, err := n.items.Handle.LinkByName(a.Link)
	if err != nil {
		return err
	}
	index := uint32(link.Attrs().Index)
	if remove {
		return send(unix.RTM_DELADDR, 0, addrHeader(a, index), addrAttrs(a))
	}
	checked := a.Prefix.Addr().Is6() && a.Flags&(nicmove.FlagTentative|nicmove.FlagDADFailed|nicmove.FlagNoDAD) == 0
	first := a
	if checked {
		first.Flags |= nicmove.FlagNoDAD
	}
	if err := send(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, addrHeader(first, index),
		addrAttrs(first)); err != nil || !checked {
		return err
	}
	return send(unix.RTM_NEWADDR, unix.NLM_F_REPLACE, addrHeader(a, index), addrAttrs(a))
}

func addrHeader(a nicmove.Addr, index uint32) *nl.IfAddrmsg {
	h := nl.NewIfAddrmsg(familyOf(a.Prefix.Addr()))
	h.Prefixlen, h.Scope, h.Index = uint8(a.Prefix.Bits()), a.Scope, index
	return h
}

func addrAttrs(a nicmove.Addr) []*nl.RtAttr {
	address := a.Prefix.Addr()
	if a.Peer.IsValid() {
		address = a.Peer
	}
	info := nl.IfaCacheInfo{IfaCacheinfo: unix.IfaCacheinfo{Prefered: a.Preferred, Valid: a.Valid}}
	out := []*nl.RtAttr{
		nl.NewRtAttr(unix.IFA_LOCAL, a.Prefix.Addr().AsSlice()),
		nl.NewRtAttr(unix.IFA_ADDRESS, address.AsSlice()),
		nl.NewRtAttr(unix.IFA_FLAGS, nl.Uint32Attr(a.Flags&nicmove.SettableFlags)),
		nl.NewRtAttr(unix.IFA_CACHEINFO, info.Serialize()),
	}
	out = addrAttr(out, unix.IFA_BROADCAST, a.Broadcast)
	out = textAttr(out, unix.IFA_LABEL, a.Label)
	out = numberAttr(out, ifaRTPriority, a.Metric)
	if a.Protocol != 0 {
		out = append(out, nl.NewRtAttr(ifaProto, []byte{a.Protocol}))
	}
	return out
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
