package hostnet

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// staleFlows matches connections to places that have changed. It implements
// netlink.CustomConntrackFilter.
type staleFlows map[netip.AddrPort]bool

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (s staleFlows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	a, ok := netip.AddrFromSlice(flow.Forward.DstIP)
	if !ok || flow.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	a = a.Unmap()
	all := netip.IPv6Unspecified()
	if a.Is4() {
		all = netip.IPv4Unspecified()
	}
	return s[netip.AddrPortFrom(a, flow.Forward.DstPort)] || s[netip.AddrPortFrom(all, flow.Forward.DstPort)]
}

// forgetConnections has the kernel forget UDP flows to places that have
// changed: they know no end, and rules are asked for a flow's first packet only.
func forgetConnections(changes []hostplan.ServiceChange) error {
	stale := staleFlows{}
	for _, c := range changes {
		for _, e := range []hostplan.ServiceEntry{c.Drop, c.Add} {
			if e.Kind == hostplan.ServeEntry && e.Protocol == "UDP" {
				stale[e.At] = true
			}
		}
	}
	if len(stale) == 0 {
		return nil
	}
	var errs []error
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, stale); err != nil {
			errs = append(errs, fmt.Errorf("forgetting UDP flows to services that have changed: %w", err))
		}
	}
	return errors.Join(errs...)
}
