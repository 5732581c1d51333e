package nic

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
)

// userHZ is the unit of the times in struct rta_cacheinfo: 1/100 s on every
// architecture that Linux has (sysconf(3), _SC_CLK_TCK).
const userHZ = 100

// rtaNHID is RTA_NH_ID of linux/rtnetlink.h.
const rtaNHID = 30

// readAllRoutes reads the routes of all tables with a hop on the link, except those
// that the kernel itself keeps in its table "local".
func (n NICs) readAllRoutes(link string) ([]nicmove.Route, error) {
	links, err := n.items.LinkNames()
	if err != nil {
		return nil, err
	}
	var out []nicmove.Route
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		messages, err := dump(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, &nl.RtMsg{RtMsg: unix.RtMsg{Family: family}})
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			r, err := decodeRoute(m, links)
			if err != nil {
				return nil, err
			}
			if !r.Uses(link) || r.Table == unix.RT_TABLE_LOCAL && r.Protocol == unix.RTPROT_KERNEL {
				continue
			}
			if slices.ContainsFunc(r.Other, func(a nicmove.Attr) bool { return a.Type == rtaNHID }) {
				return nil, fmt.Errorf("%s uses a nexthop object (ip-nexthop(8)), which is bound to the interface: "+
					"give the route its gateway itself", r)
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// decodeRoute reads a struct rtmsg and its attributes (rtnetlink(7)).
func decodeRoute(m []byte, links map[int]string) (r nicmove.Route, err error) {
	attrs, err := nl.ParseRouteAttr(m[unix.SizeofRtMsg:])
	if err != nil {
		return r, err
	}
	h := nl.DeserializeRtMsg(m)
	r = nicmove.Route{TOS: h.Tos, Table: uint32(h.Table), Protocol: h.Protocol, Scope: h.Scope, Type: h.Type}
	dest, from := netip.IPv4Unspecified(), netip.IPv4Unspecified()
	if h.Family == unix.AF_INET6 {
		dest, from = netip.IPv6Unspecified(), netip.IPv6Unspecified()
	}
	hop := nicmove.Hop{OnLink: h.Flags&unix.RTNH_F_ONLINK != 0}
	for _, a := range attrs {
		v := a.Value
		switch a.Attr.Type &^ unix.NLA_F_NESTED {
		case unix.RTA_DST:
			dest, _ = netip.AddrFromSlice(v)
		case unix.RTA_SRC:
			from, _ = netip.AddrFromSlice(v)
		case unix.RTA_TABLE:
			r.Table = binary.NativeEndian.Uint32(v)
		case unix.RTA_PRIORITY:
			r.Metric = binary.NativeEndian.Uint32(v)
		case unix.RTA_PREFSRC:
			r.Src, _ = netip.AddrFromSlice(v)
		case unix.RTA_PREF:
			r.Pref = v[0]
		case unix.RTA_CACHEINFO: // struct rta_cacheinfo; the third is the expiry
			if expires := int32(binary.NativeEndian.Uint32(v[8:])); expires > 0 {
				r.Expires = uint32(max(1, expires/userHZ))
			}
		case unix.RTA_METRICS:
			r.Metrics, err = rawAttrs(v)
		case unix.RTA_MULTIPATH:
			r.Hops, err = decodeHops(v, links)
		case unix.RTA_PAD:
		default:
			if !takeHopAttr(&hop, a.Attr.Type, v, links) {
				r.Other = append(r.Other, rawAttr(a))
			}
		}
		if err != nil {
			return r, err
		}
	}
	r.Dest = netip.PrefixFrom(dest, int(h.Dst_len))
	if h.Src_len != 0 {
		r.From = netip.PrefixFrom(from, int(h.Src_len))
	}
	if len(r.Hops) == 0 {
		r.Hops = []nicmove.Hop{hop}
	}
	return r, nil
}

// takeHopAttr reads where a hop leads, and tells whether the attribute says that.
func takeHopAttr(h *nicmove.Hop, attr uint16, v []byte, links map[int]string) bool {
	switch attr {
	case unix.RTA_OIF:
		h.Link = links[int(binary.NativeEndian.Uint32(v))]
	case unix.RTA_GATEWAY:
		h.Via, _ = netip.AddrFromSlice(v)
	case unix.RTA_VIA: // struct rtvia: the family, then the address
		h.Via, _ = netip.AddrFromSlice(v[2:])
	default:
		return false
	}
	return true
}

// decodeHops reads a sequence of struct rtnexthop, each with attributes.
func decodeHops(b []byte, links map[int]string) ([]nicmove.Hop, error) {
	var out []nicmove.Hop
	for len(b) >= unix.SizeofRtNexthop {
		hop := nl.DeserializeRtNexthop(b).RtNexthop
		length := int(hop.Len)
		if length < unix.SizeofRtNexthop || length > len(b) {
			return nil, fmt.Errorf("reading the next hops of a route: one is %d bytes long, %d are left", length, len(b))
		}
		attrs, err := nl.ParseRouteAttr(b[unix.SizeofRtNexthop:length])
		if err != nil {
			return nil, fmt.Errorf("reading the next hops of a route: %w", err)
		}
		h := nicmove.Hop{Link: links[int(hop.Ifindex)], Weight: int(hop.Hops) + 1,
			OnLink: hop.Flags&unix.RTNH_F_ONLINK != 0}
		for _, a := range attrs {
			if !takeHopAttr(&h, a.Attr.Type, a.Value, links) {
				h.Other = append(h.Other, rawAttr(a))
			}
		}
		out = append(out, h)
		b = b[min(align(length), len(b)):]
	}
	return out, nil
}

// align is RTNH_ALIGN of linux/rtnetlink.h.
func align(n int) int { return (n + 3) &^ 3 }

// rawAttr keeps an attribute as it is.
func rawAttr(a syscall.NetlinkRouteAttr) nicmove.Attr {
	return nicmove.Attr{Type: a.Attr.Type, Value: hex.EncodeToString(a.Value)}
}

// rawAttrs keeps attributes as they are, by type.
func rawAttrs(b []byte) ([]nicmove.Attr, error) {
	attrs, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil, err
	}
	var out []nicmove.Attr
	for _, a := range attrs {
		out = append(out, rawAttr(a))
	}
	slices.SortFunc(out, byType)
	return out, nil
}

func byType(a, b nicmove.Attr) int { return cmp.Compare(a.Type, b.Type) }

// carryRoute adds or removes a route. With replace it exchanges the one to the same
// destination with the same table, TOS and metric. An added route comes after such
// others (NLM_F_APPEND), which stay.
func (n NICs) carryRoute(r nicmove.Route, replace, remove bool) error {
	names, err := n.items.LinkNames()
	if err != nil {
		return err
	}
	links := map[string]int{}
	for index, name := range names {
		links[name] = index
	}
	attrs, err := routeAttrs(r, links)
	if err != nil {
		return err
	}
	if remove {
		return send(unix.RTM_DELROUTE, 0, routeHeader(r), attrs)
	}
	attrs = numberAttr(attrs, unix.RTA_EXPIRES, r.Expires)
	flags := unix.NLM_F_CREATE | unix.NLM_F_APPEND
	if replace || len(r.Hops) > 1 && r.Dest.Addr().Is6() { // IPv6 adds hop by hop, and stumbles over one that is there
		flags = unix.NLM_F_CREATE | unix.NLM_F_REPLACE
	}
	return send(unix.RTM_NEWROUTE, flags, routeHeader(r), attrs)
}

func routeHeader(r nicmove.Route) *nl.RtMsg {
	h := &nl.RtMsg{RtMsg: unix.RtMsg{
		Family: uint8(familyOf(r.Dest.Addr())), Dst_len: uint8(r.Dest.Bits()), Tos: r.TOS, Table: tableInHeader(r.Table),
		Protocol: r.Protocol, Scope: r.Scope, Type: r.Type,
	}}
	if r.From.IsValid() {
		h.Src_len = uint8(r.From.Bits())
	}
	if len(r.Hops) == 1 && r.Hops[0].OnLink {
		h.Flags = unix.RTNH_F_ONLINK
	}
	return h
}

// tableInHeader is a table's number if a message's header has room for it. Otherwise an attribute alone tells.
func tableInHeader(table uint32) uint8 {
	if table > math.MaxUint8 {
		return unix.RT_TABLE_UNSPEC
	}
	return uint8(table)
}

func routeAttrs(r nicmove.Route, links map[string]int) ([]*nl.RtAttr, error) {
	out := []*nl.RtAttr{nl.NewRtAttr(unix.RTA_TABLE, nl.Uint32Attr(r.Table))}
	if !r.Default() {
		out = append(out, nl.NewRtAttr(unix.RTA_DST, r.Dest.Addr().AsSlice()))
	}
	out = addrAttr(out, unix.RTA_SRC, r.From.Addr())
	out = numberAttr(out, unix.RTA_PRIORITY, r.Metric)
	out = addrAttr(out, unix.RTA_PREFSRC, r.Src)
	if r.Pref != 0 {
		out = append(out, nl.NewRtAttr(unix.RTA_PREF, []byte{r.Pref}))
	}
	if len(r.Metrics) > 0 {
		nested := nl.NewRtAttr(unix.RTA_METRICS, nil)
		list, err := encodeAttrs(r.Metrics)
		if err != nil {
			return nil, err
		}
		for _, a := range list {
			nested.AddChild(a)
		}
		out = append(out, nested)
	}
	other, err := encodeAttrs(r.Other)
	if err != nil {
		return nil, err
	}
	out = append(out, other...)
	for _, h := range r.Hops {
		if links[h.Link] == 0 {
			return nil, unix.ENODEV
		}
	}
	if len(r.Hops) == 1 {
		oif := nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(uint32(links[r.Hops[0].Link])))
		return append(append(out, oif), gateway(r, r.Hops[0])...), nil
	}
	hops, err := encodeHops(r, links)
	return append(out, nl.NewRtAttr(unix.RTA_MULTIPATH, hops)), err
}

// gateway is where a hop leads: none for what is on the link.
func gateway(r nicmove.Route, h nicmove.Hop) []*nl.RtAttr {
	switch {
	case !h.Via.IsValid():
		return nil
	case h.Via.Is4() == r.Dest.Addr().Is4():
		return []*nl.RtAttr{nl.NewRtAttr(unix.RTA_GATEWAY, h.Via.AsSlice())}
	default:
		return []*nl.RtAttr{nl.NewRtAttr(unix.RTA_VIA, append(nl.Uint16Attr(uint16(familyOf(h.Via))), h.Via.AsSlice()...))}
	}
}

func encodeHops(r nicmove.Route, links map[string]int) ([]byte, error) {
	var out []byte
	for _, h := range r.Hops {
		other, err := encodeAttrs(h.Other)
		if err != nil {
			return nil, err
		}
		hop := nl.RtNexthop{RtNexthop: unix.RtNexthop{Hops: uint8(h.Weight - 1), Ifindex: int32(links[h.Link])}}
		if h.OnLink {
			hop.Flags = unix.RTNH_F_ONLINK
		}
		for _, a := range append(gateway(r, h), other...) {
			hop.Children = append(hop.Children, a)
		}
		out = append(out, hop.Serialize()...)
	}
	return out, nil
}

func encodeAttrs(list []nicmove.Attr) ([]*nl.RtAttr, error) {
	var out []*nl.RtAttr
	for _, a := range list {
		v, err := hex.DecodeString(a.Value)
		if err != nil {
			return nil, fmt.Errorf("reading attribute %d: %w", a.Type, err)
		}
		out = append(out, nl.NewRtAttr(int(a.Type), v))
	}
	return out, nil
}
