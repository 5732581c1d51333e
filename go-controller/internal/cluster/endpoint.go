package cluster

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// EndpointPort is one port of the endpoints in a slice; Name matches the service port's.
type EndpointPort struct {
	Name     string
	Protocol Protocol
	Port     uint16
}

// Conditions is the state of an endpoint: a set of the constants below. Missing conditions take the API's defaults
// (Kubernetes API, EndpointConditions).
type Conditions uint8

// The conditions.
const (
	Ready       Conditions = 1 << iota // should get traffic
	Serving                            // can answer, whether or not it is terminating
	Terminating                        // is shutting down
)

// Has is true when all of d hold.
func (c Conditions) Has(d Conditions) bool { return c&d == d }

// Endpoint is one backend of a service. A cluster has very many, so that it is plain comparable data, and texts that
// repeat (nodes, zones, hints) are held once.
type Endpoint struct {
	Addr       netip.Addr
	Conditions Conditions
	Node, Zone string // where it is; "" when unknown
	Pod        string // its Pod in the slice's namespace; "" when it is no Pod
	// The zones and nodes that it is hinted for: names, sorted, with commas between them; "" for all.
	ForZones, ForNodes string
}

// CompareEndpoints orders endpoints by address, then by everything else.
func CompareEndpoints(a, b Endpoint) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Conditions, b.Conditions), cmp.Compare(a.Node, b.Node),
		cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Pod, b.Pod),
		cmp.Compare(a.ForZones, b.ForZones), cmp.Compare(a.ForNodes, b.ForNodes))
}

// EndpointSlice is a set of backends of one address family that share ports.
type EndpointSlice struct {
	Name      Name
	Service   string         // name of the service in the same namespace
	Ports     []EndpointPort // in the order of CompareEndpointPorts
	Endpoints []Endpoint     // in the order of CompareEndpoints, without duplicates
}

// Ref implements Object.
func (e *EndpointSlice) Ref() Ref { return Ref{KindEndpointSlice, e.Name} }

func (e *EndpointSlice) place(s *State, in bool) {
	if e.Service != "" {
		s.slicesByService.Put(Name{e.Name.Namespace, e.Service}, e.Name, in)
		s.slicesByNamespace.Put(e.Name.Namespace, e.Name, in)
	}
}

// Equal implements Object.
func (e *EndpointSlice) Equal(o Object) bool {
	f, ok := o.(*EndpointSlice)
	return ok && e.Name == f.Name && e.Service == f.Service && slices.Equal(e.Ports, f.Ports) &&
		slices.Equal(e.Endpoints, f.Endpoints)
}

// Hints are the names in Endpoint.ForZones or ForNodes.
func Hints(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, ",")
}
