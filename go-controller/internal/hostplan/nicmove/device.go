package nicmove

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// Device is the configuration of a network interface. The zero Device means that the interface does not exist.
type Device struct {
	Link       hostplan.Link     `json:"link"`
	Addrs      []Addr            `json:"addrs,omitempty"` // in the kernel's order
	Routes     []Route           `json:"routes,omitempty"`
	Rules      []Rule            `json:"rules,omitempty"` // those that name the interface
	Neighbours []Neighbour       `json:"neighbours,omitempty"`
	Sysctls    map[string]string `json:"sysctls,omitempty"`  // "ipv6/accept_ra" is net/ipv6/conf/NAME/accept_ra
	Offloads   map[string]bool   `json:"offloads,omitempty"` // "gro" and "lro", if the driver has them
	Drop       bool              `json:"-"`                  // hostplan.IngressDrop is in effect
}

// Exists reports whether the interface exists.
func (d Device) Exists() bool { return d.Link.Name != "" }

// Carries reports whether the interface can carry traffic beyond its link: it has an address that is not link-local, or
// a route that the kernel did not make.
func (d Device) Carries() bool {
	global := func(a Addr) bool { return !a.Prefix.Addr().IsLinkLocalUnicast() }
	routed := func(r Route) bool { return r.Protocol != protoKernel }
	return slices.ContainsFunc(d.Addrs, global) || slices.ContainsFunc(d.Routes, routed)
}

// String returns the configuration as text, with an item on each line.
func (d Device) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, d.Link)
	lines(&b, d.Addrs)
	lines(&b, d.Routes)
	lines(&b, d.Rules)
	lines(&b, d.Neighbours)
	for _, k := range slices.Sorted(maps.Keys(d.Sysctls)) {
		fmt.Fprintln(&b, sysctl(d.Link.Name, k, d.Sysctls[k]))
	}
	for _, k := range slices.Sorted(maps.Keys(d.Offloads)) {
		fmt.Fprintln(&b, Offload{d.Link.Name, k, d.Offloads[k]})
	}
	if d.Drop {
		fmt.Fprintln(&b, hostplan.IngressDrop{Link: d.Link.Name})
	}
	return b.String()
}

func lines[T fmt.Stringer](b *strings.Builder, list []T) {
	for _, v := range list {
		fmt.Fprintln(b, v)
	}
}

// On returns the same configuration for an interface of another name.
func (d Device) On(name string) Device {
	from := d.Link.Name
	out := d
	out.Link.Name = name
	out.Addrs = mapped(d.Addrs, func(a Addr) Addr { return a.on(from, name) })
	out.Routes = mapped(d.Routes, func(r Route) Route { return r.on(from, name) })
	out.Rules = mapped(d.Rules, func(r Rule) Rule { return r.on(from, name) })
	out.Neighbours = mapped(d.Neighbours, func(n Neighbour) Neighbour { n.Link = name; return n })
	return out
}

func mapped[T any](list []T, f func(T) T) []T {
	out := make([]T, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// Aged returns the configuration as it is some seconds later: with shorter lifetimes, and without what has expired.
func (d Device) Aged(seconds uint32) Device {
	out := d
	out.Addrs = nil
	for _, a := range d.Addrs {
		if a.Valid != Forever {
			if a.Valid <= seconds {
				continue
			}
			a.Valid -= seconds
			a.Preferred -= min(a.Preferred, seconds)
		}
		out.Addrs = append(out.Addrs, a)
	}
	out.Routes = nil
	for _, r := range d.Routes {
		if r.Expires != 0 {
			if r.Expires <= seconds {
				continue
			}
			r.Expires -= seconds
		}
		out.Routes = append(out.Routes, r)
	}
	return out
}

// Neighbour is a permanent neighbour entry or a proxy entry, which has no MAC.
type Neighbour struct {
	hostplan.Neighbour
	Proxy bool `json:"proxy,omitempty"`
}

// String has the form of ip(8).
func (n Neighbour) String() string {
	if n.Proxy {
		return fmt.Sprintf("neigh proxy %s dev %s", n.IP, n.Link)
	}
	return n.Neighbour.String()
}

// Offload is an offload feature of an interface, as in `ethtool -K LINK NAME on|off`.
type Offload struct {
	Link, Name string
	On         bool
}

// String has the form of ethtool(8).
func (o Offload) String() string {
	state := "off"
	if o.On {
		state = "on"
	}
	return fmt.Sprintf("offload %s %s dev %s", o.Name, state, o.Link)
}

// Bridge is the Open vSwitch bridge for a NIC, without the NIC's port (ovs-vswitchd.conf.db(5)).
type Bridge struct {
	Name     string
	ID       string // external_ids:bridge-id
	NIC      string // external_ids:bridge-uplink
	FailMode string
	Datapath string // datapath_type: "system" or "netdev"
	MAC      string // other_config:hwaddr
	MTU      int    // mtu_request of the local port, bytes
}

// BridgeFor returns the bridge for a NIC: a plain switch with the NIC's MAC and MTU.
func BridgeFor(nic hostplan.Link, name, datapath string) Bridge {
	return Bridge{Name: name, ID: name, NIC: nic.Name, FailMode: "standalone", Datapath: datapath,
		MAC: nic.MAC.String(), MTU: nic.MTU}
}

// String returns the bridge on one line.
func (b Bridge) String() string {
	return fmt.Sprintf("bridge %s fail_mode=%s datapath_type=%s hwaddr=%s mtu_request=%d bridge-id=%s bridge-uplink=%s",
		b.Name, b.FailMode, b.Datapath, b.MAC, b.MTU, b.ID, b.NIC)
}

// Port is the NIC's port.
type Port struct{ Bridge, NIC string }

// String returns the port on one line.
func (p Port) String() string { return fmt.Sprintf("port %s on %s", p.NIC, p.Bridge) }

// Host is the state that a plan is compared with.
type Host struct {
	NIC, Bridge Device
	Row         Bridge            // zero: Open vSwitch has no such bridge
	PortOn      string            // the bridge that has the NIC as a port, "" for none
	Defaults    map[string]string // sysctls that a new interface gets, by the keys of Device.Sysctls
}

// Before reconstructs the NIC's configuration before a move without an undo file: what the NIC has, and what the bridge
// has from it.
func (h Host) Before() Device {
	d := h.NIC
	if !h.Bridge.Exists() {
		return d
	}
	if d.Sysctls[disableIPv6] == "1" {
		d.Sysctls = h.Bridge.Sysctls
	}
	bridge := h.Bridge.On(d.Link.Name)
	bridge.Routes = slices.DeleteFunc(bridge.Routes, Route.ofAgent)
	return d.Merged(bridge)
}

func sysctl(link, key, value string) hostplan.Sysctl {
	family, name, _ := strings.Cut(key, "/")
	return hostplan.Sysctl{Path: "net/" + family + "/conf/" + link + "/" + name, Link: link, Value: value}
}
