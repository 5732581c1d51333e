package topology

import (
	"fmt"
	"net/netip"
	"strings"

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
	var either []string
	for _, f := range []struct {
		is4   bool
		field string
	}{{true, "ip4.src"}, {false, "ip6.src"}} {
		var sources []string
		for _, p := range second {
			if p.Addr().Is4() == f.is4 {
				sources = append(sources, p.Addr().String())
			}
		}
		if len(sources) == 0 {
			continue
		}
		for _, p := range r.state.ServiceRanges() {
			if p.Addr().Is4() == f.is4 {
				sources = append(sources, p.String())
			}
		}
		either = append(either, fmt.Sprintf("%s == {%s}", f.field, strings.Join(sources, ", ")))
	}
	return r.schema.NewRow(r.key(nbdb.ACLTable, names.RoleHairpin), &nbdb.ACL{
		UUID: r.uuid(nbdb.ACLTable, names.RoleHairpin), Priority: hairpinPriority, Direction: nbdb.ACLDirectionToLport,
		Match:  fmt.Sprintf("outport == %q && (%s)", names.ManagementPort(r.node.Name), strings.Join(either, " || ")),
		Action: nbdb.ACLActionAllowStateless,
	}, nb.Slot{In: nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: r.uuid(nbdb.LogicalSwitchTable, names.RoleSwitch)}, Column: "acls"})
}
