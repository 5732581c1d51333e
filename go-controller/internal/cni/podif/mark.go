package podif

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// linkGroup is the group (ip-link(8) "group") that the node's ends are made
// in. It is the one mark that a link can have from its first moment.
const linkGroup = 0x6e62

// unfinished precedes the container id in the alias until the runtime has its
// answer: an ADD that finds this was not survived by the agent that served it.
const unfinished = "unfinished "

// belongs tells whether the link is the container's, however far its ADD came.
func belongs(link netlink.Link, containerID string) bool {
	a := link.Attrs()
	if link.Type() != "veth" {
		return false
	}
	return strings.TrimPrefix(a.Alias, unfinished) == containerID || a.Alias == "" && a.Group == linkGroup
}

// Finish marks the container's pair as given to the runtime; a pair that has
// gone meanwhile is no error.
func Finish(containerID string) error {
	name := names.HostVeth(containerID)
	link, err := netlink.LinkByName(name)
	if err == nil && belongs(link, containerID) {
		err = netlink.LinkSetAlias(link, containerID)
	}
	if err != nil && !isAbsent(err) {
		return fmt.Errorf("marking %s as finished: %w", name, err)
	}
	return nil
}

// Containers lists the containers that have a pair on this node. Of one whose
// ADD ended before the pair was marked it is the name of the node's end, which
// Remove takes for its id.
func Containers() ([]string, error) {
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
		id := strings.TrimPrefix(a.Alias, unfinished)
		if id == "" {
			id = a.Name
		}
		out = append(out, id)
	}
	return out, nil
}

// Remove removes the pair of a container; none is no error, and a link of the
// same name that is another's is left alone.
func Remove(containerID string) error {
	name := names.HostVeth(containerID)
	link, err := netlink.LinkByName(name)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for %s: %w", name, err)
	}
	if !belongs(link, containerID) {
		return nil
	}
	if err := netlink.LinkDel(link); err != nil && !isAbsent(err) {
		return fmt.Errorf("removing %s: %w", name, err)
	}
	return nil
}

// isAbsent tells whether netlink's error means that there is no such link.
func isAbsent(err error) bool {
	var nf netlink.LinkNotFoundError
	return errors.As(err, &nf) || errors.Is(err, unix.ENODEV)
}
