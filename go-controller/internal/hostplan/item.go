package hostplan

import (
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// RouteProtocol marks the routes that are ours in the kernel's tables
// (rtnetlink(7), rtm_protocol; 78 is assigned to nobody). A route with this
// mark that is not wanted is removed; other routes are left alone.
const RouteProtocol = 78

// Item is one piece of kernel state. Items are comparable with ==. Two items with the
// same Key are two states of one thing.
type Item interface {
	Key() string
	Device() string // the link it depends on, "" for none
	String() string // as ip(8) or sysctl(8) would show it
}

// Link is a network interface. It is never made or removed here: Open vSwitch does
// that.
type Link struct {
	Name string
	MAC  ipnet.MAC
	MTU  int // bytes
	Up   bool
}

// Key implements Item.
func (l Link) Key() string { return "link " + l.Name }

// Device implements Item.
func (l Link) Device() string { return "" }

// String implements Item.
func (l Link) String() string {
	state := "down"
	if l.Up {
		state = "up"
	}
	return fmt.Sprintf("link %s mac %s mtu %d %s", l.Name, l.MAC, l.MTU, state)
}

// Addr is an address of a link.
type Addr struct {
	Link   string
	Prefix netip.Prefix // the address itself with the subnet's length
}

// Key implements Item.
func (a Addr) Key() string { return "addr " + a.Link + " " + a.Prefix.String() }

// Device implements Item.
func (a Addr) Device() string { return a.Link }

// String implements Item.
func (a Addr) String() string { return fmt.Sprintf("addr %s dev %s", a.Prefix, a.Link) }

// Route is a route of the main table.
type Route struct {
	Dest     netip.Prefix
	Via      netip.Addr
	Link     string
	Src      netip.Addr
	Protocol int // RouteProtocol when it is ours
}

// Key implements Item.
func (r Route) Key() string { return "route " + r.Dest.String() }

// Device implements Item.
func (r Route) Device() string { return r.Link }

// String implements Item.
func (r Route) String() string {
	s := "route " + r.Dest.String()
	if r.Via.IsValid() {
		s += " via " + r.Via.String()
	}
	s += " dev " + r.Link
	if r.Src.IsValid() {
		s += " src " + r.Src.String()
	}
	return fmt.Sprintf("%s proto %d", s, r.Protocol)
}

// Neighbour is a permanent ARP or neighbour discovery entry.
type Neighbour struct {
	Link string
	IP   netip.Addr
	MAC  ipnet.MAC
}

// Key implements Item.
func (n Neighbour) Key() string { return "neigh " + n.Link + " " + n.IP.String() }

// Device implements Item.
func (n Neighbour) Device() string { return n.Link }

// String implements Item.
func (n Neighbour) String() string {
	return fmt.Sprintf("neigh %s lladdr %s dev %s permanent", n.IP, n.MAC, n.Link)
}

// Sysctl is a kernel parameter.
type Sysctl struct {
	Path  string // below /proc/sys, with slashes: an interface name may have dots
	Link  string // the link in Path, "" for none
	Value string
}

// Key implements Item.
func (s Sysctl) Key() string { return "sysctl " + s.Path }

// Device implements Item.
func (s Sysctl) Device() string { return s.Link }

// String implements Item.
func (s Sysctl) String() string { return "sysctl " + s.Path + " = " + s.Value }

// Masquerade gives packets of the node's pods the address of the interface through
// which they leave, unless that is the management port. It drops packets that can't be
// translated.
type Masquerade struct {
	V4, V6 netip.Prefix // the pods of each family; the zero Prefix for none
	Except string       // the management port's interface, which need not exist
}

// Key implements Item.
func (m Masquerade) Key() string { return "masquerade" }

// Device implements Item.
func (m Masquerade) Device() string { return "" }

// String implements Item.
func (m Masquerade) String() string {
	s := "masquerade"
	for _, p := range []netip.Prefix{m.V4, m.V6} {
		if p.IsValid() {
			s += " " + p.String()
		}
	}
	return s + " unless through " + m.Except
}

// IngressDrop makes the kernel drop every frame that arrives on a link, before
// any protocol sees it and after packet sockets (AF_PACKET) have. It is for a
// NIC in a bridge of the userspace datapath: Open vSwitch reads such a NIC
// through a packet socket, and without this the kernel would answer the same
// frames a second time. (The kernel's datapath takes the frames itself and
// needs nothing of the sort.) Whoever puts a NIC into a bridge with
// datapath_type=netdev wants this; a link that does not exist is absent, as
// with Link.
type IngressDrop struct{ Link string }

// Key implements Item.
func (d IngressDrop) Key() string { return "ingress-drop " + d.Link }

// Device implements Item.
func (d IngressDrop) Device() string { return d.Link }

// String implements Item.
func (d IngressDrop) String() string { return "ingress-drop dev " + d.Link }
