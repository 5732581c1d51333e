package nicmove

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// Constants of rtnetlink(7).
const (
	protoKernel = 2
	protoRA     = 9 // learned from a router advertisement
	typeUnicast = 1
	tableMain   = 254
)

// Attr is a netlink attribute that is copied unchanged.
type Attr struct {
	Type  uint16 `json:"type"`
	Value string `json:"value"` // hexadecimal
}

// Route is a route of any table with all its attributes.
type Route struct {
	Dest     netip.Prefix `json:"dest"`            // 0.0.0.0/0 or ::/0 is the default
	From     netip.Prefix `json:"from,omitzero"`   // IPv6: for packets with this source
	Table    uint32       `json:"table"`           // 254 is main
	Type     uint8        `json:"type"`            // RTN_*
	Scope    uint8        `json:"scope,omitempty"` // RT_SCOPE_*
	Protocol uint8        `json:"protocol"`        // RTPROT_*
	TOS      uint8        `json:"tos,omitempty"`
	Metric   uint32       `json:"metric,omitempty"`
	Src      netip.Addr   `json:"src,omitzero"`
	Pref     uint8        `json:"pref,omitempty"`    // IPv6, RFC 4191 section 2.1
	Expires  uint32       `json:"expires,omitempty"` // seconds; 0: never
	Metrics  []Attr       `json:"metrics,omitempty"` // RTAX_*, by type: mtu, advmss, ...
	Other    []Attr       `json:"other,omitempty"`   // attributes that have no field here
	Hops     []Hop        `json:"hops"`              // at least one; several make a multipath route
}

// Hop is a next hop of a route.
type Hop struct {
	Via    netip.Addr `json:"via,omitzero"` // also an IPv6 gateway of an IPv4 route
	Link   string     `json:"link"`
	Weight int        `json:"weight,omitempty"` // of several hops, 1 to 256
	OnLink bool       `json:"onlink,omitempty"`
	Other  []Attr     `json:"other,omitempty"`
}

// Default reports whether r is a default route.
func (r Route) Default() bool { return r.Dest.Bits() == 0 }

// Uses reports whether one of the hops is on the link.
func (r Route) Uses(link string) bool {
	return slices.ContainsFunc(r.Hops, func(h Hop) bool { return h.Link == link })
}

// String has the form of ip(8).
func (r Route) String() string {
	if r.Expires == 0 {
		return r.identity()
	}
	return fmt.Sprintf("%s expires %ds", r.identity(), r.Expires)
}

// identity is the route's text without its lifetime, which changes by itself.
func (r Route) identity() string {
	var b strings.Builder
	b.WriteString("route ")
	if r.Type != typeUnicast {
		b.WriteString(named(typeNames(), uint32(r.Type)) + " ")
	}
	if r.Default() {
		b.WriteString("default")
		if r.Dest.Addr().Is6() {
			b.WriteString(" inet6")
		}
	} else {
		b.WriteString(r.Dest.String())
	}
	b.WriteString(option("from", r.From))
	if r.TOS != 0 {
		fmt.Fprintf(&b, " tos %#x", r.TOS)
	}
	if len(r.Hops) == 1 {
		b.WriteString(r.Hops[0].text())
	}
	if r.Table != tableMain {
		fmt.Fprintf(&b, " table %d", r.Table)
	}
	fmt.Fprintf(&b, " proto %s", named(protocolNames(), uint32(r.Protocol)))
	b.WriteString(option("scope", scope(r.Scope)) + option("src", r.Src) + option("metric", r.Metric))
	for _, m := range r.Metrics {
		b.WriteString(m.text(metricNames()))
	}
	b.WriteString(option("pref", r.Pref) + attrs(r.Other))
	if len(r.Hops) > 1 {
		for _, h := range r.Hops {
			fmt.Fprintf(&b, " nexthop%s weight %d", h.text(), h.Weight)
		}
	}
	return b.String()
}

func (h Hop) text() string {
	s := option("via", h.Via) + " dev " + h.Link
	if h.OnLink {
		s += " onlink"
	}
	return s + attrs(h.Other)
}

func attrs(list []Attr) string {
	s := ""
	for _, a := range list {
		s += fmt.Sprintf(" attribute %d 0x%s", a.Type, a.Value)
	}
	return s
}

// text prints an attribute with its name. Most are numbers in the machine's byte order.
func (a Attr) text(names map[uint32]string) string {
	name := named(names, uint32(a.Type))
	raw, err := hex.DecodeString(a.Value)
	number := binary.NativeEndian
	switch {
	case err != nil:
	case len(raw) == 1:
		return fmt.Sprintf(" %s %d", name, raw[0])
	case len(raw) == 4 && strings.HasSuffix(name, "port"): // struct fib_rule_port_range
		return fmt.Sprintf(" %s %d-%d", name, number.Uint16(raw), number.Uint16(raw[2:]))
	case len(raw) == 4:
		return fmt.Sprintf(" %s %d", name, number.Uint32(raw))
	case len(raw) == 8: // struct fib_rule_uid_range
		return fmt.Sprintf(" %s %d-%d", name, number.Uint32(raw), number.Uint32(raw[4:]))
	}
	return fmt.Sprintf(" %s 0x%s", name, a.Value)
}

// in reports whether list has the route, with any lifetime.
func (r Route) in(list []Route) bool {
	return slices.ContainsFunc(list, func(q Route) bool { return q.identity() == r.identity() })
}

// on returns the route with the hops on one link moved to another.
func (r Route) on(from, to string) Route {
	r.Hops = mapped(r.Hops, func(h Hop) Hop {
		if h.Link == from {
			h.Link = to
		}
		return h
	})
	return r
}

// multipathKey has the fields for which the kernel allows only one multipath route.
func (r Route) multipathKey() string {
	return fmt.Sprint(r.Dest, r.From, r.Table, r.TOS, r.Metric)
}

// learned reports whether the kernel made the route from a router advertisement. The kernel also prolongs and removes
// such routes.
func (r Route) learned(raMetric uint32) bool {
	return r.Protocol == protoRA && r.Metric == raMetric
}

// ofAgent reports whether the node agent made the route.
func (r Route) ofAgent() bool { return r.Protocol == hostplan.RouteProtocol }

func named(names map[uint32]string, n uint32) string {
	if s, ok := names[n]; ok {
		return s
	}
	return fmt.Sprint(n)
}

// scope is a scope's name; "" for 0, which is global.
func scope(n uint8) string {
	return named(map[uint32]string{0: "", 200: "site", 253: "link", 254: "host", 255: "nowhere"}, uint32(n))
}

func typeNames() map[uint32]string {
	return map[uint32]string{1: "unicast", 2: "local", 3: "broadcast", 4: "anycast", 5: "multicast", 6: "blackhole",
		7: "unreachable", 8: "prohibit", 9: "throw", 10: "nat"}
}

func protocolNames() map[uint32]string {
	return map[uint32]string{2: "kernel", 3: "boot", 4: "static", 9: "ra", 16: "dhcp"}
}

func metricNames() map[uint32]string {
	return map[uint32]string{
		1: "lock", 2: "mtu", 3: "window", 4: "rtt", 5: "rttvar", 6: "ssthresh", 7: "cwnd", 8: "advmss", 9: "reordering",
		10: "hoplimit", 11: "initcwnd", 12: "features", 13: "rto_min", 14: "initrwnd", 15: "quickack", 16: "congctl",
		17: "fastopen_no_cookie",
	}
}
