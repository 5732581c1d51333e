package cluster

import (
	"cmp"
	"net/netip"
	"slices"
)

// VIP is what a client of a service connects to.
type VIP struct {
	Addr     netip.AddrPort
	Protocol Protocol
}

// String is "10.96.0.1:80/TCP".
func (v VIP) String() string { return v.Addr.String() + "/" + string(v.Protocol) }

// VIPs lists what the service would have clients connect to, in no order:
// every port on every address at which the cluster answers, be it OVN or the
// nodes' kernels, and where the ClusterIPs take who comes from outside.
func (s *Service) VIPs() []VIP {
	var out []VIP
	for _, a := range s.Addresses() {
		if a.Withheld == ProxyMode {
			continue
		}
		for _, p := range s.Ports {
			out = append(out, VIP{netip.AddrPortFrom(a.Addr, p.Port), p.Protocol})
			if n := s.OutsidePort(p); n != p.Port && a.Origin == FromClusterIPs {
				out = append(out, VIP{netip.AddrPortFrom(a.Addr, n), p.Protocol})
			}
		}
	}
	return out
}

// Holder is the service that has a VIP: of those that claim it, one whose
// cluster IP it is before those that only name the address, since cluster IPs are
// given out by the API server and the others are whatever a user wrote; then the
// oldest, then the first by name. It is nil when none claims the VIP.
func (s *State) Holder(v VIP) *Service {
	return s.claims.holder(v)
}

// compareClaims orders the services that claim v, its holder first.
func compareClaims(v VIP, a, b *Service) int {
	named := func(s *Service) int {
		if slices.Contains(s.ClusterIPs, v.Addr.Addr()) {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(named(a), named(b)), cmp.Compare(a.Created, b.Created), CompareNames(a.Name, b.Name))
}

// reclaim replaces a service's claims, either of which may be nil, and lists
// the other services that gained or lost a VIP by it, sorted.
func (s *State) reclaim(old, now *Service) []Name {
	var dropped, added []VIP
	if old != nil {
		dropped = old.VIPs()
	}
	if now != nil {
		added = now.VIPs()
	}
	return sortedNames(s.claims.replace(old, now, dropped, added))
}
