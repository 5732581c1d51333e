package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// reasonOverlap is that of a Problem with a network of which some addresses may be Services', too.
const reasonOverlap = "NetworkOverlapsServices"

// overlapping reports a range of a network that overlaps one of a ServiceCIDR. The network is served all the same: only
// its own pods are concerned, and a range that comes must not take a network from pods that run.
func overlapping(s *cluster.State, n *cluster.Network, r cluster.Ref, uid string) []cluster.Problem {
	for _, name := range slices.Sorted(maps.Keys(s.ServiceCIDRs)) {
		taken := s.ServiceCIDRs[name].CIDRs
		text := cmp.Or(cluster.Overlap("subnets", n.Ranges(), taken), cluster.Overlap("joinSubnets", n.JoinSubnets, taken))
		if text != "" {
			return []cluster.Problem{{Ref: r, UID: uid, Reason: reasonOverlap, Message: fmt.Sprintf("%s of ServiceCIDR %s: "+
				"pods of the network may fail to reach Services there. To give the network another range interrupts its pods",
				text, name)}}
		}
	}
	return nil
}
