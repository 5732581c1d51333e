package gateway

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// L3 is the gateway as its annotation tells the cluster: the external bridge's MAC and,
// for each family, an address and the next hop. network is the bridge's name in
// ovn-bridge-mappings, see Network. Configured next hops, at most one per family,
// replace those of the default routes. Each must be on the network of an address. A
// family without an address has no gateway; none at all is an error.
func L3(e hostplan.External, node, network string, c config.Gateway) (*annotation.L3Gateway, error) {
	g := &annotation.L3Gateway{
		Bridge: e.Bridge, Network: network, Port: names.LocalnetPort(e.Bridge, node), MAC: e.MAC, VLAN: e.VLAN, MTU: e.MTU,
		Rampout:  c.Rampout,
		NodePort: true, // by the node's kernel, as on every node
	}
	for _, is4 := range []bool{true, false} {
		if err := addFamily(g, e, is4, c.NextHops); err != nil {
			return nil, err
		}
	}
	if len(g.IPs) == 0 {
		return nil, fmt.Errorf("interface %s of the external bridge %s has no address that others could reach: "+
			"the gateway shares the host's", e.Link, e.Bridge)
	}
	return g, nil
}

func addFamily(g *annotation.L3Gateway, e hostplan.External, is4 bool, given []netip.Addr) error {
	of := func(a netip.Addr) bool { return a.Is4() == is4 }
	var addrs []netip.Prefix
	for _, p := range e.Addrs {
		if of(p.Addr()) {
			addrs = append(addrs, p)
		}
	}
	hops := e.NextHops
	if slices.ContainsFunc(given, of) {
		hops = given
	}
	i := slices.IndexFunc(hops, of)
	if i < 0 {
		g.IPs = append(g.IPs, addrs[:min(1, len(addrs))]...)
		return nil
	}
	hop := hops[i]
	at := slices.IndexFunc(addrs, func(p netip.Prefix) bool { return p.Contains(hop) && p.Addr() != hop })
	if at < 0 && slices.Contains(given, hop) && !hop.IsLinkLocalUnicast() {
		return fmt.Errorf("--gateway-nexthop %s: no address of %s is on its network, it has %v", hop, e.Link, e.Addrs)
	}
	if len(addrs) == 0 {
		return nil
	}
	g.IPs = append(g.IPs, addrs[max(at, 0)])
	g.NextHops = append(g.NextHops, hop)
	return nil
}
