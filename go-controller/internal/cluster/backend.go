package cluster

import (
	"cmp"
	"net/netip"
	"slices"
)

// Choice is which endpoints of a service port and address family serve which clients. The node of a client decides: its
// entry in Nodes comes first, then that of its zone in Zones, then Backends.
type Choice struct {
	// Local is true when clients get only the endpoints of their own node.
	Local bool
	// Conditions are those that an endpoint must have to serve. With Local, each node uses the first of Stages of which it
	// has an endpoint.
	Conditions Conditions
	// Backends are the endpoints, sorted, for clients that have no entry in Nodes and Zones. Without any, a connection is
	// rejected, or dropped if Dropped.
	Backends []netip.AddrPort
	Dropped  bool
	// Nodes and Zones are the endpoints, sorted, for clients on a node, or on any node of a zone. They may name nodes and
	// zones that do not exist.
	Nodes, Zones map[string][]netip.AddrPort
}

// Stages are the conditions of endpoints that serve. A later stage counts only while no endpoint is in an earlier one
// (Kubernetes, "Pod Lifecycle: terminating endpoints").
func Stages() []Conditions {
	return []Conditions{Ready, Serving | Terminating}
}

// For is the backends of a client on a node of a zone. served is false when its packets are dropped.
func (c Choice) For(node, zone string) (backends []netip.AddrPort, served bool) {
	if b, ok := c.Nodes[node]; ok {
		return b, true
	}
	if b, ok := c.Zones[zone]; ok {
		return b, true
	}
	return c.Backends, !c.Dropped
}

// Choose picks the endpoints of a service port in one family under policy Cluster: the ready ones, or when none is
// ready, those that still serve while they terminate. Slices name the port as the service does, and each has a number
// for it. An endpoint in several slices serves if one of them says so.
//
// Hints are followed as kube-proxy does it (Kubernetes API, EndpointHints). Hints for nodes, or else for zones, count
// if every ready endpoint has them. A client follows them if an endpoint is hinted for its node or zone.
func Choose(port ServicePort, is4 bool, eps []*EndpointSlice) Choice {
	serving, stage := candidates(port, is4, eps, anywhere).serving()
	out := Choice{Conditions: stage, Backends: serving.addrs()}
	if stage == Stages()[0] && len(serving) > 0 {
		out.Nodes = serving.hinted(func(e *Endpoint) string { return e.ForNodes })
		out.Zones = serving.hinted(func(e *Endpoint) string { return e.ForZones })
	}
	return out
}

// ChooseLocal is Choose under policy Local: clients get the endpoints of their own node, ready ones if it has any. On a
// node without endpoints, connections are dropped while other nodes have endpoints (Kubernetes API,
// ServiceSpec.internalTrafficPolicy).
func ChooseLocal(port ServicePort, is4 bool, eps []*EndpointSlice) Choice {
	out := Choice{Local: true, Nodes: map[string][]netip.AddrPort{}}
	all := candidates(port, is4, eps, anywhere)
	for _, stage := range Stages() {
		at := all.having(stage)
		out.Dropped = out.Dropped || len(at) > 0
		for node, g := range at.byNode() {
			if out.Nodes[node] == nil {
				out.Nodes[node] = g.addrs()
			}
		}
	}
	return out
}

// OnNode is what ChooseLocal picks for clients on one node, sorted. The node's agent asks for it often, so that it
// looks at nothing else.
func OnNode(node string, port ServicePort, is4 bool, eps []*EndpointSlice) []netip.AddrPort {
	here, _ := candidates(port, is4, eps, func(e *Endpoint) bool { return e.Node == node }).serving()
	return here.addrs()
}

// ServingNodes is how many endpoints of a service port in one family serve on each node: of those that Choose picks
// without hints.
func ServingNodes(port ServicePort, is4 bool, eps []*EndpointSlice) map[string]int {
	serving, _ := candidates(port, is4, eps, func(e *Endpoint) bool { return e.Node != "" }).serving()
	out := map[string]int{}
	for node, g := range serving.byNode() {
		out[node] = len(g.addrs())
	}
	return out
}

// StagesOfNodes is the stage of the endpoints that ChooseLocal picks on each node, for nodes that have any endpoint. It
// is no condition at all where no endpoint serves.
func StagesOfNodes(port ServicePort, is4 bool, eps []*EndpointSlice) map[string]Conditions {
	all := candidates(port, is4, eps, anywhere)
	out := map[string]Conditions{}
	for node := range all.byNode() {
		out[node] = 0
	}
	for _, stage := range slices.Backward(Stages()) {
		for node := range all.having(stage).byNode() {
			out[node] = stage
		}
	}
	return out
}

// ChooseFor is ChooseLocal if local, else Choose.
func ChooseFor(local bool, port ServicePort, is4 bool, eps []*EndpointSlice) Choice {
	if local {
		return ChooseLocal(port, is4, eps)
	}
	return Choose(port, is4, eps)
}

// candidate is an endpoint with the number of its port.
type candidate struct {
	*Endpoint
	number uint16
}

type group []candidate

// candidates lists the endpoints of a family that have the port and satisfy in.
func candidates(port ServicePort, is4 bool, eps []*EndpointSlice, in func(*Endpoint) bool) group {
	var out group
	for _, e := range eps {
		if len(e.Endpoints) == 0 {
			continue
		}
		for _, number := range Numbers(port, e) {
			for i := range e.Endpoints {
				if ep := &e.Endpoints[i]; ep.Addr.Is4() == is4 && in(ep) {
					out = append(out, candidate{ep, number})
				}
			}
		}
	}
	return out
}

func anywhere(*Endpoint) bool { return true }

// having lists the endpoints that have all of the conditions.
func (g group) having(c Conditions) group {
	var out group
	for _, x := range g {
		if x.Conditions.Has(c) {
			out = append(out, x)
		}
	}
	return out
}

// serving lists the endpoints of the first of Stages that has any, and returns that stage.
func (g group) serving() (group, Conditions) {
	for _, stage := range Stages() {
		if at := g.having(stage); len(at) > 0 {
			return at, stage
		}
	}
	return nil, Stages()[0]
}

// byNode groups the endpoints by node.
func (g group) byNode() map[string]group {
	of := map[string]group{}
	for _, c := range g {
		if c.Node != "" {
			of[c.Node] = append(of[c.Node], c)
		}
	}
	return of
}

// addrs lists the endpoints' addresses and ports, sorted, each once.
func (g group) addrs() []netip.AddrPort {
	if len(g) == 0 {
		return nil
	}
	out := make([]netip.AddrPort, len(g))
	for i, x := range g {
		out[i] = netip.AddrPortFrom(x.Addr, x.number)
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
}

// hinted groups the endpoints by the names that they are hinted for. It is nil if one of them has no such hint.
func (g group) hinted(hints func(*Endpoint) string) map[string][]netip.AddrPort {
	if slices.ContainsFunc(g, func(x candidate) bool { return hints(x.Endpoint) == "" }) {
		return nil
	}
	of := map[string]group{}
	for _, x := range g {
		for _, name := range Hints(hints(x.Endpoint)) {
			of[name] = append(of[name], x)
		}
	}
	out := make(map[string][]netip.AddrPort, len(of))
	for name, g := range of {
		out[name] = g.addrs()
	}
	return out
}

// Numbers lists the numbers that a slice has for a service port: one, or none when its endpoints lack the port.
func Numbers(port ServicePort, e *EndpointSlice) []uint16 {
	var out []uint16
	i, _ := slices.BinarySearchFunc(e.Ports, EndpointPort{Name: port.Name, Protocol: port.Protocol}, CompareEndpointPorts)
	for ; i < len(e.Ports) && e.Ports[i].Name == port.Name && e.Ports[i].Protocol == port.Protocol; i++ {
		out = append(out, e.Ports[i].Port)
	}
	return out
}

// CompareEndpointPorts orders the ports of a slice by name and protocol: a slice may have thousands, and each port of
// its Service is looked for.
func CompareEndpointPorts(a, b EndpointPort) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
}
