package serviceport

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Note tells what a service asks for and this node does not do.
type Note struct {
	Service cluster.Name
	Message string
}

// planner gathers entries.
type planner struct {
	ranges  []netip.Prefix
	cluster map[netip.Addr]bool // every ClusterIP
	taken   map[hostplan.ServiceEntry]bool
	entries []hostplan.ServiceEntry
	notes   []Note
}

// Plan is the way in to these services, in any order. Of several that name one
// address and port the oldest has it, then the first by name, as in the load
// balancers; an address that is some service's ClusterIP is that service's, and
// needs nothing here.
func Plan(services []*cluster.Service, c config.Node) (hostplan.Plan, []Note) {
	p := planner{ranges: c.ServiceCIDRs, cluster: map[netip.Addr]bool{}, taken: map[hostplan.ServiceEntry]bool{}}
	for _, s := range services {
		for _, a := range s.ClusterIPs {
			p.cluster[a] = true
		}
	}
	sorted := slices.SortedFunc(slices.Values(services), func(a, b *cluster.Service) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cluster.CompareNames(a.Name, b.Name))
	})
	for _, s := range sorted {
		p.service(s)
	}
	item := hostplan.NewServicePorts(names.ManagementInterface(c.Name), c.ServiceCIDRs, p.entries)
	return hostplan.Plan{Host: []hostplan.Item{item}}, p.notes
}

func (p *planner) service(s *cluster.Service) {
	before := len(p.entries)
	for _, to := range s.ClusterIPs {
		if !slices.ContainsFunc(p.ranges, func(r netip.Prefix) bool { return r.Contains(to) }) {
			p.note(s, "ClusterIP %s is in none of --k8s-service-cidrs %v: from outside the service is not served", to, p.ranges)
			continue
		}
		for _, port := range s.Ports {
			p.port(s, port, to)
		}
	}
	if s.ExternalLocal && len(p.entries) > before {
		p.note(s, "externalTrafficPolicy Local: connections from outside of the cluster are dropped, as they are not served yet with the client's address")
	}
}

func (p *planner) note(s *cluster.Service, format string, args ...any) {
	p.notes = append(p.notes, Note{s.Name, fmt.Sprintf(format, args...)})
}

// port has a port of a service answer everywhere in one address family.
func (p *planner) port(s *cluster.Service, port cluster.ServicePort, clusterIP netip.Addr) {
	e := hostplan.ServiceEntry{Kind: hostplan.ServeEntry, Protocol: string(port.Protocol), To: netip.AddrPortFrom(clusterIP, s.OutsidePort(port))}
	if port.NodePort != 0 {
		all := netip.IPv4Unspecified()
		if clusterIP.Is6() {
			all = netip.IPv6Unspecified()
		}
		e.At = netip.AddrPortFrom(all, port.NodePort)
		p.serve(e, s.ExternalLocal)
	}
	for _, a := range s.ExternalIPs {
		if a.Is4() == clusterIP.Is4() && !p.cluster[a] {
			e.At = netip.AddrPortFrom(a, port.Port)
			p.serve(e, s.ExternalLocal)
		}
	}
	for _, i := range s.Ingress {
		if i.Proxied || i.Addr.Is4() != clusterIP.Is4() || p.cluster[i.Addr] {
			continue
		}
		e.At = netip.AddrPortFrom(i.Addr, port.Port)
		if p.serve(e, s.ExternalLocal) && len(s.SourceRanges) > 0 {
			p.limit(e, s.SourceRanges)
		}
	}
}

// serve adds the entry, if no other service has that place.
func (p *planner) serve(e hostplan.ServiceEntry, inside bool) bool {
	if p.taken[e.Place()] {
		return false
	}
	p.taken[e.Place()] = true
	p.entries = append(p.entries, e)
	if inside {
		p.entries = append(p.entries, hostplan.ServiceEntry{Kind: hostplan.InsideEntry, Protocol: e.Protocol, At: e.At})
	}
	return true
}

// limit lets only these sources in. A range within another is left out: the
// kernel's sets take no ranges that overlap. The zero Prefix is nobody.
func (p *planner) limit(e hostplan.ServiceEntry, ranges []netip.Prefix) {
	p.entries = append(p.entries, hostplan.ServiceEntry{Kind: hostplan.LimitEntry, Protocol: e.Protocol, At: e.At})
	within := func(r netip.Prefix) bool {
		return slices.ContainsFunc(ranges, func(o netip.Prefix) bool { return o.IsValid() && o.Bits() < r.Bits() && o.Overlaps(r) })
	}
	for _, r := range ranges {
		if r.IsValid() && r.Addr().Is4() == e.At.Addr().Is4() && !within(r) {
			p.entries = append(p.entries, hostplan.ServiceEntry{Kind: hostplan.AllowEntry, Protocol: e.Protocol, At: e.At, From: r})
		}
	}
}
