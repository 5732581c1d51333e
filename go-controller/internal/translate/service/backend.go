package service

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Choice is which endpoints of a service port and address family serve.
type Choice struct {
	// Conditions are those that an endpoint must have to serve.
	Conditions cluster.Conditions
	// Backends are the endpoints that serve, sorted; with none, a connection is
	// rejected.
	Backends []netip.AddrPort
}

// The two sorts of endpoints that may serve.
const (
	whenReady  = cluster.Ready
	lastResort = cluster.Serving | cluster.Terminating
)

// Choose picks the endpoints of a service port in one family: those that are
// ready; when there are none, those that still serve while they terminate
// (Kubernetes, "Pod Lifecycle: terminating endpoints"). Slices name the port as
// the service does, and each says which number that is. An endpoint that is in
// several slices serves if one of them has it serve.
func Choose(port cluster.ServicePort, is4 bool, slices []*cluster.EndpointSlice) Choice {
	if b := having(whenReady, port, is4, slices); len(b) > 0 {
		return Choice{whenReady, b}
	}
	if b := having(lastResort, port, is4, slices); len(b) > 0 {
		return Choice{lastResort, b}
	}
	return Choice{Conditions: whenReady}
}

// having is the endpoints that have all of the conditions.
func having(c cluster.Conditions, port cluster.ServicePort, is4 bool, eps []*cluster.EndpointSlice) []netip.AddrPort {
	var out []netip.AddrPort
	for _, e := range eps {
		for _, number := range Numbers(port, e) {
			for i := range e.Endpoints {
				if ep := &e.Endpoints[i]; ep.Addr.Is4() == is4 && ep.Conditions.Has(c) {
					out = append(out, netip.AddrPortFrom(ep.Addr, number))
				}
			}
		}
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
}

// Numbers lists the numbers that a slice gives to a service port: one, or none
// when its endpoints don't have the port.
func Numbers(port cluster.ServicePort, e *cluster.EndpointSlice) []uint16 {
	var out []uint16
	for _, p := range e.Ports {
		if p.Name == port.Name && p.Protocol == port.Protocol {
			out = append(out, p.Port)
		}
	}
	return out
}

// text is backends in the form of ovn-nb(5) Load_Balancer vips,
// "address:port,...".
func text(backends []netip.AddrPort) string {
	var b strings.Builder
	for i, a := range backends {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(a.String())
	}
	return b.String()
}
