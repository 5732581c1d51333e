package cluster

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// overlapped says which range of a ServiceCIDR a network overlaps; "" if there is none. The network is served all the
// same: only its own pods are concerned, and a range that comes must not take a network from pods that run.
func (s *State) overlapped(n *Network) string {
	if n == nil {
		return ""
	}
	fields := []struct {
		name   string
		ranges []netip.Prefix
	}{{"subnets", n.Ranges()}, {"joinSubnets", n.JoinSubnets}}
	for _, name := range slices.Sorted(maps.Keys(s.ServiceCIDRs)) {
		for _, services := range s.ServiceCIDRs[name].CIDRs {
			for _, field := range fields {
				for _, r := range field.ranges {
					if r.Overlaps(services) {
						return fmt.Sprintf("%s: %s overlaps %s of ServiceCIDR %s", field.name, r, services, name)
					}
				}
			}
		}
	}
	return ""
}

// resolve is the definition with what its network overlaps now.
func (d *NetworkDefinition) resolve(s *State) Object {
	overlaps := s.overlapped(d.Network)
	if overlaps == d.Overlaps {
		return d
	}
	out := *d
	out.Overlaps = overlaps
	return &out
}

// resolve is the object with what its network overlaps now.
func (u *UserNetwork) resolve(s *State) Object {
	overlaps := s.overlapped(u.Network)
	if overlaps == u.Overlaps {
		return u
	}
	out := *u
	out.Overlaps = overlaps
	return &out
}

// resolvedNetworks lists the objects whose networks overlap other ServiceCIDRs than before, as they are to be. They are
// sorted by kind and name.
func (s *State) resolvedNetworks() (out []Object) {
	add := func(a asking) {
		if now := a.resolve(s); now != a {
			out = append(out, now)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(s.NetworkDefinitions), CompareNames) {
		add(s.NetworkDefinitions[name])
	}
	for _, name := range slices.SortedFunc(maps.Keys(s.UserNetworks), CompareNames) {
		add(s.UserNetworks[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.ClusterUserNetworks)) {
		add(s.ClusterUserNetworks[name])
	}
	return out
}
