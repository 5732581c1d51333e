package nbrecord

import (
	"math"
	"net/netip"
	"slices"
	"strings"

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
	out, view := session.Freed(), session.View()
	for _, o := range session.Owners() {
		if o.Kind != names.KindPod && o.Kind != names.KindNode && o.Kind != names.KindGateway {
			continue
		}
		for _, ref := range view.Owned(o) {
			for _, p := range given(view, ref) {
				if !claims(s, o, p) {
					out[p] = math.MaxInt64
				}
			}
		}
	}
	return out
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
		if m.ExternalIDs[names.RoleKey] == names.RoleRouterToJoin {
			for _, p := range ipnet.Prefixes(m.Networks) {
				out = append(out, ipnet.Single(p.Addr()))
			}
		}
	}
	return out
}

// claims tells whether the object of an owner exists and claims what it was granted.
func claims(s *cluster.State, o nb.Owner, p netip.Prefix) bool {
	holds := func(q netip.Prefix) bool { return q == p || p.IsSingleIP() && q.Addr() == p.Addr() }
	if o.Kind == names.KindPod {
		pod := s.Pods[cluster.ParseName(o.Name)]
		return pod != nil && pod.WantsNetwork() && pod.Annotated != nil && slices.ContainsFunc(pod.Annotated.IPs, holds)
	}
	n := s.Nodes[o.Name]
	return n != nil && (slices.ContainsFunc(n.Annotated, holds) || slices.ContainsFunc(n.JoinAnnotated, holds))
}
