package nicmove

import (
	"fmt"
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// DatapathNetdev is Open vSwitch's userspace datapath, which reads a NIC through a packet socket.
const DatapathNetdev = "netdev"

// Sysctls that a move depends on or sets.
const (
	disableIPv6     = "ipv6/disable_ipv6"
	addrGenMode     = "ipv6/addr_gen_mode"
	raMetric        = "ipv6/ra_defrtr_metric"
	genModeNone     = "1" // IN6_ADDR_GEN_MODE_NONE
	defaultRAMetric = 1024
)

// Forward lists the remaining steps until the bridge has all of move and the NIC nothing. move is the configuration of
// the NIC, now or before an earlier attempt. If it has no sysctls, those of the bridge do not change.
//
// The order is: the bridge, still without the NIC, gets sysctls and addresses; the NIC becomes a port, so that its
// frames arrive at the bridge; rules and routes move one by one, default routes last; the NIC is emptied.
func Forward(move Device, row Bridge, have Host) []Step {
	var s steps
	move = move.replaceLearned()
	want := move.On(row.Name)
	if have.Row != row {
		s.change(have.Row, row, have.Row == Bridge{})
	}
	early := withoutGenMode(want.Sysctls, want.Link.Up && !have.Bridge.Link.Up)
	s.sysctls(row.Name, early, have.Bridge.sysctlsOr(have.Defaults))
	if want.Link != have.Bridge.Link {
		s.change(have.Bridge.Link, want.Link, !have.Bridge.Exists())
	}
	s.addresses(want.Addrs, have.Bridge.Addrs)
	s.missing(want.Neighbours, have.Bridge.Neighbours)
	s.addPort(row, move.Link, have)
	s.moveRules(want.Rules, have.NIC.Rules, have.Bridge.Rules)
	s.moveRoutes(want, have.NIC, have.Bridge)
	s.unwantedConnected(want, have.Bridge)
	s.empty(have.NIC)
	s.sysctls(row.Name, want.Sysctls, overlay(have.Bridge.sysctlsOr(have.Defaults), early))
	return s
}

// Back lists the remaining steps until the NIC has all of saved again and the bridge is gone. The NIC also gets what
// was added to the bridge meanwhile, except by the agent. Lifetimes are the bridge's current ones.
func Back(saved Device, have Host) []Step {
	var s steps
	nic := saved.Link.Name
	want := saved.Merged(have.Bridge.extras().On(nic)).Merged(have.NIC).replaceLearned()
	enableIPv6 := have.NIC.Sysctls[disableIPv6] == "1" && want.Sysctls[disableIPv6] == "0"
	early := withoutGenMode(want.Sysctls, enableIPv6)
	delete(early, disableIPv6)
	s.sysctls(nic, early, have.NIC.Sysctls)
	if enableIPv6 {
		early[disableIPv6] = "0"
		s.add(sysctl(nic, disableIPv6, "0"))
	}
	if want.Link != have.NIC.Link {
		s.replace(have.NIC.Link, want.Link)
	}
	s.addresses(want.Addrs, have.NIC.Addrs)
	s.missing(want.Neighbours, have.NIC.Neighbours)
	s.removePort(saved, have)
	s.moveRules(want.Rules, have.Bridge.Rules, have.NIC.Rules)
	s.moveRoutes(want, Device{Link: have.Bridge.Link, Routes: have.Bridge.shared()}, have.NIC)
	s.unwantedConnected(want, have.NIC)
	if have.Row != (Bridge{}) {
		s.remove(have.Row) // and all that is on it
	}
	s.sysctls(nic, want.Sysctls, overlay(have.NIC.Sysctls, early))
	return s
}

// withoutGenMode removes the sysctl that makes the kernel generate link-local addresses. A device gets it only after
// its addresses, or else the kernel would generate one itself and check it for duplicates. With off, the result
// disables the generation until then.
func withoutGenMode(sysctls map[string]string, off bool) map[string]string {
	out := maps.Clone(sysctls)
	if _, ok := out[addrGenMode]; ok {
		delete(out, addrGenMode)
		if off {
			out[addrGenMode] = genModeNone
		}
	}
	return out
}

func (s *steps) change(have, want fmt.Stringer, absent bool) {
	if absent {
		s.add(want)
		return
	}
	s.replace(have, want)
}

// sysctlsOr returns the device's sysctls, or the defaults for a new device if it does not exist.
func (d Device) sysctlsOr(defaults map[string]string) map[string]string {
	if d.Exists() {
		return d.Sysctls
	}
	return defaults
}

func overlay(below, above map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, below)
	maps.Copy(out, above)
	return out
}

func (s *steps) sysctls(link string, want, have map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if want[k] != have[k] {
			s.add(sysctl(link, k, want[k]))
		}
	}
}

// addresses adds missing addresses, in the order that makes the kernel list them as wanted: it lists IPv4 addresses in
// the order in which they were added, but the latest IPv6 address first.
func (s *steps) addresses(want, have []Addr) {
	var v4, v6 []Addr
	for _, a := range want {
		if a.Prefix.Addr().Is4() {
			v4 = append(v4, a)
		} else {
			v6 = append(v6, a)
		}
	}
	slices.Reverse(v6)
	for _, w := range slices.Concat(v4, v6) {
		i := slices.IndexFunc(have, func(h Addr) bool { return h.Prefix == w.Prefix })
		switch {
		case i < 0:
			s.add(w)
		case !have[i].same(w):
			s.replace(have[i], w)
		}
	}
}

func (s *steps) missing(want, have []Neighbour) {
	for _, w := range want {
		if !slices.Contains(have, w) {
			s.add(w)
		}
	}
}

// addPort makes the NIC a port of the bridge. link has the NIC's wanted state and MTU.
func (s *steps) addPort(row Bridge, link hostplan.Link, have Host) {
	userspace := row.Datapath == DatapathNetdev
	if userspace { // frames that the kernel has merged do not fit the buffers of Open vSwitch
		for _, k := range slices.Sorted(maps.Keys(have.NIC.Offloads)) {
			if have.NIC.Offloads[k] {
				s.add(Offload{Link: row.NIC, Name: k})
			}
		}
	}
	nic := have.NIC.Link
	nic.Up, nic.MTU = nic.Up || link.Up, link.MTU
	if nic != have.NIC.Link {
		s.replace(have.NIC.Link, nic)
	}
	if have.PortOn != row.Name {
		s.add(Port{row.Name, row.NIC})
	}
	s.drop(row.NIC, userspace, have.NIC.Drop)
}

// removePort takes the NIC out of the bridge, so that the host gets its frames again.
func (s *steps) removePort(saved Device, have Host) {
	nic := saved.Link.Name
	s.drop(nic, false, have.NIC.Drop)
	if have.PortOn != "" {
		s.remove(Port{have.PortOn, nic})
	}
	for _, k := range slices.Sorted(maps.Keys(saved.Offloads)) {
		if saved.Offloads[k] != have.NIC.Offloads[k] {
			s.add(Offload{nic, k, saved.Offloads[k]})
		}
	}
}

func (s *steps) drop(nic string, want, have bool) {
	item := hostplan.IngressDrop{Link: nic}
	switch {
	case want && !have:
		s.add(item)
	case !want && have:
		s.remove(item)
	}
}

// moveRules adds the wanted rules that are missing there, and removes those of here.
func (s *steps) moveRules(want, here, there []Rule) {
	for _, w := range want {
		if !w.in(there) {
			s.add(w)
		}
	}
	for _, r := range here {
		s.remove(r)
	}
}

// empty removes the rest of the NIC's configuration.
func (s *steps) empty(nic Device) {
	for _, n := range nic.Neighbours {
		s.remove(n)
	}
	if nic.Sysctls[disableIPv6] == "0" {
		s.add(sysctl(nic.Link.Name, disableIPv6, "1")) // removes all IPv6 addresses and routes
	}
	for _, a := range slices.Backward(nic.Addrs) { // removing a primary address removes its secondary addresses, too
		if a.Prefix.Addr().Is4() {
			s.remove(a)
		}
	}
}
