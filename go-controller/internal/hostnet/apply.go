package hostnet

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// Apply implements Kernel. What is to be removed may have gone already, by
// itself or with something else: an address takes its routes along.
func (n *Netlink) Apply(c Change) error {
	err := n.apply(c)
	if c.Want == nil && isGone(err) {
		return nil
	}
	return err
}

func isGone(err error) bool {
	return isAbsent(err) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EADDRNOTAVAIL)
}

func (n *Netlink) apply(c Change) error {
	item := c.Want
	if item == nil {
		item = c.Have
	}
	switch item := item.(type) {
	case hostplan.Sysctl:
		return os.WriteFile(filepath.Join("/proc/sys", item.Path), []byte(item.Value), 0o644)
	case hostplan.Link:
		return n.applyLink(item)
	case hostplan.Addr:
		return n.applyAddr(item, c.Want == nil)
	case hostplan.Neighbour:
		return n.applyNeighbour(item, c.Want == nil)
	case hostplan.Route:
		return n.applyRoute(item, c.Want == nil)
	case hostplan.Masquerade:
		return applyMasquerade(item, c.Want == nil)
	case hostplan.Hairpin:
		return applyHairpin(item, c.Want == nil)
	case hostplan.ServicePorts:
		have, _ := c.Have.(hostplan.ServicePorts)
		if c.Want == nil {
			return makeServiceRules(nil)
		}
		return n.services.apply(have, item)
	case hostplan.IngressDrop:
		return applyIngressDrop(item, c.Want == nil)
	default:
		return fmt.Errorf("%T is not known here", item)
	}
}

func (n *Netlink) applyLink(l hostplan.Link) error {
	link, err := n.h.LinkByName(l.Name)
	if err != nil {
		return err
	}
	if !bytes.Equal(link.Attrs().HardwareAddr, l.MAC[:]) {
		if err := n.h.LinkSetHardwareAddr(link, l.MAC[:]); err != nil {
			return fmt.Errorf("setting MAC: %w", err)
		}
	}
	if link.Attrs().MTU != l.MTU {
		if err := n.h.LinkSetMTU(link, l.MTU); err != nil {
			return fmt.Errorf("setting MTU: %w", err)
		}
	}
	if !l.Up {
		return n.h.LinkSetDown(link)
	}
	return n.h.LinkSetUp(link)
}

func (n *Netlink) applyAddr(a hostplan.Addr, remove bool) error {
	link, err := n.h.LinkByName(a.Link)
	if err != nil {
		return err
	}
	ka := &netlink.Addr{IPNet: ipNet(a.Prefix)}
	if remove {
		return n.h.AddrDel(link, ka)
	}
	if a.Prefix.Addr().Is6() {
		// The address is the only one by design; waiting a second for
		// duplicate detection would only delay what depends on it.
		ka.Flags = unix.IFA_F_NODAD
	}
	return n.h.AddrReplace(link, ka)
}

func (n *Netlink) applyNeighbour(ne hostplan.Neighbour, remove bool) error {
	link, err := n.h.LinkByName(ne.Link)
	if err != nil {
		return err
	}
	kn := &netlink.Neigh{
		LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT,
		IP: ne.IP.AsSlice(), HardwareAddr: ne.MAC[:],
	}
	if remove {
		return n.h.NeighDel(kn)
	}
	return n.h.NeighSet(kn)
}

func (n *Netlink) applyRoute(r hostplan.Route, remove bool) error {
	link, err := n.h.LinkByName(r.Link)
	if err != nil {
		return err
	}
	kr := &netlink.Route{
		LinkIndex: link.Attrs().Index, Dst: ipNet(r.Dest), Gw: r.Via.AsSlice(), Src: r.Src.AsSlice(),
		Protocol: netlink.RouteProtocol(r.Protocol), Table: unix.RT_TABLE_MAIN,
	}
	if remove {
		return n.h.RouteDel(kr)
	}
	return n.h.RouteReplace(kr)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
