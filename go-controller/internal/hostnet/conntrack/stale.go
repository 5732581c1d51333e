package conntrack

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Stale matches UDP flows that the present rules would send elsewhere. It implements
// netlink.CustomConntrackFilter.
type Stale struct {
	places map[netip.AddrPort]bool // all flows to them
	ends   map[flowEnds]bool       // those that were led there
	delete func(netlink.InetFamily, *Stale) error
}

// flowEnds is the address that a client sends to, and the address to which that was
// translated.
type flowEnds struct{ at, to netip.AddrPort }

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (s *Stale) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if flow.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	at := netip.AddrPortFrom(ipnet.OfIP(flow.Forward.DstIP), flow.Forward.DstPort)
	to := netip.AddrPortFrom(ipnet.OfIP(flow.Reverse.SrcIP), flow.Reverse.SrcPort)
	all := netip.IPv6Unspecified()
	if at.Addr().Is4() {
		all = netip.IPv4Unspecified()
	}
	for _, at := range []netip.AddrPort{at, netip.AddrPortFrom(all, at.Port())} {
		if s.places[at] || s.ends[flowEnds{at, to}] {
			return true
		}
	}
	return false
}

// NewStale has none yet.
func NewStale() *Stale {
	return &Stale{map[netip.AddrPort]bool{}, map[flowEnds]bool{}, deleteFlows}
}

// ForgetAfter has the kernel forget flows that changes towards want have made stale,
// and those of which that failed earlier.
func (s *Stale) ForgetAfter(changes []hostplan.ServiceChange, want hostplan.ServicePorts) error {
	s.note(changes)
	if err := s.spare(want); err != nil {
		return err
	}
	return s.Forget()
}

// note adds flows to places that are served in another way than before, and flows to
// endpoints that are not used any more.
func (s *Stale) note(changes []hostplan.ServiceChange) {
	for _, c := range changes {
		for _, e := range []hostplan.ServiceEntry{c.Drop, c.Add} {
			if e.Protocol == "UDP" && (e.Kind == hostplan.ServeEntry || e.Kind == hostplan.InsideEntry) {
				s.places[e.At] = true
			}
		}
		if c.Drop.Protocol == "UDP" && c.Drop.Kind.HasTo() {
			s.ends[flowEnds{c.Drop.At, c.Drop.To}] = true
		}
	}
}

// spare takes out endpoints that are still used: an endpoint that gained or lost
// buckets keeps its flows.
func (s *Stale) spare(want hostplan.ServicePorts) error {
	if len(s.ends) == 0 {
		return nil
	}
	for line := range strings.Lines(want.Entries) {
		if kind, rest, _ := strings.Cut(line, " "); !strings.HasPrefix(rest, "UDP ") ||
			!hostplan.ServiceEntryKind(kind).HasTo() {
			continue
		}
		e, err := hostplan.ParseServiceEntry(line)
		if err != nil {
			return err
		}
		delete(s.ends, flowEnds{e.At, e.To})
	}
	return nil
}

// Forget has the kernel forget the stale flows. Flows of which that fails stay stale.
func (s *Stale) Forget() error {
	if len(s.places)+len(s.ends) == 0 {
		return nil
	}
	var errs []error
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		if err := s.delete(family, s); err != nil {
			errs = append(errs, fmt.Errorf("forgetting UDP flows to services that have changed: %w", err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	clear(s.places)
	clear(s.ends)
	return nil
}

// deleteFlows has the kernel forget a family's.
func deleteFlows(family netlink.InetFamily, s *Stale) error {
	_, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, s)
	return err
}
