package topology

import (
	"fmt"
	"net/netip"
	"strings"
)

// destination matches what is for an address of a range.
func destination(p netip.Prefix) string {
	if p.Addr().Is6() {
		return "ip6.dst == " + p.String()
	}
	return "ip4.dst == " + p.String()
}

// from matches what has one of these as its source, of either family
// (ovn-sb(5), Logical_Flow match).
func from(sources []netip.Prefix) string {
	var either []string
	for _, f := range []struct {
		field string
		is4   bool
	}{{"ip4.src", true}, {"ip6.src", false}} {
		var among []string
		for _, p := range sources {
			switch {
			case p.Addr().Is4() != f.is4:
			case p.IsSingleIP():
				among = append(among, p.Addr().String())
			default:
				among = append(among, p.String())
			}
		}
		if len(among) > 0 {
			either = append(either, fmt.Sprintf("%s == {%s}", f.field, strings.Join(among, ", ")))
		}
	}
	return strings.Join(either, " || ")
}
