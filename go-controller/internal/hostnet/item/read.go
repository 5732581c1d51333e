package item

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Netlink is the Kernel of links, addresses, routes, neighbours and sysctls. Handle
// says of which network namespace; sysctls are those of the calling thread's.
type Netlink struct{ Handle *netlink.Handle }

// Read implements Kernel.
func (n Netlink) Read(want []hostplan.Item) ([]hostplan.Item, error) {
	var out []hostplan.Item
	dests := map[netip.Prefix]bool{}
	for _, w := range want {
		var items []hostplan.Item
		var err error
		switch w := w.(type) {
		case hostplan.Link:
			items, err = n.readLink(w.Name)
		case hostplan.Sysctl:
			items, err = readSysctl(w)
		case hostplan.Route:
			dests[w.Dest] = true
		}
		if err != nil {
			return nil, err
		}
		out = append(out, items...)
	}
	routes, err := n.readRoutes(dests)
	return append(out, routes...), err
}

// Link is the interface of this name; nil when there is none.
func (n Netlink) Link(name string) (netlink.Link, error) {
	link, err := n.Handle.LinkByName(name)
	if IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading interface %s: %w", name, err)
	}
	return link, nil
}

// LinkNames are the names of all interfaces by index.
func (n Netlink) LinkNames() (map[int]string, error) {
	links, err := n.Links()
	if err != nil {
		return nil, fmt.Errorf("reading interfaces: %w", err)
	}
	out := map[int]string{}
	for _, l := range links {
		out[l.Attrs().Index] = l.Attrs().Name
	}
	return out, nil
}

// readLink reads the link, its addresses other than link-local ones, and its
// permanent neighbours.
func (n Netlink) readLink(name string) ([]hostplan.Item, error) {
	link, err := n.Link(name)
	if link == nil || err != nil {
		return nil, err
	}
	a := link.Attrs()
	l := hostplan.Link{Name: name, MTU: a.MTU, Up: a.Flags&net.FlagUp != 0}
	copy(l.MAC[:], a.HardwareAddr)
	out := []hostplan.Item{l}
	addrs, err := n.Addrs(link)
	if err != nil {
		return nil, fmt.Errorf("reading addresses of %s: %w", name, err)
	}
	for _, ad := range addrs {
		if p, ok := ipnet.OfIPNet(ad.IPNet); ok && !p.Addr().IsLinkLocalUnicast() {
			out = append(out, hostplan.Addr{Link: name, Prefix: p})
		}
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := n.Neighbours(a.Index, family)
		if err != nil {
			return nil, fmt.Errorf("reading neighbours of %s: %w", name, err)
		}
		for _, ne := range list {
			ip := ipnet.OfIP(ne.IP)
			if ip.IsValid() && ne.LinkIndex == a.Index && ne.State&netlink.NUD_PERMANENT != 0 &&
				len(ne.HardwareAddr) == len(l.MAC) {
				out = append(out, hostplan.Neighbour{Link: name, IP: ip, MAC: ipnet.MAC(ne.HardwareAddr)})
			}
		}
	}
	return out, nil
}

// readRoutes reads the main table's routes that are ours or lead to one of dests. Of
// several routes to one destination ours counts, then the first.
func (n Netlink) readRoutes(dests map[netip.Prefix]bool) ([]hostplan.Item, error) {
	nameOf, err := n.LinkNames()
	if err != nil {
		return nil, err
	}
	filter := &netlink.Route{Table: unix.RT_TABLE_MAIN}
	var ours, others []hostplan.Item
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := n.Routes(family, filter, netlink.RT_FILTER_TABLE)
		if err != nil {
			return nil, fmt.Errorf("reading routes: %w", err)
		}
		for _, kr := range list {
			r, ok := routeOf(kr, family, nameOf)
			switch {
			case !ok:
			case r.Protocol == hostplan.RouteProtocol:
				ours = append(ours, r)
			case dests[r.Dest]:
				others = append(others, r)
			}
		}
	}
	for _, r := range others {
		same := func(o hostplan.Item) bool { return o.Key() == r.Key() }
		if !slices.ContainsFunc(ours, same) {
			ours = append(ours, r)
		}
	}
	return ours, nil
}

// Links lists all interfaces.
func (n Netlink) Links() ([]netlink.Link, error) { return Dump(n.Handle.LinkList) }

// Addrs lists the addresses of an interface, or with nil those of all.
func (n Netlink) Addrs(link netlink.Link) ([]netlink.Addr, error) {
	return Dump(func() ([]netlink.Addr, error) { return n.Handle.AddrList(link, netlink.FAMILY_ALL) })
}

// Neighbours lists the neighbours of a family at an interface.
func (n Netlink) Neighbours(index, family int) ([]netlink.Neigh, error) {
	return Dump(func() ([]netlink.Neigh, error) { return n.Handle.NeighList(index, family) })
}

// Routes lists the routes of a family that are like the filter in what mask says (netlink.RT_FILTER_TABLE and so on).
func (n Netlink) Routes(family int, filter *netlink.Route, mask uint64) ([]netlink.Route, error) {
	return Dump(func() ([]netlink.Route, error) { return n.Handle.RouteListFiltered(family, filter, mask) })
}

// Dump asks for a whole table of the kernel, such as all links. A table that changes while it is told has to be asked
// for again: the answer may lack what was there all the time.
func Dump[T any](ask func() (T, error)) (out T, err error) {
	const attempts = 5
	for range attempts {
		if out, err = ask(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return out, err
}

// defaultMetric is the metric of a route added without one.
func defaultMetric(family int) int {
	if family == unix.AF_INET6 {
		return 1024 // IP6_RT_PRIO_USER
	}
	return 0
}

// routeOf is a kernel route as a plan has it. ok is false for a route of another metric
// or type, which can't collide with a planned one.
func routeOf(kr netlink.Route, family int, nameOf map[int]string) (r hostplan.Route, ok bool) {
	dest, ok := ipnet.OfIPNet(kr.Dst)
	r = hostplan.Route{
		Dest: dest, Via: ipnet.OfIP(kr.Gw), Link: nameOf[kr.LinkIndex], Src: ipnet.OfIP(kr.Src), Protocol: int(kr.Protocol),
	}
	return r, ok && kr.Priority == defaultMetric(family) && kr.Type == unix.RTN_UNICAST
}

func readSysctl(s hostplan.Sysctl) ([]hostplan.Item, error) {
	b, err := os.ReadFile(filepath.Join("/proc/sys", s.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading sysctl %s: %w", s.Path, err)
	}
	s.Value = strings.TrimSpace(string(b))
	return []hostplan.Item{s}, nil
}

// IsAbsent tells whether netlink's error means that there is no such link.
func IsAbsent(err error) bool {
	var nf netlink.LinkNotFoundError
	return errors.As(err, &nf) || errors.Is(err, unix.ENODEV)
}
