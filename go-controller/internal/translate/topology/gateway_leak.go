package topology

import (
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// leakGuard drops packets that the gateway router would send out with the address of a pod, or of the join switch, as
// the source. SNAT leaves packets as they are that conntrack can't classify, such as an ICMP error without a connection
// or an unknown protocol. So does it with packets to the ports of tunnels (RFC 8926, RFC 7348): from the node's address
// they would be the node's own, and what is in them would get around every check (ADR 0029).
func (r gatewayRows) leakGuard() nb.Row {
	var inside []netip.Prefix
	for _, c := range r.state.Config.Subnets {
		inside = append(inside, c.CIDR)
	}
	inside = append(inside, r.state.Config.JoinSubnets...)
	return r.Row(names.RoleLeakGuard, &nbdb.ACL{
		Priority: names.ACLLeakGuard, Direction: nbdb.ACLDirectionFromLport,
		Match: fmt.Sprintf("inport == %q && (%s || udp.dst == {%d, %d})", names.ExternalToRouter(r.node.Name), from(inside),
			names.VXLANPort, names.GenevePort),
		Action: nbdb.ACLActionDrop,
	}, r.In(nbdb.LogicalSwitchTable, names.RoleExternal, "acls"))
}
