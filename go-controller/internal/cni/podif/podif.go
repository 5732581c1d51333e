package podif

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Spec describes a pod's interface.
type Spec struct {
	ID        string // names.AttachmentID
	Netns     string // path of the pod's network namespace
	IfName    string // in the pod
	Network   annotation.PodNetwork
	MTU       int  // bytes
	Userspace bool // the datapath is userspace: the pod's kernel must compute checksums
}

// Veth is the node's end of the pair that Add made.
type Veth struct {
	HostName string
	HostMAC  ipnet.MAC
}

// ErrExists says that the pod has an interface of that name already.
var ErrExists = errors.New("interface exists in the container")

// ErrNetns says that the network namespace can't be opened.
var ErrNetns = errors.New("no such network namespace")

// Steps of Add, for the callback reached.
const (
	StepPair      = "pair made"
	StepMarked    = "pair marked"
	StepContainer = "container's end set up"
	StepNode      = "node's end up"
)

// Steps lists the steps of Add in their order.
func Steps() []string { return []string{StepPair, StepMarked, StepContainer, StepNode} }

// Add makes the pair and calls reached after each step. If it fails, it leaves nothing behind. If the process ends
// before Finish, the next Add of the container replaces the pair.
func Add(s Spec, reached func(step string)) (Veth, error) {
	podNS, err := openNetns(s.Netns)
	if err != nil {
		return Veth{}, err
	}
	defer podNS.Close()
	if err := claimName(s, podNS); err != nil {
		return Veth{}, err
	}
	v, err := addPair(s, podNS, reached)
	if err != nil {
		return Veth{}, errors.Join(err, Remove(s.ID))
	}
	return v, nil
}

func openNetns(path string) (ns.NetNS, error) {
	n, err := ns.GetNS(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNetns, err)
	}
	own, err := ns.GetCurrentNS()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the agent's own network namespace: %w", err), n.Close())
	}
	defer own.Close()
	same, err := sameFile(n.Path(), own.Path())
	if err == nil && same {
		err = fmt.Errorf("%w: %s is the node's own", ErrNetns, path)
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func sameFile(a, b string) (bool, error) {
	ia, err := os.Stat(a)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrNetns, err)
	}
	ib, err := os.Stat(b)
	if err != nil {
		return false, fmt.Errorf("opening the agent's own network namespace: %w", err)
	}
	return os.SameFile(ia, ib), nil
}

// claimName makes sure that the names of both ends are free. It removes an unfinished pair of the same container.
func claimName(s Spec, podNS ns.NetNS) error {
	name := names.HostVeth(s.ID)
	link, err := netlink.LinkByName(name)
	switch {
	case item.IsAbsent(err):
	case err != nil:
		return fmt.Errorf("looking for %s: %w", name, err)
	case !belongs(link, s.ID):
		return fmt.Errorf("interface %s exists on the node and is not this container's", name)
	case link.Attrs().Alias == s.ID:
		return fmt.Errorf("%w: this container has its interface on this network, %s on the node, "+
			"and has not been deleted since", ErrExists, name)
	default:
		if err := Remove(s.ID); err != nil {
			return err
		}
	}
	err = podNS.Do(func(ns.NetNS) error {
		_, err := netlink.LinkByName(s.IfName)
		return err
	})
	if err == nil {
		return fmt.Errorf("%w: %s", ErrExists, s.IfName)
	}
	if !item.IsAbsent(err) {
		return fmt.Errorf("looking for %s in the container: %w", s.IfName, err)
	}
	return nil
}

func addPair(s Spec, podNS ns.NetNS, reached func(string)) (Veth, error) {
	v := Veth{HostName: names.HostVeth(s.ID)}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Group = v.HostName, s.MTU, linkGroup
	err := netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs, PeerName: s.IfName, PeerHardwareAddr: s.Network.MAC[:],
		PeerNamespace: netlink.NsFd(int(podNS.Fd())),
	})
	if err != nil {
		return v, fmt.Errorf("making the veth pair %s: %w", v.HostName, err)
	}
	link, err := netlink.LinkByName(v.HostName)
	if err != nil {
		return v, fmt.Errorf("reading %s: %w", v.HostName, err)
	}
	copy(v.HostMAC[:], link.Attrs().HardwareAddr)
	reached(StepPair)
	if err := netlink.LinkSetAlias(link, unfinished+s.ID); err != nil {
		return v, fmt.Errorf("marking %s: %w", v.HostName, err)
	}
	reached(StepMarked)
	if err := podNS.Do(func(ns.NetNS) error { return setUpPod(s) }); err != nil {
		return v, err
	}
	reached(StepContainer)
	if err := setUpHost(link); err != nil {
		return v, err
	}
	reached(StepNode)
	return v, nil
}

// setUpHost brings the node's end up, without IPv6: as a switch port, it must not send packets of its own.
func setUpHost(link netlink.Link) error {
	name := link.Attrs().Name
	if err := disableIPv6(name, "1"); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bringing %s up: %w", name, err)
	}
	return nil
}

// KeepUp brings the node's end up if it is not. When an interface is removed and made again at once, ovs-vswitchd may
// write the flags of the former interface to the new one of its name, before it opens that one.
func KeepUp(id string) error {
	link, err := netlink.LinkByName(names.HostVeth(id))
	if err != nil {
		return fmt.Errorf("looking for %s: %w", names.HostVeth(id), err)
	}
	if link.Attrs().Flags&unix.IFF_UP != 0 {
		return nil
	}
	return setUpHost(link)
}

// setUpPod configures the pod's end. It runs in the pod's namespace.
func setUpPod(s Spec) error {
	link, err := netlink.LinkByName(s.IfName)
	if err != nil {
		return fmt.Errorf("reading %s in the container: %w", s.IfName, err)
	}
	if s.Userspace {
		if err := checksumsInSoftware(s.IfName); err != nil {
			return err
		}
	}
	if err := refuseRouters(s.IfName); err != nil {
		return err
	}
	if err := trustKnownRouter(s.IfName); err != nil {
		return err
	}
	for _, p := range s.Network.IPs {
		if err := addAddress(link, p); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bringing %s up in the container: %w", s.IfName, err)
	}
	for _, r := range routes(s.Network) {
		if err := addRoute(link, r); err != nil {
			return fmt.Errorf("adding route %s via %s in the container: %w", r.Dest, r.NextHop, err)
		}
	}
	return nil
}

// moreThanDefault is more than the kernel's metric of routes that say none.
const moreThanDefault = 1025

// addRoute adds a route. Where another interface of the pod has one to the same destination, as with two interfaces in
// one network, that one comes first.
func addRoute(link netlink.Link, r annotation.Route) error {
	kr := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipnet.IPNet(r.Dest), Gw: r.NextHop.AsSlice()}
	err := netlink.RouteAdd(kr)
	if errors.Is(err, unix.EEXIST) {
		kr.Priority = moreThanDefault + kr.LinkIndex
		err = netlink.RouteAdd(kr)
	}
	return err
}

func addAddress(link netlink.Link, p netip.Prefix) error {
	a := &netlink.Addr{IPNet: ipnet.IPNet(p)}
	if p.Addr().Is6() {
		// A runtime may have disabled IPv6. Since no other pod has the address, duplicate detection would only delay
		// the pod's start.
		if err := disableIPv6(link.Attrs().Name, "0"); err != nil {
			return err
		}
		a.Flags = unix.IFA_F_NODAD
	}
	if err := netlink.AddrAdd(link, a); err != nil {
		return fmt.Errorf("adding address %s in the container: %w", p, err)
	}
	return nil
}

// routes returns the pod's routes: a default route for each gateway, then the additional ones.
func routes(n annotation.PodNetwork) []annotation.Route {
	var out []annotation.Route
	for _, g := range n.Gateways {
		all := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if g.Is6() {
			all = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		out = append(out, annotation.Route{Dest: all, NextHop: g})
	}
	return append(out, n.Routes...)
}

// refuseRouters keeps a pod from believing another pod that says it is a router: all addresses and routes are given.
func refuseRouters(name string) error {
	for _, key := range []string{"accept_ra", "autoconf", "accept_redirects"} {
		if err := setIPv6("conf", name, key, "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// routerAway is how long an IPv6 router may be silent once it has answered, in seconds.
const routerAway = "60"

// trustKnownRouter has a pod go on sending to a router that does not answer its questions for routerAway.
// ovn-controller answers neighbour solicitations for it, and may be restarted. By default the kernel gives up after
// three, one a second (ucast_solicit, Linux ip-sysctl.rst). ARP is answered by Open vSwitch.
func trustKnownRouter(name string) error {
	if err := setIPv6("neigh", name, "ucast_solicit", routerAway); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// disableIPv6 sets the interface's sysctl disable_ipv6.
func disableIPv6(name, value string) error {
	err := setIPv6("conf", name, "disable_ipv6", value)
	if err != nil && (value != "1" || !errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	return nil
}

// setIPv6 sets an interface's sysctl below net.ipv6.conf or net.ipv6.neigh, in the namespace of the calling thread. A
// kernel without IPv6 does not have it.
func setIPv6(below, name, key, value string) error {
	if err := os.WriteFile("/proc/sys/net/ipv6/"+below+"/"+name+"/"+key, []byte(value), 0o644); err != nil {
		return fmt.Errorf("setting %s=%s of %s: %w", key, value, name, err)
	}
	return nil
}
