package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
)

// lostTunnel is an error when tunnel addresses are on no interface. They are
// not put back: Open vSwitch keeps the interface of a bridge, with its addresses
// and routes, when ovs-vswitchd ends or is killed and starts again, so that an
// address that is gone was taken away by somebody, or with the bridge.
func (a *Agent) lostTunnel(want []netip.Addr, places []hostnet.Place) error {
	var lost []string
	for _, ip := range want {
		if !slices.ContainsFunc(places, func(p hostnet.Place) bool { return p.Prefix.Addr() == ip }) {
			lost = append(lost, ip.String()+a.lastSeen(ip.String()))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf("on no interface of this host is the tunnel address %s", strings.Join(lost, ", nor "))
}

// lastSeen tells what to type for those of a list of addresses that were here
// before.
func (a *Agent) lastSeen(list string) (out string) {
	for _, ip := range strings.Split(list, ",") {
		for _, p := range a.memory.places {
			if p.Prefix.Addr().String() == strings.TrimSpace(ip) {
				out += fmt.Sprintf(" (it was on %[1]s: `ip link set %[1]s up; ip addr add %[2]s dev %[1]s`, and its routes)",
					p.Link, p.Prefix)
			}
		}
	}
	return out
}

// remember keeps where tunnel addresses are.
func (a *Agent) remember(places []hostnet.Place) {
	for _, p := range places {
		a.memory.places = slices.DeleteFunc(a.memory.places,
			func(old hostnet.Place) bool { return old.Prefix.Addr() == p.Prefix.Addr() })
		a.memory.places = append(a.memory.places, p)
	}
}
