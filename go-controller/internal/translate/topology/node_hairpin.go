package topology

import (
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// hairpin keeps a node's connections to itself through a service from being tracked twice. Such a connection enters at
// the management port, where it is tracked and gets the node as its destination, and leaves at the same port. Tracked
// there again, it would clash with its own entry, which has the same addresses and zone, and get another source port.
// So would its replies, which come from the ClusterIP by then.
func (r nodeRows) hairpin(management []netip.Prefix) nb.Row {
	var sources []netip.Prefix
	for _, p := range management {
		sources = append(sources, ipnet.Single(p.Addr()))
		for _, services := range r.state.ServiceRanges() {
			if services.Addr().Is4() == p.Addr().Is4() {
				sources = append(sources, services)
			}
		}
	}
	return r.Row(names.RoleHairpin, &nbdb.ACL{
		Priority: names.ACLHairpin, Direction: nbdb.ACLDirectionToLport,
		Match:  fmt.Sprintf("outport == %q && (%s)", names.ManagementPort(r.node.Name), from(sources)),
		Action: nbdb.ACLActionAllowStateless,
	}, r.inSwitch("acls"))
}
