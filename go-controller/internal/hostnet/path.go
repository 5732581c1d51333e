package hostnet

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Path is how the kernel sends packets to an address.
type Path struct {
	Link string
	Via  netip.Addr // the router, the zero Addr when it is on the link
	MTU  int        // bytes: of the route, where it has one or path MTU discovery has found one, else of the link
}

// PathTo is the path from one of this host's addresses to another host's. ok
// is false when there is no route.
func (n *Netlink) PathTo(from, to netip.Addr) (p Path, ok bool, err error) {
	routes, err := n.items.Handle.RouteGetWithOptions(to.AsSlice(), &netlink.RouteGetOptions{SrcAddr: from.AsSlice()})
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || err == nil && len(routes) == 0 {
		return p, false, nil
	}
	if err != nil {
		return p, false, fmt.Errorf("looking for the route from %s to %s: %w", from, to, err)
	}
	r := routes[0]
	link, err := n.items.Handle.LinkByIndex(r.LinkIndex)
	if err != nil {
		return p, false, fmt.Errorf("reading the interface of the route to %s: %w", to, err)
	}
	return Path{link.Attrs().Name, ipnet.OfIP(r.Gw), cmp.Or(r.MTU, link.Attrs().MTU)}, true, nil
}

// HasFamily tells whether the kernel has a generic netlink family, such as
// "ovs_datapath", which its Open vSwitch module brings.
func (n *Netlink) HasFamily(name string) (bool, error) {
	_, err := netlink.GenlFamilyGet(name)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking the kernel for %s: %w", name, err)
	}
	return true, nil
}
