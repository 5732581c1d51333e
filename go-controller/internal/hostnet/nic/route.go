package nic

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"

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
	links, err := n.linkNames()
	if err != nil {
		return nil, err
	}
	var out []nicmove.Route
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		header := make([]byte, unix.SizeofRtMsg)
		header[0] = family
		messages, err := dump(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, header)
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

func (n NICs) linkNames() (map[int]string, error) {
	list, err := n.items.Handle.LinkList()
	if err != nil {
		return nil, fmt.Errorf("reading interfaces: %w", err)
	}
	out := map[int]string{}
	for _, l := range list {
		out[l.Attrs().Index] = l.Attrs().Name
	}
	return out, nil
}

// decodeRoute reads a struct rtmsg and its attributes (rtnetlink(7)).
func decodeRoute(m []byte, links map[int]string) (r nicmove.Route, err error) {
	attrs, err := nl.ParseRouteAttr(m[unix.SizeofRtMsg:])
	if err != nil {
		return r, err
	}
	r = nicmove.Route{TOS: m[3], Table: uint32(m[4]), Protocol: m[5], Scope: m[6], Type: m[7]}
	dest, from := netip.IPv4Unspecified(), netip.IPv4Unspecified()
	if m[0] == unix.AF_INET6 {
		dest, from = netip.IPv6Unspecified(), netip.IPv6Unspecified()
	}
	hop := nicmove.Hop{OnLink: binary.NativeEndian.Uint32(m[8:])&unix.RTNH_F_ONLINK != 0}
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
				r.Other = append(r.Other, nicmove.Attr{Type: a.Attr.Type, Value: hex.EncodeToString(v)})
			}
		}
		if err != nil {
			return r, err
		}
	}
	r.Dest = netip.PrefixFrom(dest, int(m[1]))
	if m[2] != 0 {
		r.From = netip.PrefixFrom(from, int(m[2]))
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
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofRtNexthop || length > len(b) {
			return nil, fmt.Errorf("reading the next hops of a route: one is %d bytes long, %d are left", length, len(b))
		}
		attrs, err := nl.ParseRouteAttr(b[unix.SizeofRtNexthop:length])
		if err != nil {
			return nil, fmt.Errorf("reading the next hops of a route: %w", err)
		}
		h := nicmove.Hop{Link: links[int(binary.NativeEndian.Uint32(b[4:]))], Weight: int(b[3]) + 1,
			OnLink: b[2]&unix.RTNH_F_ONLINK != 0}
		for _, a := range attrs {
			if !takeHopAttr(&h, a.Attr.Type, a.Value, links) {
				h.Other = append(h.Other, nicmove.Attr{Type: a.Attr.Type, Value: hex.EncodeToString(a.Value)})
			}
		}
		out = append(out, h)
		b = b[min(align(length), len(b)):]
	}
	return out, nil
}

// align is RTNH_ALIGN of linux/rtnetlink.h.
func align(n int) int { return (n + 3) &^ 3 }

// rawAttrs keeps attributes as they are, by type.
func rawAttrs(b []byte) ([]nicmove.Attr, error) {
	attrs, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil, err
	}
	var out []nicmove.Attr
	for _, a := range attrs {
		out = append(out, nicmove.Attr{Type: a.Attr.Type, Value: hex.EncodeToString(a.Value)})
	}
	slices.SortFunc(out, func(a, b nicmove.Attr) int { return int(a.Type) - int(b.Type) })
	return out, nil
}

// carryRoute adds or removes a route. With replace it exchanges the one to the same
// destination with the same table, TOS and metric. An added route comes after such
// others (NLM_F_APPEND), which stay.
func (n NICs) carryRoute(r nicmove.Route, replace, remove bool) error {
	names, err := n.linkNames()
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
		return send(unix.RTM_DELROUTE, 0, routeHeader(r), attrs...)
	}
	if r.Expires != 0 {
		attrs = append(attrs, nl.NewRtAttr(unix.RTA_EXPIRES, nl.Uint32Attr(r.Expires)))
	}
	flags := unix.NLM_F_CREATE | unix.NLM_F_APPEND
	if replace || len(r.Hops) > 1 && r.Dest.Addr().Is6() { // IPv6 adds hop by hop, and stumbles over one that is there
		flags = unix.NLM_F_CREATE | unix.NLM_F_REPLACE
	}
	return send(unix.RTM_NEWROUTE, flags, routeHeader(r), attrs...)
}

func routeHeader(r nicmove.Route) []byte {
	h := make([]byte, unix.SizeofRtMsg)
	h[0], h[1], h[3] = byte(familyOf(r.Dest.Addr())), byte(r.Dest.Bits()), r.TOS
	if r.From.IsValid() {
		h[2] = byte(r.From.Bits())
	}
	if r.Table < 256 { // else RTA_TABLE alone tells
		h[4] = byte(r.Table)
	}
	h[5], h[6], h[7] = r.Protocol, r.Scope, r.Type
	if len(r.Hops) == 1 && r.Hops[0].OnLink {
		binary.NativeEndian.PutUint32(h[8:], unix.RTNH_F_ONLINK)
	}
	return h
}

func routeAttrs(r nicmove.Route, links map[string]int) ([]*nl.RtAttr, error) {
	out := []*nl.RtAttr{nl.NewRtAttr(unix.RTA_TABLE, nl.Uint32Attr(r.Table))}
	if !r.Default() {
		out = append(out, nl.NewRtAttr(unix.RTA_DST, r.Dest.Addr().AsSlice()))
	}
	if r.From.IsValid() {
		out = append(out, nl.NewRtAttr(unix.RTA_SRC, r.From.Addr().AsSlice()))
	}
	if r.Metric != 0 {
		out = append(out, nl.NewRtAttr(unix.RTA_PRIORITY, nl.Uint32Attr(r.Metric)))
	}
	if r.Src.IsValid() {
		out = append(out, nl.NewRtAttr(unix.RTA_PREFSRC, r.Src.AsSlice()))
	}
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
		start := len(out)
		out = append(out, 0, 0, 0, byte(h.Weight-1))
		if h.OnLink {
			out[start+2] = unix.RTNH_F_ONLINK
		}
		out = binary.NativeEndian.AppendUint32(out, uint32(links[h.Link]))
		for _, a := range append(gateway(r, h), other...) {
			out = append(out, a.Serialize()...)
		}
		binary.NativeEndian.PutUint16(out[start:], uint16(len(out)-start))
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
