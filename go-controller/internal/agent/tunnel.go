package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
)

// lostTunnel is the error that tunnel addresses are on no interface. The agent does not
// put them back. A bridge keeps its interface, addresses and routes when ovs-vswitchd
// ends and starts again, so somebody removed the address, or the bridge.
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

// lastSeen is the command that puts back those of the addresses that were on this host
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

// remember keeps where the tunnel addresses are.
func (a *Agent) remember(places []hostnet.Place) {
	for _, p := range places {
		a.memory.places = slices.DeleteFunc(a.memory.places,
			func(old hostnet.Place) bool { return old.Prefix.Addr() == p.Prefix.Addr() })
		a.memory.places = append(a.memory.places, p)
	}
}
