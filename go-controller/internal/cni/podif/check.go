package podif

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Check compares the pair with what Add makes for the same Spec, and names every difference.
func Check(s Spec) error {
	podNS, err := openNetns(s.Netns)
	if err != nil {
		return err
	}
	defer podNS.Close()
	var errs []error
	name := names.HostVeth(s.ID)
	peer := 0 // index of the pod's end according to the node's end
	switch link, err := netlink.LinkByName(name); {
	case item.IsAbsent(err):
		errs = append(errs, fmt.Errorf("interface %s is not on the node", name))
	case err != nil:
		errs = append(errs, fmt.Errorf("reading %s: %w", name, err))
	case !belongs(link, s.ID):
		errs = append(errs, fmt.Errorf("interface %s is not this container's", name))
	default:
		peer = link.Attrs().ParentIndex
		if link.Attrs().Flags&unix.IFF_UP == 0 {
			errs = append(errs, fmt.Errorf("interface %s is down", name))
		}
		if s.MTU == 0 { // results before CNI 1.1.0 have none
			s.MTU = link.Attrs().MTU
		}
	}
	errs = append(errs, podNS.Do(func(ns.NetNS) error { return checkPod(s, peer) }))
	return errors.Join(errs...)
}

// checkPod compares the pod's end. It runs in the pod's namespace. peer is 0 if unknown.
func checkPod(s Spec, peer int) error {
	link, err := netlink.LinkByName(s.IfName)
	if item.IsAbsent(err) {
		return fmt.Errorf("interface %s is not in the container", s.IfName)
	}
	if err != nil {
		return fmt.Errorf("reading %s in the container: %w", s.IfName, err)
	}
	var errs []error
	a := link.Attrs()
	if peer != 0 && a.Index != peer {
		errs = append(errs, fmt.Errorf("interface %s in the container is not the other end of %s",
			s.IfName, names.HostVeth(s.ID)))
	}
	if !bytes.Equal(a.HardwareAddr, s.Network.MAC[:]) {
		errs = append(errs, fmt.Errorf("MAC of %s is %s, want %s", s.IfName, a.HardwareAddr, s.Network.MAC))
	}
	if a.Flags&unix.IFF_UP == 0 {
		errs = append(errs, fmt.Errorf("interface %s in the container is down", s.IfName))
	}
	if s.MTU != 0 && a.MTU != s.MTU {
		errs = append(errs, fmt.Errorf("MTU of %s is %d, want %d", s.IfName, a.MTU, s.MTU))
	}
	if s.Userspace {
		ok, err := computesChecksums(s.IfName)
		if err == nil && !ok {
			err = fmt.Errorf("checksum offload of %s is on", s.IfName)
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, checkAddresses(s, link), checkRoutes(s, link))...)
}

func checkAddresses(s Spec, link netlink.Link) error {
	addrs, err := item.Dump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("reading addresses of %s in the container: %w", s.IfName, err)
	}
	have := map[netip.Prefix]bool{}
	for _, ka := range addrs {
		if p, ok := ipnet.OfIPNet(ka.IPNet); ok {
			have[p] = true
		}
	}
	var errs []error
	for _, p := range s.Network.IPs {
		if !have[p] {
			errs = append(errs, fmt.Errorf("address %s is not on %s", p, s.IfName))
		}
	}
	return errors.Join(errs...)
}

func checkRoutes(s Spec, link netlink.Link) error {
	list, err := item.Dump(func() ([]netlink.Route, error) { return netlink.RouteList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("reading routes of %s in the container: %w", s.IfName, err)
	}
	have := map[string]bool{}
	for _, kr := range list {
		if kr.Dst != nil {
			have[kr.Dst.String()+" "+kr.Gw.String()] = true
		}
	}
	var errs []error
	for _, r := range routes(s.Network) {
		if !have[ipnet.IPNet(r.Dest).String()+" "+r.NextHop.String()] {
			errs = append(errs, fmt.Errorf("route %s via %s is not in the container", r.Dest, r.NextHop))
		}
	}
	return errors.Join(errs...)
}
