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

// Finish marks an attachment's pair as delivered to the runtime. It is no error if the pair is gone.
func Finish(id string) error {
	name := names.HostVeth(id)
	link, err := netlink.LinkByName(name)
	if err == nil && belongs(link, id) {
		err = netlink.LinkSetAlias(link, id)
	}
	if err != nil && !item.IsAbsent(err) {
		return fmt.Errorf("marking %s as finished: %w", name, err)
	}
	return nil
}

// Attachments lists the ids of the attachments that have a pair on this node. If an ADD ended before the pair was
// marked, the list has the name of the node's end, which Remove accepts as an id.
func Attachments() ([]string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("listing interfaces: %w", err)
	}
	var out []string
	for _, link := range links {
		a := link.Attrs()
		if link.Type() != "veth" || a.Group != linkGroup {
			continue
		}
		out = append(out, cmp.Or(strings.TrimPrefix(a.Alias, unfinished), a.Name))
	}
	return out, nil
}

// Remove removes the pair of an attachment. It is no error if there is none. It does not touch another owner's link of
// the same name.
func Remove(id string) error {
	name := names.HostVeth(id)
	link, err := netlink.LinkByName(name)
	if item.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for %s: %w", name, err)
	}
	if !belongs(link, id) {
		return nil
	}
	if err := netlink.LinkDel(link); err != nil && !item.IsAbsent(err) {
		return fmt.Errorf("removing %s: %w", name, err)
	}
	return nil
}
