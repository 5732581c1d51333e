package topology

import (
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// hairpinPriority is above that of network policies, which don't concern what a
// node sends to itself.
const hairpinPriority = 2000

// hairpin keeps a node's connections to itself by way of a service from being
// tracked a second time. Such a connection enters by the management port, where
// it is tracked and gets the node as its destination, and comes back to the same
// port. Tracked there too, it would meet what is known of it already, by the
// same addresses and in the same zone, and be given another source port; and so
// would its answers, which come from the ClusterIP by then.
func (r nodeRows) hairpin(second []netip.Prefix) nb.Row {
	var sources []netip.Prefix
	for _, p := range second {
		sources = append(sources, netip.PrefixFrom(p.Addr(), p.Addr().BitLen()))
		for _, services := range r.state.ServiceRanges() {
			if services.Addr().Is4() == p.Addr().Is4() {
				sources = append(sources, services)
			}
		}
	}
	return r.schema.NewRow(r.key(nbdb.ACLTable, names.RoleHairpin), &nbdb.ACL{
		UUID: r.uuid(nbdb.ACLTable, names.RoleHairpin), Priority: hairpinPriority, Direction: nbdb.ACLDirectionToLport,
		Match:  fmt.Sprintf("outport == %q && (%s)", names.ManagementPort(r.node.Name), from(sources)),
		Action: nbdb.ACLActionAllowStateless,
	}, nb.Slot{In: nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: r.uuid(nbdb.LogicalSwitchTable, names.RoleSwitch)}, Column: "acls"})
}
