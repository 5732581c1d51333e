package nicmove

import (
	"slices"
	"strconv"
)

// raMetric is the metric of default routes that the kernel learns on the device.
func (d Device) raMetric() uint32 {
	n, err := strconv.ParseUint(d.Sysctls[raMetric], 10, 32)
	if err != nil {
		return defaultRAMetric
	}
	return uint32(n)
}

// replaceLearned replaces each route that the kernel learned from a router advertisement by a stand-in: the same route
// with the next metric. The kernel does not prolong a route that it did not make. With the next advertisement it learns
// a route of its own on the other interface, and prefers that one. The stand-in expires with the router's lifetime.
func (d Device) replaceLearned() Device {
	var out []Route
	for _, r := range d.Routes {
		if r.learned(d.raMetric()) {
			r.Metric++
		}
		if !r.in(out) { // a stand-in of an earlier move may still exist
			out = append(out, r)
		}
	}
	d.Routes = out
	return d
}

// Merged adds to d what only more has, except the routes that the kernel makes for d's addresses: if d lacks such a
// route, somebody removed it. If both have an address or route, its lifetime and the kernel's flags are those of more.
func (d Device) Merged(more Device) Device {
	before := d
	d.Addrs, d.Routes = slices.Clone(d.Addrs), slices.Clone(d.Routes)
	d.Rules, d.Neighbours = slices.Clone(d.Rules), slices.Clone(d.Neighbours)
	for _, a := range more.Addrs {
		i := slices.IndexFunc(d.Addrs, func(b Addr) bool { return a.Prefix == b.Prefix })
		if i < 0 {
			d.Addrs = append(d.Addrs, a)
		} else {
			b := &d.Addrs[i]
			b.Valid, b.Preferred, b.Flags = a.Valid, a.Preferred, b.Flags&SettableFlags|a.Flags&^SettableFlags
		}
	}
	for _, r := range more.Routes {
		same := func(q Route) bool { return q.identity() == r.identity() || q.standsInFor(r) || r.standsInFor(q) }
		i := slices.IndexFunc(d.Routes, same)
		switch {
		case i >= 0:
			d.Routes[i].Expires = r.Expires
		case !before.connected(r):
			d.Routes = append(d.Routes, r)
		}
	}
	for _, r := range more.Rules {
		if !r.in(d.Rules) {
			d.Rules = append(d.Rules, r)
		}
	}
	for _, n := range more.Neighbours {
		if !slices.Contains(d.Neighbours, n) {
			d.Neighbours = append(d.Neighbours, n)
		}
	}
	return d
}

// standsInFor reports whether r is the stand-in that replaceLearned makes for learned.
func (r Route) standsInFor(learned Route) bool {
	if r.Protocol != protoRA || learned.Protocol != protoRA || r.Metric != learned.Metric+1 {
		return false
	}
	r.Metric--
	return r.identity() == learned.identity()
}

// extras is the part of a bridge's configuration that a NIC gets when it leaves the bridge: without the agent's routes,
// and without link-local addresses, of which each interface has its own.
func (d Device) extras() Device {
	out, local := d, d
	linkLocal := func(a Addr) bool { return a.Prefix.Addr().IsLinkLocalUnicast() }
	out.Addrs = slices.DeleteFunc(slices.Clone(d.Addrs), linkLocal)
	local.Addrs = slices.DeleteFunc(slices.Clone(d.Addrs), func(a Addr) bool { return !linkLocal(a) })
	out.Routes = slices.DeleteFunc(slices.Clone(d.Routes), func(r Route) bool { return r.ofAgent() || local.connected(r) })
	return out
}

// connected reports whether r is a route that the kernel makes for one of the device's addresses.
func (d Device) connected(r Route) bool {
	return slices.ContainsFunc(d.Addrs, func(a Addr) bool { return a.connected(r) })
}

// shared returns the routes of which only some hops are on this device. The other routes vanish together with it.
func (d Device) shared() []Route {
	return slices.DeleteFunc(slices.Clone(d.Routes), func(r Route) bool {
		return len(r.Hops) == 1 || !slices.ContainsFunc(r.Hops, func(h Hop) bool { return h.Link != d.Link.Name })
	})
}

// moveRoutes adds want's routes to the device there, and removes those of here: default routes last.
func (s *steps) moveRoutes(want, here, there Device) {
	for _, last := range []bool{false, true} {
		rest := slices.Clone(here.Routes)
		for _, w := range want.Routes {
			if w.Default() != last {
				continue
			}
			i := slices.IndexFunc(rest, func(r Route) bool { return r.becomes(w, here, want.Link.Name) })
			if len(w.Hops) > 1 && i >= 0 { // the kernel allows only one such route, so replace it in one step
				s.replace(rest[i], w)
				rest = slices.Delete(rest, i, i+1)
				continue
			}
			if !there.satisfies(w, want) {
				s.add(w)
			}
			if i >= 0 && !here.connected(rest[i]) {
				s.remove(rest[i])
				rest = slices.Delete(rest, i, i+1)
			}
		}
		for _, r := range rest {
			if r.Default() == last && !here.connected(r) {
				s.remove(r)
			}
		}
	}
}

// becomes reports whether moving r from the device here to the link there gives w.
func (r Route) becomes(w Route, here Device, there string) bool {
	if len(w.Hops) > 1 || len(r.Hops) > 1 {
		return len(r.Hops) > 1 && len(w.Hops) > 1 && r.multipathKey() == w.multipathKey() && r.Uses(here.Link.Name)
	}
	moved := r.on(here.Link.Name, there)
	return moved.identity() == w.identity() || w.standsInFor(moved)
}

// satisfies reports whether the device has the route or, for a stand-in, the learned route. A route that the kernel
// will make for an address that the device gets counts, too.
func (d Device) satisfies(w Route, want Device) bool {
	for _, r := range d.Routes {
		if r.identity() == w.identity() || w.standsInFor(r) || r.standsInFor(w) {
			return true
		}
	}
	return slices.ContainsFunc(want.Addrs, func(a Addr) bool {
		there := slices.ContainsFunc(d.Addrs, func(b Addr) bool { return b.Prefix == a.Prefix })
		return !there && a.connected(w)
	})
}

// unwantedConnected removes routes that the kernel made for addresses, but that somebody had removed from the other
// interface.
func (s *steps) unwantedConnected(want, have Device) {
	for _, r := range have.Routes {
		if want.connected(r) && !r.in(want.Routes) {
			s.remove(r)
		}
	}
}
