package mgmtport

import (
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// hairpin lets the node reach itself through a service. Answers go back through the
// port that the packets came from. The route's source address is for UDP servers that
// let the kernel choose one: they answer from the address by which the cluster knows
// the node, at which a host-network backend is asked.
func hairpin(link string, ends []attachment, own []netip.Addr) []hostplan.Item {
	rewrite := hostplan.Hairpin{Link: link}
	var routes []hostplan.Item
	for _, e := range ends {
		seen := netip.MustParseAddr(names.HairpinSource6)
		if e.address.Is4() {
			seen, rewrite.V4 = netip.MustParseAddr(names.HairpinSource4), e.address
		} else {
			rewrite.V6 = e.address
		}
		r := hostplan.Route{Dest: netip.PrefixFrom(seen, seen.BitLen()), Via: e.router, Link: link,
			Protocol: hostplan.RouteProtocol}
		if i := slices.IndexFunc(own, func(a netip.Addr) bool { return a.Is4() == seen.Is4() }); i >= 0 {
			r.Src = own[i]
		}
		routes = append(routes, r)
	}
	return append(routes, rewrite)
}
