package nbrecord

import (
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// Freed is what an earlier master freed lately, as it recorded that, and what the rows of objects have that are gone by
// now: the time at which each may be given again.
func (Records) Freed(s *cluster.State, session *ovsdb.Session) map[netip.Prefix]int64 {
	out := session.Freed()
	for _, p := range (Records{}).Unclaimed(s, session, session.Owners()) {
		out[p] = math.MaxInt64
	}
	return out
}

// Unclaimed is the addresses and subnets in the rows of owners whose objects do not claim them, or are gone.
func (Records) Unclaimed(s *cluster.State, session *ovsdb.Session, owners []nb.Owner) (out []netip.Prefix) {
	view := session.View()
	for _, o := range owners {
		if !granted(s, o) {
			continue
		}
		claimed := claims(s, o)
		for _, ref := range view.Owned(o) {
			for _, p := range given(view, ref) {
				if !slices.ContainsFunc(claimed, func(q netip.Prefix) bool {
					return q == p || p.IsSingleIP() && q.Addr() == p.Addr()
				}) {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// granted tells whether an owner is one that is granted addresses or subnets in the network that nodes themselves are
// in. What was freed in others is not recorded.
func granted(s *cluster.State, o nb.Owner) bool {
	if o.Kind != names.KindNode {
		return o.Kind == names.KindPod || o.Kind == names.KindGateway || o.Kind == names.KindExit
	}
	id, _ := names.NetworkOf(o.Name)
	network := s.Networks[id]
	return network != nil && network.Hosts
}

// given is the addresses or subnets that an object was granted, in one of its rows.
func given(view nb.View, ref nb.Ref) (out []netip.Prefix) {
	switch m := view.Row(ref).(type) {
	case *nbdb.LogicalSwitch:
		return SwitchSubnets(m)
	case *nbdb.LogicalSwitchPort:
		if m.ExternalIDs[names.RoleKey] == names.RolePort {
			for _, a := range strings.Fields(strings.Join(m.Addresses, " ")) {
				if ip, err := netip.ParseAddr(a); err == nil {
					out = append(out, ipnet.Single(ip))
				}
			}
		}
	case *nbdb.LogicalRouterPort:
		role := m.ExternalIDs[names.RoleKey] // of an exit's, only the address in the node's subnet counts
		exit := m.ExternalIDs[names.OwnerTypeKey] == string(names.KindExit)
		if role == names.RoleRouterToJoin && !exit || role == names.RoleRouterToPods {
			for _, p := range ipnet.Prefixes(m.Networks) {
				out = append(out, ipnet.Single(p.Addr()))
			}
		}
	}
	return out
}

// claims is what the object of an owner claims: nothing if it is gone. What is malformed claims nothing.
func claims(s *cluster.State, o nb.Owner) []netip.Prefix {
	if o.Kind == names.KindPod {
		pod := s.Pods[cluster.ParseName(o.Name)]
		if pod == nil || !pod.WantsNetwork() {
			return nil
		}
		net, _ := annotation.ParsePodNetworks(pod.Annotated)
		return net.IPs
	}
	network, node := names.NetworkOf(o.Name)
	n := s.Nodes[node]
	switch {
	case n == nil:
		return nil
	case o.Kind == names.KindExit:
		exit, _, _ := annotation.GatewayJoinAddrsIn(n.JoinAnnotated, network.ExitEntry())
		return exit
	}
	subnets, _ := annotation.ParseNodeSubnets(n.Annotated)
	join, _, _ := annotation.GatewayJoinAddrsIn(n.JoinAnnotated, names.Own)
	return append(subnets, join...)
}
