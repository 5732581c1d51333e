package serviceport

import (
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// served is the slices of a service, with the endpoints that the limits let serve, and that are reached.
func (f Facts) served(s *cluster.Service, c config.Services) []*cluster.EndpointSlice {
	return f.reached(s, c, f.Endpoints.of(s, c))
}

// reached is slices of a service without pods of primary networks, if these are not reached: that takes exits, which
// lead to services with node ports alone.
func (f Facts) reached(s *cluster.Service, c config.Services, all []*cluster.EndpointSlice) []*cluster.EndpointSlice {
	if len(f.Exits) == 0 || s.ByExits(c) {
		return all
	}
	out := make([]*cluster.EndpointSlice, 0, len(all))
	for _, e := range all {
		of := *e
		of.Endpoints = slices.DeleteFunc(slices.Clone(e.Endpoints), func(ep cluster.Endpoint) bool {
			_, inPrimary := f.Exits[ep.Addr]
			return inPrimary
		})
		out = append(out, &of)
	}
	return out
}

// byExits is where backends of a port on this node are reached, sorted: those in primary networks at the node port of
// their network's exit, which shares connections out among them.
func (f Facts) byExits(backends []netip.AddrPort, port cluster.ServicePort) []netip.AddrPort {
	if len(f.Exits) == 0 {
		return backends
	}
	var out []netip.AddrPort
	for _, b := range backends {
		if exit, inPrimary := f.Exits[b.Addr()]; inPrimary {
			b = netip.AddrPortFrom(exit, port.NodePort)
		}
		out = append(out, b)
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
}
