package hostnet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/nft"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Filter selects the kernel's events. Other goroutines call its functions.
type Filter struct {
	Link func(name string) bool
	Dest func(dest netip.Prefix) bool // of a route
}

// Watch calls changed whenever the kernel says that something which a plan may
// contain has altered: a link or a permanent neighbour of a link that the
// filter accepts, any address, a route that is ours or leads to a destination
// that the filter accepts, and our nftables table. It returns once it listens; it stops
// when ctx ends. When the kernel's messages are lost, lost is called with the
// reason and Watch must be called again.
//
// Linux does not tell of the IPv4 routes that go with an address or with a
// link that is taken down; it tells of the address or link.
func Watch(ctx context.Context, f Filter, changed func(), lost func(error)) error {
	stop := ctx.Done()
	links := make(chan netlink.LinkUpdate)
	addrs := make(chan netlink.AddrUpdate)
	routes := make(chan netlink.RouteUpdate)
	neighs := make(chan netlink.NeighUpdate)
	err := errors.Join(
		netlink.LinkSubscribeWithOptions(links, stop, netlink.LinkSubscribeOptions{ErrorCallback: lost}),
		netlink.AddrSubscribeWithOptions(addrs, stop, netlink.AddrSubscribeOptions{ErrorCallback: lost}),
		netlink.RouteSubscribeWithOptions(routes, stop, netlink.RouteSubscribeOptions{ErrorCallback: lost}),
		netlink.NeighSubscribeWithOptions(neighs, stop, netlink.NeighSubscribeOptions{ErrorCallback: lost}),
		nft.Watch(ctx, changed, lost))
	if err != nil {
		return fmt.Errorf("subscribing to the kernel's network events: %w", err)
	}
	go report(links, f.link, changed)
	go report(addrs, func(netlink.AddrUpdate) bool { return true }, changed)
	go report(routes, f.route, changed)
	go report(neighs, f.neigh, changed)
	return nil
}

// report calls changed for each relevant event until the channel is closed.
func report[T any](events <-chan T, relevant func(T) bool, changed func()) {
	for e := range events {
		if relevant(e) {
			changed()
		}
	}
}

func (f Filter) link(u netlink.LinkUpdate) bool { return f.Link(u.Attrs().Name) }

func (f Filter) route(u netlink.RouteUpdate) bool {
	dest, ok := ipnet.OfIPNet(u.Dst)
	return int(u.Protocol) == hostplan.RouteProtocol || ok && f.Dest(dest)
}

// neigh accepts permanent neighbours, and also those of a link that is gone.
func (f Filter) neigh(u netlink.NeighUpdate) bool {
	if u.State&netlink.NUD_PERMANENT == 0 && u.Type != unix.RTM_DELNEIGH {
		return false
	}
	link, err := netlink.LinkByIndex(u.LinkIndex)
	return err != nil || f.Link(link.Attrs().Name)
}

// Place is where an address is: its interface, its prefix length there, and the
// interface's MTU in bytes.
type Place struct {
	Link   string
	Prefix netip.Prefix
	MTU    int
}

// Find looks for the address on this host; ok is false when no interface has it.
func (n *Netlink) Find(a netip.Addr) (p Place, ok bool, err error) {
	addrs, err := n.items.Addrs(nil)
	if err != nil {
		return p, false, fmt.Errorf("reading addresses: %w", err)
	}
	for _, ka := range addrs {
		prefix, valid := ipnet.OfIPNet(ka.IPNet)
		if !valid || prefix.Addr() != a {
			continue
		}
		link, err := n.items.Handle.LinkByIndex(ka.LinkIndex)
		if err != nil {
			return p, false, fmt.Errorf("reading the interface of %s: %w", a, err)
		}
		return Place{link.Attrs().Name, prefix, link.Attrs().MTU}, true, nil
	}
	return p, false, nil
}

// SourceTo is this host's source address of packets to a.
func (n *Netlink) SourceTo(a netip.Addr) (netip.Addr, error) {
	routes, err := n.items.Handle.RouteGet(a.AsSlice())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("looking for the route to %s: %w", a, err)
	}
	for _, r := range routes {
		if src := ipnet.OfIP(r.Src); src.IsValid() {
			return src, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("looking for the route to %s: the kernel tells no source address", a)
}

// LinkNames is the set of the names of all interfaces.
func (n *Netlink) LinkNames() (map[string]bool, error) {
	byIndex, err := n.items.LinkNames()
	out := map[string]bool{}
	for _, name := range byIndex {
		out[name] = true
	}
	return out, err
}

// RALinks lists, sorted, the interfaces that have a route from an IPv6 router
// advertisement (RFC 4861).
func (n *Netlink) RALinks() ([]string, error) {
	filter := &netlink.Route{Table: unix.RT_TABLE_MAIN, Protocol: unix.RTPROT_RA}
	list, err := n.items.Routes(unix.AF_INET6, filter, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, fmt.Errorf("reading routes from router advertisements: %w", err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	nameOf, err := n.items.LinkNames()
	if err != nil {
		return nil, err
	}
	var out []string
	add := func(index int) {
		if name, ok := nameOf[index]; ok { // not one that has gone meanwhile
			out = append(out, name)
		}
	}
	for _, r := range list {
		add(r.LinkIndex)
		for _, hop := range r.MultiPath { // of several routers
			add(hop.LinkIndex)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
