package underlay

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/northbound-net/northbound/test/sandbox/member"
)

// Families are the address families of a sandbox: IPv4 always, IPv6 in a dual-stack one.
type Families struct{ DualStack bool }

// MaxNodes is the largest number of nodes.
const MaxNodes = 100

func (f Families) of(v4, v6 string) []netip.Prefix {
	all := []netip.Prefix{netip.MustParsePrefix(v4)}
	if f.DualStack {
		all = append(all, netip.MustParsePrefix(v6))
	}
	return all
}

// Control returns the control machine's addresses, with prefix lengths.
func (f Families) Control() []netip.Prefix { return f.ControlMachine(0) }

// ControlMachine returns the addresses of one of several control machines, counted from 0.
func (f Families) ControlMachine(i int) []netip.Prefix {
	return f.of(fmt.Sprintf("172.30.255.%d/16", 254-i), fmt.Sprintf("fd00:30::%x/64", 0xffff-i))
}

// Node returns the addresses of node n, counted from 1.
func (f Families) Node(n int) []netip.Prefix {
	return f.of(fmt.Sprintf("172.30.0.%d/16", n), fmt.Sprintf("fd00:30::%x/64", n))
}

// Outside returns the addresses of the host outside, in a network of its own (RFC 5737, RFC 3849).
func (f Families) Outside() []netip.Prefix { return f.of("203.0.113.10/24", "2001:db8:30::a/64") }

// OutsideRouter returns the control machine's addresses in that network.
func (f Families) OutsideRouter() []netip.Prefix { return f.of("203.0.113.1/24", "2001:db8:30::1/64") }

// Bridge is the name of the bridge.
const Bridge = "br-ul"

// Uplink is the name of the node's end of its veth.
const Uplink = "eth0"

// TunnelUplink is the name of the node's end of its second veth, which has the address of tunnels.
const TunnelUplink = "eth1"

// Tunnel returns the address of node n, counted from 1, in the network of tunnels.
func (f Families) Tunnel(n int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("172.31.0.%d/16", n))
}

// MakeBridge makes the bridge in the control machine, with its addresses.
func MakeBridge(control *member.Member, addrs []netip.Prefix) error {
	h, err := control.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = Bridge
	br := &netlink.Bridge{LinkAttrs: attrs}
	if err := h.LinkAdd(br); err != nil {
		return fmt.Errorf("making bridge %s: %w", Bridge, err)
	}
	return Address(h, Bridge, addrs)
}

// Address sets a link up and gives it addresses, without duplicate address detection.
func Address(h *netlink.Handle, name string, addrs []netip.Prefix) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding link %s: %w", name, err)
	}
	for _, p := range addrs {
		addr, err := netlink.ParseAddr(p.String())
		if err != nil {
			return fmt.Errorf("parsing address %s: %w", p, err)
		}
		addr.Flags = 0x02 // IFA_F_NODAD, linux/if_addr.h
		if err := h.AddrReplace(link, addr); err != nil {
			return fmt.Errorf("adding %s to %s: %w", p, name, err)
		}
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting %s up: %w", name, err)
	}
	return nil
}

// DefaultRoutes adds default routes by the routers, which are on the link.
func DefaultRoutes(h *netlink.Handle, name string, routers []netip.Prefix) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding link %s: %w", name, err)
	}
	for _, r := range routers {
		if err := h.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: r.Addr().AsSlice()}); err != nil {
			return fmt.Errorf("adding the default route through %s: %w", r.Addr(), err)
		}
	}
	return nil
}

// Port is the name of the bridge's end of a node's veth.
func Port(node string) string { return "ul-" + node }

// Connect makes the veth of another control machine, with addresses.
func Connect(control, machine *member.Member, addrs []netip.Prefix) error {
	if err := Attach(control, machine); err != nil {
		return err
	}
	h, err := machine.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	return Address(h, Uplink, addrs)
}

// Attach makes a node's veth, whose end in the node is Uplink, without addresses.
func Attach(control, node *member.Member) error {
	return attach(control, node, Port(node.Spec.Name), Uplink)
}

// AttachTunnel makes a second veth, whose end in the node is TunnelUplink, without addresses.
func AttachTunnel(control, node *member.Member) error {
	return attach(control, node, "tun-"+node.Spec.Name, TunnelUplink)
}

func attach(control, node *member.Member, port, uplink string) error {
	h, err := control.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	br, err := h.LinkByName(Bridge)
	if err != nil {
		return fmt.Errorf("finding bridge %s: %w", Bridge, err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = port, br.Attrs().Index
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: uplink, PeerNamespace: netlink.NsPid(node.PID())}
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("connecting %s to the underlay: %w", node.Spec.Name, err)
	}
	if err := h.LinkSetUp(veth); err != nil {
		return fmt.Errorf("connecting %s to the underlay: %w", node.Spec.Name, err)
	}
	n, err := node.Netlink()
	if err != nil {
		return err
	}
	defer n.Close()
	return Address(n, uplink, nil)
}
