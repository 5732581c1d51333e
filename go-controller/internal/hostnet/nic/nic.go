package nic

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/nft"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// NICs are the interfaces of the namespace that its items are of.
type NICs struct{ items item.Netlink }

// New is for the namespace of items.
func New(items item.Netlink) NICs { return NICs{items} }

// Standing is an interface's relation to other interfaces.
type Standing struct {
	Kind     string // of the link (ip-link(8), "type"); "device" for hardware
	Loopback bool
	Master   string   // the bridge, bond, VRF or datapath that it is a part of, "" for none
	Upper    []string // VLAN, macvlan and ipvlan interfaces on top of it, as "NAME (KIND)"
}

// Standing reads an interface's relation to others; ok is false when there is none of
// this name.
func (n NICs) Standing(name string) (s Standing, ok bool, err error) {
	list, err := n.items.Links()
	if err != nil {
		return s, false, fmt.Errorf("reading interfaces: %w", err)
	}
	byIndex := map[int]string{}
	var link netlink.Link
	for _, l := range list {
		byIndex[l.Attrs().Index] = l.Attrs().Name
		if l.Attrs().Name == name {
			link = l
		}
	}
	if link == nil {
		return s, false, nil
	}
	a := link.Attrs()
	s = Standing{Kind: link.Type(), Loopback: a.Flags&net.FlagLoopback != 0, Master: byIndex[a.MasterIndex]}
	for _, l := range list {
		switch l.Type() {
		case "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap":
			if l.Attrs().ParentIndex == a.Index {
				s.Upper = append(s.Upper, fmt.Sprintf("%s (%s)", l.Attrs().Name, l.Type()))
			}
		}
	}
	return s, true, nil
}

// NIC reads all that an interface has; the zero Device when there is none of this name.
// It fails on a setting that can't be put onto another interface.
func (n NICs) NIC(name string) (d nicmove.Device, err error) {
	link, err := n.items.Link(name)
	if link == nil || err != nil {
		return d, err
	}
	a := link.Attrs()
	d.Link = hostplan.Link{Name: name, MTU: a.MTU, Up: a.Flags&net.FlagUp != 0}
	copy(d.Link.MAC[:], a.HardwareAddr)
	if d.Addrs, err = readAddrs(name, a.Index); err != nil {
		return d, fmt.Errorf("reading addresses of %s: %w", name, err)
	}
	if d.Routes, err = n.readAllRoutes(name); err != nil {
		return d, fmt.Errorf("reading routes of %s: %w", name, err)
	}
	if d.Rules, err = readRules(name); err != nil {
		return d, fmt.Errorf("reading rules of %s: %w", name, err)
	}
	if d.Neighbours, err = n.readStaticNeighbours(name, a.Index); err != nil {
		return d, fmt.Errorf("reading neighbours of %s: %w", name, err)
	}
	if d.Sysctls, err = readConf(name); err != nil {
		return d, err
	}
	if d.Offloads, err = readOffloads(name); err != nil {
		return d, err
	}
	drop, err := nft.ReadIngressDrop(hostplan.IngressDrop{Link: name})
	d.Drop = len(drop) > 0
	return d, err
}

// Carry makes a step's change of the kernel. Steps of Open vSwitch are package ovs's.
// Removing what is gone, or adding what exists, is no error.
func (n NICs) Carry(s nicmove.Step) error {
	err := n.carry(s)
	switch {
	case s.Want == nil && item.IsGone(err), s.Want != nil && errors.Is(err, unix.EEXIST):
		return nil
	}
	return err
}

func (n NICs) carry(s nicmove.Step) error {
	remove := s.Want == nil
	switch t := s.Thing().(type) {
	case nicmove.Addr:
		if s.Have != nil && !remove { // not everything of an address can be changed
			if err := n.Carry(nicmove.Step{Have: s.Have}); err != nil {
				return err
			}
		}
		return n.carryAddr(t, remove)
	case nicmove.Route:
		return n.carryRoute(t, s.Have != nil && !remove, remove)
	case nicmove.Rule:
		return carryRule(t, remove)
	case nicmove.Neighbour:
		return n.carryNeighbour(t, remove)
	case nicmove.Offload:
		return setOffload(t)
	case hostplan.IngressDrop:
		return nft.SetIngressDrop(t, remove)
	case hostplan.Item:
		return n.items.Set(t, remove)
	default:
		return fmt.Errorf("%T is not known here", t)
	}
}

// RemoveTap removes an interface of kind tap, and tells whether there was one. Taps of
// Open vSwitch's userspace datapath outlive an ovs-vswitchd that is killed.
func (n NICs) RemoveTap(name string) (bool, error) {
	link, err := n.items.Link(name)
	if _, ok := link.(*netlink.Tuntap); !ok {
		return false, err
	}
	if err := n.items.Handle.LinkDel(link); err != nil && !item.IsGone(err) {
		return false, fmt.Errorf("removing interface %s: %w", name, err)
	}
	return true, nil
}

// dump reads a whole table of the kernel. The header tells the family.
func dump(message int, answer uint16, header nl.NetlinkRequestData) ([][]byte, error) {
	return item.Dump(func() ([][]byte, error) {
		request := nl.NewNetlinkRequest(message, unix.NLM_F_DUMP)
		request.AddData(header)
		return request.Execute(unix.NETLINK_ROUTE, answer)
	})
}

// send makes one change.
func send(message, flags int, header nl.NetlinkRequestData, attrs []*nl.RtAttr) error {
	request := nl.NewNetlinkRequest(message, flags|unix.NLM_F_ACK)
	request.AddData(header)
	for _, a := range attrs {
		request.AddData(a)
	}
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// addrAttr, numberAttr and textAttr add an attribute unless its value is the zero one.
func addrAttr(attrs []*nl.RtAttr, kind int, a netip.Addr) []*nl.RtAttr {
	if !a.IsValid() {
		return attrs
	}
	return append(attrs, nl.NewRtAttr(kind, a.AsSlice()))
}

func numberAttr(attrs []*nl.RtAttr, kind int, n uint32) []*nl.RtAttr {
	if n == 0 {
		return attrs
	}
	return append(attrs, nl.NewRtAttr(kind, nl.Uint32Attr(n)))
}

func textAttr(attrs []*nl.RtAttr, kind int, s string) []*nl.RtAttr {
	if s == "" {
		return attrs
	}
	return append(attrs, nl.NewRtAttr(kind, nl.ZeroTerminated(s)))
}

// readStaticNeighbours reads the permanent and the proxied neighbours.
func (n NICs) readStaticNeighbours(name string, index int) ([]nicmove.Neighbour, error) {
	var out []nicmove.Neighbour
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := n.items.Neighbours(index, family)
		if err != nil {
			return nil, err
		}
		proxies, err := n.items.Handle.NeighProxyList(index, family)
		if err != nil {
			return nil, err
		}
		for _, ne := range append(list, proxies...) {
			proxy := ne.Flags&netlink.NTF_PROXY != 0
			item := nicmove.Neighbour{Neighbour: hostplan.Neighbour{Link: name, IP: ipnet.OfIP(ne.IP)}, Proxy: proxy}
			if !item.IP.IsValid() || ne.LinkIndex != index || !proxy &&
				(ne.State&netlink.NUD_PERMANENT == 0 || len(ne.HardwareAddr) != len(item.MAC)) {
				continue
			}
			if !proxy {
				copy(item.MAC[:], ne.HardwareAddr)
			}
			out = append(out, item)
		}
	}
	return out, nil
}

func (n NICs) carryNeighbour(ne nicmove.Neighbour, remove bool) error {
	if !ne.Proxy {
		return n.items.Set(ne.Neighbour, remove)
	}
	link, err := n.items.Handle.LinkByName(ne.Link)
	if err != nil {
		return err
	}
	kn := &netlink.Neigh{LinkIndex: link.Attrs().Index, Flags: netlink.NTF_PROXY, IP: ne.IP.AsSlice(),
		Family: familyOf(ne.IP)}
	if remove {
		return n.items.Handle.NeighDel(kn)
	}
	return n.items.Handle.NeighSet(kn)
}

// notMoved tells whether a sysctl of an interface can't be set, or follows from another
// setting.
func notMoved(name string) bool { return name == "mtu" || name == "mc_forwarding" }

// readConf reads the sysctls of an interface. "default" has those of a new one.
func readConf(link string) (map[string]string, error) {
	out := map[string]string{}
	for _, family := range []string{"ipv4", "ipv6"} {
		dir := filepath.Join("/proc/sys/net", family, "conf", link)
		files, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the kernel has no IPv6, or not on such an interface
		}
		if err != nil {
			return nil, fmt.Errorf("reading sysctls of %s: %w", link, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(filepath.Join(dir, f.Name()))
			switch {
			case notMoved(f.Name()), errors.Is(err, unix.EIO): // stable_secret that is not set
				continue
			case err != nil:
				return nil, fmt.Errorf("reading sysctls of %s: %w", link, err)
			}
			out[family+"/"+f.Name()] = strings.TrimSpace(string(b))
		}
	}
	return out, nil
}

// ConfDefaults reads the sysctls of a new interface, by the keys of
// nicmove.Device.Sysctls.
func (n NICs) ConfDefaults() (map[string]string, error) { return readConf("default") }
