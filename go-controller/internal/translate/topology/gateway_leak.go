package topology

import (
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// leakPriority is that of the only ACL of an external switch.
const leakPriority = 1000

// leakGuard drops what the gateway router would send to the outside with an
// address of a pod, or of the join switch, as its source: SNAT leaves packets as
// they are that conntrack can't make out, such as an ICMP error about nothing,
// or of a protocol that it does not know.
func (r gatewayRows) leakGuard() nb.Row {
	var inside []netip.Prefix
	for _, c := range r.state.Config.Subnets {
		inside = append(inside, c.CIDR)
	}
	inside = append(inside, r.state.Config.JoinSubnets...)
	return r.schema.NewRow(r.key(nbdb.ACLTable, names.RoleLeakGuard), &nbdb.ACL{
		UUID: r.uuid(nbdb.ACLTable, names.RoleLeakGuard), Priority: leakPriority, Direction: nbdb.ACLDirectionFromLport,
		Match:  fmt.Sprintf("inport == %q && (%s)", names.ExternalToRouter(r.node.Name), from(inside)),
		Action: nbdb.ACLActionDrop,
	}, r.in(nbdb.LogicalSwitchTable, names.RoleExternal, "acls"))
}
