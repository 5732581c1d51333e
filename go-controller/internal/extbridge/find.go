package extbridge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// Switch is the Open vSwitch database; *ovs.DB is one.
type Switch interface {
	Bridge(name string) (ovs.BridgeState, bool)
	BridgeOf(iface string) (bridge string, ok bool)
}

// Kernel is the host's network; *hostnet.Netlink is one.
type Kernel interface {
	Device(name string) (d hostnet.Device, ok bool, err error)
	VLANDevice(parent string, id int) (name string, ok bool, err error)
}

// Query says which bridge is meant.
type Query struct {
	Interface string // the NIC, or the bridge if it has but one
	Bridge    string // the bridge that must have the NIC; "" for whichever has it
	Node      string // whose patch port is meant; "" for that of any node, if there is but one
	VLAN      int    // VLAN id of the gateway's network on the NIC, 0 for none
}

// Find reads the bridge and the interface with its addresses. Its errors say what to do
// about them.
func Find(s Switch, k Kernel, q Query) (*hostplan.External, error) {
	bridge, uplink, err := findUplink(s, k, q)
	if err != nil {
		return nil, err
	}
	e := &hostplan.External{
		Bridge: bridge.Name, Userspace: bridge.Userspace, Uplink: uplink.Name, UplinkPort: uplink.Ofport, VLAN: q.VLAN,
	}
	if local, ok := bridge.Port(bridge.Name); ok {
		e.LocalTag = local.Tag
	}
	if err := findPatch(e, bridge, q.Node); err != nil {
		return nil, err
	}
	return e, findLink(e, k)
}

// findUplink finds the bridge and its NIC.
func findUplink(s Switch, k Kernel, q Query) (b ovs.BridgeState, uplink ovs.BridgePort, err error) {
	b, isBridge := s.Bridge(q.Interface)
	if !isBridge {
		name, ok := s.BridgeOf(q.Interface)
		if !ok {
			return b, uplink, noBridge(k, q.Interface)
		}
		if b, ok = s.Bridge(name); !ok {
			return b, uplink, fmt.Errorf("bridge %s, which has %s, is gone", name, q.Interface)
		}
	}
	if q.Bridge != "" && b.Name != q.Bridge {
		return b, uplink, fmt.Errorf("interface %s is on bridge %s, not on %s", q.Interface, b.Name, q.Bridge)
	}
	if isBridge {
		uplink, err = onlyNIC(b)
	} else {
		uplink, err = portOf(b, q.Interface)
	}
	if err == nil && uplink.Tag != 0 {
		err = fmt.Errorf("port %s has tag=%d: take it off; for a gateway in that VLAN give --gateway-vlan-id %d", uplink.Name,
			uplink.Tag, uplink.Tag)
	}
	return b, uplink, err
}

func noBridge(k Kernel, name string) error {
	_, there, err := k.Device(name)
	switch {
	case err != nil:
		return err
	case there:
		return fmt.Errorf("interface %s is not in a bridge: run `ovnkube nics-to-bridge %s`", name, name)
	}
	return fmt.Errorf("there is no interface or bridge %s on this host", name)
}

func portOf(b ovs.BridgeState, iface string) (ovs.BridgePort, error) {
	p, ok := b.Port(iface)
	if !ok || p.Bond {
		return p, fmt.Errorf("interface %s is in a bond of Open vSwitch on bridge %s: flows can't name it; "+
			"bond the NICs in the kernel and put that into the bridge", iface, b.Name)
	}
	return p, nil
}

// onlyNIC is the bridge's only port that is neither internal nor a patch port.
func onlyNIC(b ovs.BridgeState) (nic ovs.BridgePort, err error) {
	var found []string
	for _, p := range b.Ports {
		if p.Bond || p.Type != "internal" && p.Type != "patch" {
			nic, found = p, append(found, p.Name)
		}
	}
	switch {
	case len(found) == 0:
		return nic, fmt.Errorf("bridge %s has no NIC: run `ovnkube nics-to-bridge`, or `ovs-vsctl add-port %s NIC`", b.Name,
			b.Name)
	case len(found) > 1:
		return nic, fmt.Errorf("bridge %s has %s: say which is the NIC that leads outside", b.Name, strings.Join(found, ", "))
	case nic.Bond:
		return portOf(b, nic.Name)
	}
	return nic, nil
}

// findPatch finds the patch port that ovn-controller made for the gateway's localnet
// port.
func findPatch(e *hostplan.External, b ovs.BridgeState, node string) error {
	if node != "" {
		e.Patch = names.PatchPort(names.LocalnetPort(b.Name, node))
		p, _ := b.Port(e.Patch)
		e.PatchPort = max(p.Ofport, 0)
		return nil
	}
	beforeNode, afterNode, _ := strings.Cut(names.PatchPort(names.LocalnetPort(b.Name, "\x00")), "\x00")
	var found []string
	for _, p := range b.Ports {
		if p.Type == "patch" && strings.HasPrefix(p.Name, beforeNode) && strings.HasSuffix(p.Name, afterNode) {
			e.Patch, e.PatchPort, found = p.Name, max(p.Ofport, 0), append(found, p.Name)
		}
	}
	if len(found) > 1 {
		return fmt.Errorf("bridge %s has the patch ports of several gateways: %s", b.Name, strings.Join(found, ", "))
	}
	return nil
}

// findLink finds the interface with the addresses: the bridge's own, or for a VLAN that
// the bridge does not untag, the VLAN device on it.
func findLink(e *hostplan.External, k Kernel) error {
	e.Link = e.Bridge
	if e.VLAN != 0 && e.LocalTag == 0 {
		name, ok, err := k.VLANDevice(e.Bridge, e.VLAN)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("the host is not in VLAN %d: neither has port %s tag=%d, "+
				"nor is there a VLAN device with that id on %s", e.VLAN, e.Bridge, e.VLAN, e.Bridge)
		}
		e.Link = name
	}
	d, ok, err := k.Device(e.Link)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("interface %s does not exist: Open vSwitch has not made it (is ovs-vswitchd running?)", e.Link)
	}
	e.MAC, e.MTU, e.Addrs, e.NextHops = d.MAC, d.MTU, d.Addrs, slices.Clone(d.NextHops)
	uplink, ok, err := k.Device(e.Uplink)
	e.UplinkDown = ok && !uplink.Carrier // one that is no device of the kernel's is Open vSwitch's business
	return err
}
