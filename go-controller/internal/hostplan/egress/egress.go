package egress

import (
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Plan is the forwarding of the node's own pods. Until the node has subnets
// there is none.
//
// Linux stops taking router advertisements on an interface when forwarding of
// IPv6 is switched on, unless accept_ra is 2 (ip-sysctl.rst): interfaces that
// live by them get that first, so that the node is not cut off.
func Plan(f hostplan.Facts, c config.Node) (hostplan.Plan, error) {
	if len(f.Subnets) == 0 {
		return hostplan.Plan{}, nil
	}
	masquerade := hostplan.Masquerade{Except: names.ManagementInterface(c.Name)}
	var items []hostplan.Item
	for _, s := range f.Subnets {
		if s.Addr().Is4() {
			masquerade.V4 = s
			items = append(items, hostplan.Sysctl{Path: "net/ipv4/ip_forward", Value: "1"})
			continue
		}
		masquerade.V6 = s
		for _, link := range f.RALinks {
			items = append(items, hostplan.Sysctl{Path: "net/ipv6/conf/" + link + "/accept_ra", Link: link, Value: "2"})
		}
		items = append(items, hostplan.Sysctl{Path: "net/ipv6/conf/all/forwarding", Value: "1"})
	}
	return hostplan.Plan{Host: append(items, masquerade)}, nil
}
