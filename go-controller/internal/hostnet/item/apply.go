package item

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Apply implements Kernel. An item that is to be removed may be gone already, by itself
// or with another one: an address takes its routes along.
func (n Netlink) Apply(c Change) error {
	err := n.Set(c.Item(), c.Want == nil)
	if c.Want == nil && IsGone(err) {
		return nil
	}
	return err
}

// IsGone tells whether netlink's error means that what was to be removed is not
// there.
func IsGone(err error) bool {
	return IsAbsent(err) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EADDRNOTAVAIL)
}

// Set makes an item be there, or removes it.
func (n Netlink) Set(item hostplan.Item, remove bool) error {
	switch item := item.(type) {
	case hostplan.Sysctl:
		return os.WriteFile(filepath.Join("/proc/sys", item.Path), []byte(item.Value), 0o644)
	case hostplan.Link:
		return n.applyLink(item)
	case hostplan.Addr:
		return n.applyAddr(item, remove)
	case hostplan.Neighbour:
		return n.applyNeighbour(item, remove)
	case hostplan.Route:
		return n.applyRoute(item, remove)
	default:
		return fmt.Errorf("%T is not known here", item)
	}
}

func (n Netlink) applyLink(l hostplan.Link) error {
	link, err := n.Handle.LinkByName(l.Name)
	if err != nil {
		return err
	}
	if !bytes.Equal(link.Attrs().HardwareAddr, l.MAC[:]) {
		if err := n.Handle.LinkSetHardwareAddr(link, l.MAC[:]); err != nil {
			return fmt.Errorf("setting MAC: %w", err)
		}
	}
	if link.Attrs().MTU != l.MTU {
		if err := n.Handle.LinkSetMTU(link, l.MTU); err != nil {
			return fmt.Errorf("setting MTU: %w", err)
		}
	}
	if !l.Up {
		return n.Handle.LinkSetDown(link)
	}
	return n.Handle.LinkSetUp(link)
}

func (n Netlink) applyAddr(a hostplan.Addr, remove bool) error {
	link, err := n.Handle.LinkByName(a.Link)
	if err != nil {
		return err
	}
	ka := &netlink.Addr{IPNet: ipnet.IPNet(a.Prefix)}
	if remove {
		return n.Handle.AddrDel(link, ka)
	}
	if a.Prefix.Addr().Is6() {
		// The address is the only one by design; waiting a second for
		// duplicate detection would only delay what depends on it.
		ka.Flags = unix.IFA_F_NODAD
	}
	return n.Handle.AddrReplace(link, ka)
}

func (n Netlink) applyNeighbour(ne hostplan.Neighbour, remove bool) error {
	link, err := n.Handle.LinkByName(ne.Link)
	if err != nil {
		return err
	}
	kn := &netlink.Neigh{
		LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT,
		IP: ne.IP.AsSlice(), HardwareAddr: ne.MAC[:],
	}
	if remove {
		return n.Handle.NeighDel(kn)
	}
	return n.Handle.NeighSet(kn)
}

func (n Netlink) applyRoute(r hostplan.Route, remove bool) error {
	link, err := n.Handle.LinkByName(r.Link)
	if err != nil {
		return err
	}
	kr := &netlink.Route{
		LinkIndex: link.Attrs().Index, Dst: ipnet.IPNet(r.Dest), Gw: r.Via.AsSlice(), Src: r.Src.AsSlice(),
		Protocol: netlink.RouteProtocol(r.Protocol), Table: unix.RT_TABLE_MAIN,
	}
	if remove {
		return n.Handle.RouteDel(kr)
	}
	return n.Handle.RouteReplace(kr)
}
