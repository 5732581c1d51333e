package topology

import (
	"net/netip"
	"strconv"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// multicastRows drop the multicast of all pods, but for what namespaces allow theirs. Without them a switch hands each
// multicast packet to all pods of the node, in whatever namespace.
func multicastRows(m translate.Maker) []nb.Row {
	acl := func(role string, way nbdb.ACLDirection, priority int, match, action string) nb.Row {
		return m.Row(role, &nbdb.ACL{Direction: way, Priority: priority, Match: match, Action: action},
			translate.OnAllNodes("acls"))
	}
	from, to := nbdb.ACLDirectionFromLport, nbdb.ACLDirectionToLport
	return []nb.Row{
		acl(names.RoleMcastRouteIn, from, names.ACLMulticastRouter,
			"inport == @"+names.MulticastRouters+" && "+translate.Multicast, nbdb.ACLActionAllow),
		acl(names.RoleMcastRoute, to, names.ACLMulticastRouter,
			"outport == @"+names.MulticastRouters+" && "+translate.Multicast, nbdb.ACLActionAllow),
		acl(names.RoleMcastDenyOut, from, names.ACLMulticastDeny, translate.Multicast, nbdb.ACLActionDrop),
		acl(names.RoleMcastDenyIn, to, names.ACLMulticastDeny, translate.Multicast, nbdb.ACLActionDrop),
	}
}

// queryInterval is how often a switch asks its pods what they listen to, in seconds: a pod that listened before its
// namespace was allowed multicast gets it after this time at most.
const queryInterval = 30

// snooping has a switch find out which pods listen, and send multicast to no others. It asks them in the name of the
// router (ovn-nb(5), Logical_Switch other_config).
func snooping(router []netip.Prefix) map[string]string {
	mac := ipnet.MACFor(ipnet.Addrs(router))
	out := map[string]string{"mcast_snoop": "true", "mcast_querier": "true", "mcast_eth_src": mac.String(),
		"mcast_query_interval": strconv.Itoa(queryInterval)}
	for _, p := range router {
		if p.Addr().Is4() {
			out["mcast_ip4_src"] = p.Addr().String()
		} else {
			out["mcast_ip6_src"] = ipnet.LinkLocal(mac).String()
		}
	}
	return out
}
