package topology

import (
	"fmt"
	"net/netip"
	"strings"

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
	var ranges [2][]string // of IPv4 and IPv6
	add := func(p netip.Prefix) {
		i := 0
		if p.Addr().Is6() {
			i = 1
		}
		ranges[i] = append(ranges[i], p.String())
	}
	for _, c := range r.state.Config.Subnets {
		add(c.CIDR)
	}
	for _, p := range r.state.Config.JoinSubnets {
		add(p)
	}
	var either []string
	for i, field := range []string{"ip4.src", "ip6.src"} {
		if len(ranges[i]) > 0 {
			either = append(either, fmt.Sprintf("%s == {%s}", field, strings.Join(ranges[i], ", ")))
		}
	}
	return r.schema.NewRow(r.key(nbdb.ACLTable, names.RoleLeakGuard), &nbdb.ACL{
		UUID: r.uuid(nbdb.ACLTable, names.RoleLeakGuard), Priority: leakPriority, Direction: nbdb.ACLDirectionFromLport,
		Match:  fmt.Sprintf("inport == %q && (%s)", names.ExternalToRouter(r.node.Name), strings.Join(either, " || ")),
		Action: nbdb.ACLActionDrop,
	}, r.in(nbdb.LogicalSwitchTable, names.RoleExternal, "acls"))
}
