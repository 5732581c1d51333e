package ovs

import (
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/vswitchdb"
)

// BridgePort is a port of a bridge.
type BridgePort struct {
	Name   string
	Type   string // of its interface: "" for a kernel interface, "internal", "patch", ...
	Ofport int    // OpenFlow port number; 0 until ovs-vswitchd has opened it, -1 when it can't
	Tag    int    // VLAN id of an access port, 0 for none
	Bond   bool   // it has several interfaces; Type and Ofport are of none of them
}

// BridgeState is a bridge with its ports.
type BridgeState struct {
	Name      string
	Userspace bool         // its datapath_type is netdev
	Ports     []BridgePort // sorted by name, the local port among them
}

// Port finds a port of the bridge by name.
func (b BridgeState) Port(name string) (BridgePort, bool) {
	for _, p := range b.Ports {
		if p.Name == name {
			return p, true
		}
	}
	return BridgePort{}, false
}

// Bridge is the state of a bridge; ok is false when there is none of that name.
func (d *DB) Bridge(name string) (s BridgeState, ok bool) {
	row, ok := d.bridge(name)
	if !ok {
		return s, false
	}
	s = BridgeState{Name: name, Userspace: row.DatapathType == "netdev"}
	ports, ifaces := d.rows(vswitchdb.PortTable), d.rows(vswitchdb.InterfaceTable)
	for _, uuid := range row.Ports {
		port, ok := ports[uuid].(*vswitchdb.Port)
		if !ok {
			continue
		}
		p := BridgePort{Name: port.Name, Tag: value(port.Tag), Bond: len(port.Interfaces) > 1}
		if !p.Bond {
			if iface, ok := ifaces[port.Interfaces[0]].(*vswitchdb.Interface); ok {
				p.Type, p.Ofport = iface.Type, value(iface.Ofport)
			}
		}
		s.Ports = append(s.Ports, p)
	}
	slices.SortFunc(s.Ports, func(a, b BridgePort) int { return strings.Compare(a.Name, b.Name) })
	return s, true
}

// BridgeOf is the bridge that has an interface, also one in a bond; ok is false
// when none has.
func (d *DB) BridgeOf(iface string) (bridge string, ok bool) {
	row, ok := d.iface(iface)
	if !ok {
		return "", false
	}
	for _, r := range d.rows(vswitchdb.PortTable) {
		port := r.(*vswitchdb.Port)
		if !slices.Contains(port.Interfaces, row.UUID) {
			continue
		}
		for _, b := range d.bridgesOf(port.UUID) {
			return b.Name, true
		}
	}
	return "", false
}
