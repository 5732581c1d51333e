package cluster

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// EndpointPort is one port of the endpoints in a slice; Name matches the
// service port's.
type EndpointPort struct {
	Name     string
	Protocol Protocol
	Port     uint16
}

// Conditions is what is known of an endpoint's state: a set of the constants
// below (Kubernetes API, EndpointConditions; what is not said there counts as
// that document says).
type Conditions uint8

// The conditions.
const (
	Ready       Conditions = 1 << iota // is to get traffic
	Serving                            // could answer, whether or not it is going away
	Terminating                        // is going away
)

// Has tells whether all of d hold.
func (c Conditions) Has(d Conditions) bool { return c&d == d }

// Endpoint is one backend of a service. There are very many: it is plain
// comparable data, and texts that repeat (nodes, zones, hints) are held once.
type Endpoint struct {
	Addr       netip.Addr
	Conditions Conditions
	Node, Zone string // where it is; "" when that is not said
	Pod        string // the Pod, of the slice's namespace, that it stands for; "" when it does not stand for one
	// Whom it is meant for when hints are followed: names, sorted, with commas
	// between them; "" for everybody.
	ForZones, ForNodes string
}

// CompareEndpoints orders endpoints by address, then by everything else.
func CompareEndpoints(a, b Endpoint) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Conditions, b.Conditions), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Zone, b.Zone),
		cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.ForZones, b.ForZones), cmp.Compare(a.ForNodes, b.ForNodes))
}

// EndpointSlice is a set of backends of one address family that share ports.
type EndpointSlice struct {
	Name      Name
	Service   string // name of the service in the same namespace
	Ports     []EndpointPort
	Endpoints []Endpoint // in the order of CompareEndpoints, without duplicates
}

// Ref implements Object.
func (e *EndpointSlice) Ref() Ref { return Ref{KindEndpointSlice, e.Name} }

// Equal implements Object.
func (e *EndpointSlice) Equal(o Object) bool {
	f, ok := o.(*EndpointSlice)
	return ok && e.Name == f.Name && e.Service == f.Service && slices.Equal(e.Ports, f.Ports) && slices.Equal(e.Endpoints, f.Endpoints)
}

// Hints are the names in Endpoint.ForZones or ForNodes.
func Hints(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, ",")
}
