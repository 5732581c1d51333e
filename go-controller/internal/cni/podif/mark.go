package podif

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// linkGroup is the group (ip-link(8) "group") of the node's ends. Unlike an alias, it is set in the moment in which the
// link is made.
const linkGroup = 0x6e62

// unfinished is the prefix of the alias until the runtime has its answer. An ADD that finds it knows that the agent
// ended in the middle of an earlier ADD.
const unfinished = "unfinished "

// belongs reports whether the link is of the attachment with this id, whichever step its ADD reached.
func belongs(link netlink.Link, id string) bool {
	a := link.Attrs()
	if link.Type() != "veth" {
		return false
	}
	return strings.TrimPrefix(a.Alias, unfinished) == id || a.Alias == "" && a.Group == linkGroup
}

// pairOf is the node's end of an attachment's pair; nil if there is none, or if another owner's link has its name.
func pairOf(id string) (netlink.Link, error) {
	name := names.HostVeth(id)
	link, err := netlink.LinkByName(name)
	switch {
	case item.IsAbsent(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for %s: %w", name, err)
	case !belongs(link, id):
		return nil, nil
	}
	return link, nil
}

// Finish marks an attachment's pair as delivered to the runtime. It is no error if the pair is gone.
func Finish(id string) error {
	link, err := pairOf(id)
	if link != nil {
		err = netlink.LinkSetAlias(link, id)
	}
	if err != nil && !item.IsAbsent(err) {
		return fmt.Errorf("marking the pair of %s as finished: %w", id, err)
	}
	return nil
}

// Attachments lists the ids of the attachments that have a pair on this node. If an ADD ended before the pair was
// marked, the list has the name of the node's end, which Remove accepts as an id.
func Attachments() ([]string, error) {
	return attachments(func(string, string) bool { return true })
}

// AttachmentsOf lists the attachments of a container, as Attachments does. A pair that was not marked may be that of
// another container whose id begins alike.
func AttachmentsOf(container string) ([]string, error) {
	return attachments(func(id, name string) bool {
		return names.ContainerOf(id) == container || id == "" && names.MayBeVethOf(container, name)
	})
}

// attachments lists the attachments that want accepts: by id, "" for a pair that was not marked, and by the name of the
// node's end.
func attachments(want func(id, name string) bool) ([]string, error) {
	links, err := item.Dump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("listing interfaces: %w", err)
	}
	var out []string
	for _, link := range links {
		a := link.Attrs()
		if link.Type() != "veth" || a.Group != linkGroup {
			continue
		}
		if id := strings.TrimPrefix(a.Alias, unfinished); want(id, a.Name) {
			out = append(out, cmp.Or(id, a.Name))
		}
	}
	return out, nil
}

// Unfinished lists the attachments of a container whose ADD has ended before Finish. Its first pair tells: Add makes it
// first, and Finish marks it first.
func Unfinished(container string) ([]string, error) {
	link, err := pairOf(container)
	if link == nil || link.Attrs().Alias == container {
		return nil, err
	}
	return AttachmentsOf(container)
}

// Finished returns the node's end of an attachment that the runtime has its answer for; ok is false if there is none.
func Finished(id string) (v Veth, ok bool, err error) {
	link, err := pairOf(id)
	if link == nil || link.Attrs().Alias != id {
		return v, false, err
	}
	v.HostName = link.Attrs().Name
	copy(v.HostMAC[:], link.Attrs().HardwareAddr)
	return v, true, nil
}

// Remove removes the pair of an attachment. It is no error if there is none. It does not touch another owner's link of
// the same name.
func Remove(id string) error {
	link, err := pairOf(id)
	if link == nil {
		return err
	}
	if err := netlink.LinkDel(link); err != nil && !item.IsAbsent(err) {
		return fmt.Errorf("removing %s: %w", link.Attrs().Name, err)
	}
	return nil
}
