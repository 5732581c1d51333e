package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ip is the keyword of an address family in a match: "ip4" or "ip6".
func ip(is4 bool) string {
	if is4 {
		return "ip4"
	}
	return "ip6"
}

// from matches packets from any of the sources, which may be of either family (ovn-sb(5), Logical_Flow match).
func from(sources []netip.Prefix) string {
	var either []string
	for _, is4 := range []bool{true, false} {
		var among []string
		for _, p := range sources {
			switch {
			case p.Addr().Is4() != is4:
			case p.IsSingleIP():
				among = append(among, p.Addr().String())
			default:
				among = append(among, p.String())
			}
		}
		if len(among) > 0 {
			either = append(either, fmt.Sprintf("%s.src == {%s}", ip(is4), strings.Join(among, ", ")))
		}
	}
	return strings.Join(either, " || ")
}

// texts lists values as text, in the given order.
func texts[T fmt.Stringer](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.String()
	}
	return out
}

// sorted is a list in order.
func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
