package podif

import (
	"errors"
	"fmt"
	"strings"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
)

// Macvlan is the name of a pod's macvlan in the pod.
const Macvlan = "macvlan0"

// DefaultParent stands for the interface with the node's default route.
const DefaultParent = "true"

// ErrParent says that the node has no interface for a macvlan.
var ErrParent = errors.New("no such interface on the node")

// AddMacvlan makes a container's macvlan on an interface of the node, without addresses. One that an earlier ADD of the
// container made is made anew.
func AddMacvlan(container, netns, parent string) error {
	on, err := parentOf(parent)
	if err != nil {
		return err
	}
	podNS, err := openNetns(netns)
	if err != nil {
		return err
	}
	defer podNS.Close()
	if err := removeMacvlan(container, podNS); err != nil {
		return err
	}
	err = podNS.Do(func(ns.NetNS) error { _, err := netlink.LinkByName(Macvlan); return err })
	if err == nil {
		return fmt.Errorf("%w: %s", ErrExists, Macvlan)
	}
	if !item.IsAbsent(err) {
		return fmt.Errorf("looking for %s in the container: %w", Macvlan, err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.ParentIndex, attrs.Group = Macvlan, on.Attrs().MTU, on.Attrs().Index, linkGroup
	attrs.Namespace = netlink.NsFd(int(podNS.Fd()))
	err = netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_PRIVATE})
	if err != nil {
		return fmt.Errorf("making a macvlan on %s: %w", on.Attrs().Name, err)
	}
	if err := podNS.Do(func(ns.NetNS) error { return setUpMacvlan(container) }); err != nil {
		return errors.Join(err, podNS.Do(func(ns.NetNS) error { return deleteMacvlan() }))
	}
	return nil
}

// setUpMacvlan marks the macvlan and brings it up. It runs in the pod's namespace.
func setUpMacvlan(container string) error {
	link, err := netlink.LinkByName(Macvlan)
	if err != nil {
		return fmt.Errorf("reading %s in the container: %w", Macvlan, err)
	}
	if err := netlink.LinkSetAlias(link, container); err != nil {
		return fmt.Errorf("marking %s in the container: %w", Macvlan, err)
	}
	if err := refuseRouters(Macvlan); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bringing %s up in the container: %w", Macvlan, err)
	}
	return nil
}

// RemoveMacvlan removes the macvlan of a container, if it has one. Another link of that name stays. The kernel removes
// a macvlan with its namespace, so that one that can't be opened has none.
func RemoveMacvlan(container, netns string) error {
	podNS, err := openNetns(netns)
	if errors.Is(err, ErrNetns) {
		return nil
	}
	if err != nil {
		return err
	}
	defer podNS.Close()
	return removeMacvlan(container, podNS)
}

func removeMacvlan(container string, podNS ns.NetNS) error {
	return podNS.Do(func(ns.NetNS) error {
		link, err := netlink.LinkByName(Macvlan)
		switch {
		case item.IsAbsent(err):
			return nil
		case err != nil:
			return fmt.Errorf("looking for %s in the container: %w", Macvlan, err)
		case !macvlanOf(link, container):
			return nil
		}
		return deleteMacvlan()
	})
}

// macvlanOf is true for the macvlan that this plugin has made for a container, or was about to mark.
func macvlanOf(link netlink.Link, container string) bool {
	a := link.Attrs()
	return link.Type() == "macvlan" && (a.Alias == container || a.Alias == "" && a.Group == linkGroup)
}

// deleteMacvlan deletes the link. It runs in the pod's namespace.
func deleteMacvlan() error {
	link, err := netlink.LinkByName(Macvlan)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil && !item.IsAbsent(err) {
		return fmt.Errorf("removing %s in the container: %w", Macvlan, err)
	}
	return nil
}

// parentOf is the node's interface of a name, or the one with the default route: that of IPv4 if there is one.
func parentOf(name string) (netlink.Link, error) {
	if name != DefaultParent {
		link, err := netlink.LinkByName(name)
		if item.IsAbsent(err) {
			return nil, fmt.Errorf("%w: %s; the node has %s", ErrParent, name, linkNames())
		}
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", name, err)
		}
		return link, nil
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		index, err := defaultLink(family)
		if err != nil {
			return nil, err
		}
		if index == 0 {
			continue
		}
		link, err := netlink.LinkByIndex(index)
		if err != nil {
			return nil, fmt.Errorf("looking for the interface with the default route: %w", err)
		}
		return link, nil
	}
	return nil, fmt.Errorf("%w: the node has no default route; name one of its interfaces: %s", ErrParent, linkNames())
}

// defaultLink is the index of the interface with the best default route of a family; 0 when there is none.
func defaultLink(family int) (index int, err error) {
	routes, err := item.Dump(func() ([]netlink.Route, error) { return netlink.RouteList(nil, family) })
	if err != nil {
		return 0, fmt.Errorf("listing the node's routes: %w", err)
	}
	best := 0
	for _, r := range routes {
		if r.Dst != nil {
			if ones, _ := r.Dst.Mask.Size(); ones != 0 {
				continue
			}
		}
		link := r.LinkIndex
		if link == 0 && len(r.MultiPath) > 0 {
			link = r.MultiPath[0].LinkIndex
		}
		if link != 0 && (index == 0 || r.Priority < best) {
			index, best = link, r.Priority
		}
	}
	return index, nil
}

// linkNames lists the node's interfaces for an error.
func linkNames() string {
	links, err := item.Dump(netlink.LinkList)
	if err != nil {
		return "none that can be listed"
	}
	var out []string
	for _, l := range links {
		if l.Attrs().Group != linkGroup && len(out) < mostLinkNames {
			out = append(out, l.Attrs().Name)
		}
	}
	return strings.Join(out, ", ")
}

// mostLinkNames is how many interfaces an error lists.
const mostLinkNames = 20
