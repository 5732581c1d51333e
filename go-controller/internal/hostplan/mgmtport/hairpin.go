package mgmtport

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// hairpin lets the node reach itself through a service. Answers go back through the
// port that the packets came from. The route's source address is for UDP servers that
// let the kernel choose one: they answer from the address by which the cluster knows
// the node, at which a host-network backend is asked.
func hairpin(link string, ends []attachment, own []netip.Addr) []hostplan.Item {
	rewrite := hostplan.Hairpin{Link: link}
	var routes []hostplan.Item
	for _, e := range ends {
		if e.address.Is4() {
			rewrite.V4 = e.address
		} else {
			rewrite.V6 = e.address
		}
		seen := hostplan.HairpinSource(e.address)
		source, _ := ipnet.FirstOf(own, seen.Is4())
		routes = append(routes, hostplan.Route{Dest: ipnet.Single(seen), Via: e.router, Link: link,
			Src: source, Protocol: hostplan.RouteProtocol})
	}
	return append(routes, rewrite)
}
