package mgmtport

import (
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/encap"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// attachment is the management port's end in one of the node's subnets.
type attachment struct {
	subnet  netip.Prefix
	router  netip.Addr // .1
	address netip.Addr // .2
}

// Plan is the management port. Until the node has subnets there is none.
func Plan(f hostplan.Facts, c config.Node) (hostplan.Plan, error) {
	if len(f.Subnets) == 0 {
		return hostplan.Plan{}, nil
	}
	ends, err := attachments(f.Subnets)
	if err != nil {
		return hostplan.Plan{}, err
	}
	mtu, err := encap.MTU(f, c)
	if err != nil {
		return hostplan.Plan{}, err
	}
	link := names.ManagementInterface(c.Name)
	mac := macOf(ends, func(e attachment) netip.Addr { return e.address })
	p := hostplan.Plan{OVS: hostplan.OVS{Ports: []hostplan.Port{{
		Bridge: names.IntegrationBridge, Name: link, Type: "internal", MAC: mac.String(), MTU: mtu,
		ExternalIDs: map[string]string{names.IfaceID: names.ManagementPort(c.Name)},
	}}}}
	p.Host = append(p.Host, sysctls(link, ends, c)...)
	p.Host = append(p.Host, hostplan.Link{Name: link, MAC: mac, MTU: mtu, Up: true})
	p.Host = append(p.Host, addresses(link, ends)...)
	p.Host = append(p.Host, routes(link, ends, c)...)
	p.Host = append(p.Host, hairpin(link, ends, f.Own)...)
	return p, nil
}

// MAC is the management port's MAC, which the Node annotation tells too; ok is
// false until the node has subnets.
func MAC(subnets []netip.Prefix) (mac ipnet.MAC, ok bool) {
	ends, err := attachments(subnets)
	if err != nil || len(ends) == 0 {
		return ipnet.MAC{}, false
	}
	return macOf(ends, func(e attachment) netip.Addr { return e.address }), true
}

func attachments(subnets []netip.Prefix) ([]attachment, error) {
	var out []attachment
	for _, s := range subnets {
		router, ok1 := subnet.Router(s)
		address, ok2 := subnet.Management(s)
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("node subnet %s: too small for the router's .1 and the management port's .2", s)
		}
		out = append(out, attachment{s, router, address})
	}
	return out, nil
}

func macOf(ends []attachment, pick func(attachment) netip.Addr) ipnet.MAC {
	var addrs []netip.Addr
	for _, e := range ends {
		addrs = append(addrs, pick(e))
	}
	return ipnet.MACFor(addrs)
}

func addresses(link string, ends []attachment) (out []hostplan.Item) {
	routerMAC := macOf(ends, func(e attachment) netip.Addr { return e.router })
	for _, e := range ends {
		out = append(out, hostplan.Addr{Link: link, Prefix: netip.PrefixFrom(e.address, e.subnet.Bits())})
	}
	for _, e := range ends {
		out = append(out, hostplan.Neighbour{Link: link, IP: e.router, MAC: routerMAC})
	}
	return out
}

func routes(link string, ends []attachment, c config.Node) (out []hostplan.Item) {
	var ranges []netip.Prefix
	for _, s := range c.ClusterSubnets {
		ranges = append(ranges, s.CIDR)
	}
	ranges = append(ranges, c.ServiceCIDRs...)
	for _, dest := range ranges {
		for _, e := range ends {
			if e.subnet.Addr().Is4() != dest.Addr().Is4() || e.subnet == dest {
				continue // the address's own on-link route is there
			}
			out = append(out, hostplan.Route{Dest: dest, Via: e.router, Link: link, Src: e.address,
				Protocol: hostplan.RouteProtocol})
		}
	}
	return out
}

// sysctls lets the management port receive packets from pods and services whatever the
// node's other routes are (rp_filter 2 is loose, Linux ip-sysctl.rst), and forward
// them. No pod is a router: where the node takes advertisements also while it forwards
// (accept_ra 2), it takes none from here. With the userspace datapath the kernel also sees the frames that Open vSwitch
// reads from its devices: arp_ignore keeps it from answering ARP for an address of
// another device.
func sysctls(link string, ends []attachment, c config.Node) (out []hostplan.Item) {
	if c.DatapathType == config.DatapathNetdev {
		out = append(out, hostplan.Sysctl{Path: "net/ipv4/conf/all/arp_ignore", Value: "1"})
	}
	for _, e := range ends {
		if e.subnet.Addr().Is4() {
			out = append(out,
				hostplan.Sysctl{Path: "net/ipv4/conf/" + link + "/forwarding", Link: link, Value: "1"},
				hostplan.Sysctl{Path: "net/ipv4/conf/" + link + "/rp_filter", Link: link, Value: "2"})
			continue
		}
		out = append(out,
			hostplan.Sysctl{Path: "net/ipv6/conf/" + link + "/disable_ipv6", Link: link, Value: "0"},
			hostplan.Sysctl{Path: "net/ipv6/conf/" + link + "/accept_ra", Link: link, Value: "0"},
			hostplan.Sysctl{Path: "net/ipv6/conf/" + link + "/forwarding", Link: link, Value: "1"})
	}
	return out
}
