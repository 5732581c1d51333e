package topology

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// reasonOverlap is that of a Problem with a network of which some addresses may be Services', too.
const reasonOverlap = "NetworkOverlapsServices"

// overlapping reports the first range of a network that overlaps one of a ServiceCIDR. The network is served all the
// same: only its own pods are concerned, and a range that comes must not take a network from pods that run.
func overlapping(s *cluster.State, n *cluster.Network, r cluster.Ref, uid string) []cluster.Problem {
	fields := []struct {
		name   string
		ranges []netip.Prefix
	}{{"subnets", n.Ranges()}, {"joinSubnets", n.JoinSubnets}}
	for _, name := range slices.Sorted(maps.Keys(s.ServiceCIDRs)) {
		for _, services := range s.ServiceCIDRs[name].CIDRs {
			for _, field := range fields {
				if i := slices.IndexFunc(field.ranges, services.Overlaps); i >= 0 {
					return []cluster.Problem{{Ref: r, UID: uid, Reason: reasonOverlap, Message: fmt.Sprintf(
						"%s: %s overlaps %s of ServiceCIDR %s: pods of the network may not reach Services there. To give the "+
							"network another range interrupts its pods", field.name, field.ranges[i], services, name)}}
				}
			}
		}
	}
	return nil
}
