package hostnet

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Device is an interface as other hosts on its network see it.
type Device struct {
	Name     string
	MAC      ipnet.MAC
	MTU      int
	Carrier  bool           // it is up and so is what it is connected to
	Addrs    []netip.Prefix // that can be relied on: not link-local, temporary, deprecated or still being checked
	NextHops []netip.Addr   // of the main table's default routes through it: of each family those of the lowest metric
}

// Device reads an interface; ok is false when there is none of that name.
func (n *Netlink) Device(name string) (d Device, ok bool, err error) {
	link, err := n.items.Link(name)
	if link == nil || err != nil {
		return d, false, err
	}
	d.Name, d.MTU, d.Carrier = name, link.Attrs().MTU, link.Attrs().RawFlags&unix.IFF_LOWER_UP != 0
	copy(d.MAC[:], link.Attrs().HardwareAddr)
	addrs, err := n.items.Addrs(link)
	if err != nil {
		return d, false, fmt.Errorf("reading addresses of %s: %w", name, err)
	}
	const passing = unix.IFA_F_TEMPORARY | unix.IFA_F_DEPRECATED | unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED
	for _, a := range addrs {
		p, ok := ipnet.OfIPNet(a.IPNet)
		secondary := p.Addr().Is6() && a.Flags&passing != 0 // IFA_F_TEMPORARY is IFA_F_SECONDARY for IPv4
		if ok && !secondary && !p.Addr().IsLinkLocalUnicast() {
			d.Addrs = append(d.Addrs, p)
		}
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		hops, err := n.defaultHops(link.Attrs().Index, family)
		if err != nil {
			return d, false, fmt.Errorf("reading default routes of %s: %w", name, err)
		}
		d.NextHops = append(d.NextHops, hops...)
	}
	return d, true, nil
}

// defaultHops are the next hops of the default routes through a link, only those of the
// lowest metric.
func (n *Netlink) defaultHops(index, family int) (out []netip.Addr, err error) {
	filter := &netlink.Route{Table: unix.RT_TABLE_MAIN}
	list, err := n.items.Routes(family, filter, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, err
	}
	best := -1
	add := func(metric, link int, gw []byte) {
		hop := ipnet.OfIP(gw)
		if !hop.IsValid() || link != index || (best >= 0 && metric > best) {
			return
		}
		if best < 0 || metric < best {
			best, out = metric, nil
		}
		if !slices.Contains(out, hop) {
			out = append(out, hop)
		}
	}
	for _, r := range list {
		dest, ok := ipnet.OfIPNet(r.Dst)
		if r.Dst != nil && (!ok || dest.Bits() != 0) || r.Type != unix.RTN_UNICAST {
			continue
		}
		add(r.Priority, r.LinkIndex, r.Gw)
		for _, hop := range r.MultiPath {
			add(r.Priority, hop.LinkIndex, hop.Gw)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out, nil
}

// VLANDevice is the VLAN interface with this id on the interface parent; ok is
// false when there is none.
func (n *Netlink) VLANDevice(parent string, id int) (name string, ok bool, err error) {
	below, err := n.items.Link(parent)
	if below == nil || err != nil {
		return "", false, err
	}
	links, err := n.items.Links()
	if err != nil {
		return "", false, fmt.Errorf("reading interfaces: %w", err)
	}
	for _, l := range links {
		if v, is := l.(*netlink.Vlan); is && v.VlanId == id && v.Attrs().ParentIndex == below.Attrs().Index {
			return v.Attrs().Name, true, nil
		}
	}
	return "", false, nil
}
