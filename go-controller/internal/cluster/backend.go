package cluster

import (
	"net/netip"
	"slices"
)

// Choice is which endpoints of a service port and address family serve.
type Choice struct {
	// Conditions are those that an endpoint must have to serve.
	Conditions Conditions
	// Backends are the endpoints that serve, sorted; with none, a connection is
	// rejected.
	Backends []netip.AddrPort
}

// The two sorts of endpoints that may serve.
const (
	whenReady  = Ready
	lastResort = Serving | Terminating
)

// Choose picks the endpoints of a service port in one family: those that are
// ready; when there are none, those that still serve while they terminate
// (Kubernetes, "Pod Lifecycle: terminating endpoints"). Slices name the port as
// the service does, and each says which number that is. An endpoint that is in
// several slices serves if one of them has it serve.
func Choose(port ServicePort, is4 bool, slices []*EndpointSlice) Choice {
	return choose(port, is4, slices, func(*Endpoint) bool { return true })
}

// ChooseOn is Choose among the endpoints that are on a node: one that is ready
// elsewhere does not keep those that terminate here from serving (Kubernetes,
// "Virtual IPs and Service Proxies: traffic to terminating endpoints").
func ChooseOn(node string, port ServicePort, is4 bool, slices []*EndpointSlice) Choice {
	return choose(port, is4, slices, func(e *Endpoint) bool { return e.Node == node })
}

func choose(port ServicePort, is4 bool, slices []*EndpointSlice, eligible func(*Endpoint) bool) Choice {
	for _, c := range []Conditions{whenReady, lastResort} {
		if b := having(c, port, is4, slices, eligible); len(b) > 0 {
			return Choice{c, b}
		}
	}
	return Choice{Conditions: whenReady}
}

// having is the eligible endpoints that have all of the conditions.
func having(c Conditions, port ServicePort, is4 bool, eps []*EndpointSlice, eligible func(*Endpoint) bool) []netip.AddrPort {
	var out []netip.AddrPort
	for _, e := range eps {
		for _, number := range Numbers(port, e) {
			for i := range e.Endpoints {
				if ep := &e.Endpoints[i]; ep.Addr.Is4() == is4 && ep.Conditions.Has(c) && eligible(ep) {
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
func Numbers(port ServicePort, e *EndpointSlice) []uint16 {
	var out []uint16
	for _, p := range e.Ports {
		if p.Name == port.Name && p.Protocol == port.Protocol {
			out = append(out, p.Port)
		}
	}
	return out
}
