package hostplan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// AntiSpoof keeps packets away from pods that come from outside and have a source within the cluster. Pods, management
// ports and ClusterIPs are reached through the management port only. What answers the node itself is let in. Packets
// with a source on the join switch may be for the node itself, because a network outside may have such addresses, but
// not for pods. Equal contents have equal values.
type AntiSpoof struct {
	Link   string // the management port's interface, which need not exist
	Own    string // the subnets of this node's pods as CIDRs, sorted, with commas
	Inside string // those of all pods and of ClusterIPs, likewise; they count where they are routed through Link
	Join   string // those of the join switch, likewise
}

// NewAntiSpoof is the item of a node.
func NewAntiSpoof(f Facts, c config.Node) AntiSpoof {
	inside := slices.Clone(c.ServiceCIDRs)
	for _, s := range c.ClusterSubnets {
		inside = append(inside, s.CIDR)
	}
	join := slices.DeleteFunc(slices.Clone(c.JoinSubnets), func(j netip.Prefix) bool {
		return !slices.ContainsFunc(inside, func(p netip.Prefix) bool { return p.Addr().Is4() == j.Addr().Is4() })
	})
	return AntiSpoof{names.ManagementInterface(c.Name), PrefixList(f.Subnets), PrefixList(inside), PrefixList(join)}
}

// Key implements Item.
func (a AntiSpoof) Key() string { return "anti-spoof" }

// Device implements Item.
func (a AntiSpoof) Device() string { return "" }

// String implements Item.
func (a AntiSpoof) String() string {
	return fmt.Sprintf("anti-spoof own %s inside %s join %s unless through %s", a.Own, a.Inside, a.Join, a.Link)
}

// Prefixes reads one of the lists. What is not a CIDR is left out.
func Prefixes(list string) (out []netip.Prefix) {
	for s := range strings.SplitSeq(list, ",") {
		if p, err := netip.ParsePrefix(s); err == nil {
			out = append(out, p)
		}
	}
	return out
}
