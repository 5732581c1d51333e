package server

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// attached is an attachment of a pod, as the pod's annotation has it.
type attached struct {
	cluster.Attachment
	net annotation.PodNetwork
}

func sameAttached(a, b attached) bool {
	return a.Attachment == b.Attachment && cluster.SamePodNetwork(a.net, b.net)
}

// attachments reads the attachments that the request is about from a pod's annotation. When the runtime asks for the
// interface of the cluster's own network, these are all that the pod has: the one asked for first, then the further
// ones in the order of their interfaces. Behind Multus they are only those that Multus does not ask for.
func (r *request) attachments(value string) ([]attached, error) {
	if r.delegated && r.in.Network != "" {
		net, ok, err := annotation.PodNetworkIn(value, r.in.Key())
		if err == nil && !ok {
			err = noEntry(r.in.Key())
		}
		if err == nil {
			err = checkKey(r.in.Key(), "")
		}
		return []attached{{r.in, net}}, err
	}
	all, err := annotation.PodAttachments(value)
	if err != nil {
		return nil, err
	}
	ofOwn := cluster.Attachment{Network: names.Own}
	own, ok := all[ofOwn.Key()]
	if !ok {
		return nil, noEntry(ofOwn.Key())
	}
	delete(all, ofOwn.Key())
	if r.delegated {
		return byInterface(all, r.in.Interface)
	}
	more, err := further(all, r.IfName)
	if r.oneByOne {
		more = slices.DeleteFunc(more, func(a attached) bool { return !a.isPrimary() })
	}
	return append([]attached{{ofOwn, own}}, more...), err
}

// byInterface is the attachment with this interface, whatever its network is called.
func byInterface(entries map[string]annotation.PodNetwork, iface string) ([]attached, error) {
	list, err := further(entries, "")
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		if a.Interface == iface {
			return []attached{a}, nil
		}
	}
	return nil, fmt.Errorf("%s: it has no entry for interface %q", annotation.PodNetworks, brief(iface))
}

func noEntry(key string) error {
	return fmt.Errorf("%s: it has no entry %q", annotation.PodNetworks, key)
}

// further is the attachments of these entries, in the order of their interfaces. taken is the name of the interface
// that the runtime itself asks for.
func further(entries map[string]annotation.PodNetwork, taken string) ([]attached, error) {
	if n := len(entries); n > annotation.MaxInterfaces {
		return nil, fmt.Errorf("%s: it has %d further interfaces, want at most %d",
			annotation.PodNetworks, n, annotation.MaxInterfaces)
	}
	var out []attached
	for key, net := range entries {
		network, iface := names.EntryOf(key)
		out = append(out, attached{cluster.Attachment{Network: network, Interface: iface}, net})
	}
	slices.SortFunc(out, func(a, b attached) int {
		return cmp.Or(compareInterfaces(a.Interface, b.Interface), cmp.Compare(a.Network, b.Network))
	})
	for i, a := range out {
		if err := checkKey(a.Key(), taken); err != nil {
			return nil, err
		}
		if i > 0 && out[i-1].Interface == a.Interface {
			return nil, fmt.Errorf("%s: entries %q and %q have the same interface, want another name for one of them",
				annotation.PodNetworks, out[i-1].Key(), a.Key())
		}
	}
	return out, nil
}

// checkKey is why no further interface can be made for an entry. The network's name must be one, so that the name of
// the logical port is the pod's alone (names.Network). The interface's name must be one for Linux, and not one that
// is in the pod anyway.
func checkKey(key, taken string) error {
	network, iface := names.EntryOf(key)
	why := ""
	switch {
	case !network.CanHave(iface):
		why = "want NETWORK/INTERFACE with the name of a network other than the cluster's own"
	case !network.Valid():
		why = "want a DNS subdomain as the name of the network"
	case iface == "lo" || iface == "eth0" || iface == taken:
		why = "the pod has an interface of that name already: want another"
	case !names.IsFurtherInterface(iface):
		why = "want 1 to 15 letters, digits or other printable ASCII characters without white space, /, : and %, " +
			"other than all and default, as the name of the interface"
	default:
		return nil
	}
	return fmt.Errorf("%s: entry %q: %s", annotation.PodNetworks, brief(key), why)
}

// brief cuts what an error quotes.
func brief(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// compareInterfaces orders interfaces by name, and their numbers by value: net2 comes before net10.
func compareInterfaces(a, b string) int {
	nameA, numberA := numbered(a)
	nameB, numberB := numbered(b)
	return cmp.Or(cmp.Compare(nameA, nameB), cmp.Compare(numberA, numberB), cmp.Compare(a, b))
}

// numbered splits the number off that the name of an interface ends with.
func numbered(iface string) (name string, number uint64) {
	name = strings.TrimRight(iface, "0123456789")
	// Without a number, or with one that is too large, it is not for comparing: the names themselves decide then.
	number, _ = strconv.ParseUint(iface[len(name):], 10, 64)
	return name, number
}
