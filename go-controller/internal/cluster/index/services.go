package index

import (
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Services finds the Services whose rows depend on more than themselves.
type Services struct {
	zoneHinted, nodeHinted      sets[cluster.Name] // by Service, its slices that have such hints
	internalLocal, reachedLocal set
}

func newServices() *Services {
	return &Services{zoneHinted: sets[cluster.Name]{}, nodeHinted: sets[cluster.Name]{}, internalLocal: set{}, reachedLocal: set{}}
}

// ServicesOf is the index of a State.
func ServicesOf(s *cluster.State) *Services { return of(s, newServices) }

// Kinds implements cluster.Index.
func (*Services) Kinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindService, cluster.KindEndpointSlice}
}

// Before implements cluster.Index.
func (v *Services) Before(s *cluster.State, r cluster.Ref) { v.put(s.Object(r), false) }

// After implements cluster.Index.
func (v *Services) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	v.put(s.Object(r), true)
	return nil
}

func (v *Services) put(o cluster.Object, in bool) {
	switch o := o.(type) {
	case *cluster.Service:
		v.internalLocal.put(o.Name, in && o.InternalLocal)
		v.reachedLocal.put(o.Name, in && o.ReachedLocally())
	case *cluster.EndpointSlice:
		if o.Service == "" {
			return
		}
		svc := cluster.Name{Namespace: o.Name.Namespace, Name: o.Service}
		if slices.ContainsFunc(o.Endpoints, func(e cluster.Endpoint) bool { return e.ForZones != "" }) {
			v.zoneHinted.put(svc, o.Name, in)
		}
		if slices.ContainsFunc(o.Endpoints, func(e cluster.Endpoint) bool { return e.ForNodes != "" }) {
			v.nodeHinted.put(svc, o.Name, in)
		}
	}
}

// ZoneHinted lists the Services that have endpoints with hints for zones, in no
// order.
func (v *Services) ZoneHinted() []cluster.Name { return keys(v.zoneHinted) }

// NodeHinted lists the Services that have endpoints with hints for nodes, in no
// order.
func (v *Services) NodeHinted() []cluster.Name { return keys(v.nodeHinted) }

// InternalLocalOn lists the Services of internalTrafficPolicy Local that have
// endpoints on a node, in no order.
func (v *Services) InternalLocalOn(s *cluster.State, node string) []cluster.Name {
	return withEndpointsOn(s, node, v.internalLocal)
}

// ReachedLocally lists the Services of which Service.ReachedLocally is true, in
// no order.
func (v *Services) ReachedLocally() []cluster.Name { return v.reachedLocal.list() }

// ReachedLocallyOn lists those of ReachedLocally that have endpoints on a node,
// in no order.
func (v *Services) ReachedLocallyOn(s *cluster.State, node string) []cluster.Name {
	return withEndpointsOn(s, node, v.reachedLocal)
}

// withEndpointsOn lists those of the Services that have endpoints on a node.
func withEndpointsOn(s *cluster.State, node string, services set) []cluster.Name {
	var out []cluster.Name
	for svc := range services {
		if s.HasEndpointsOn(svc, node) {
			out = append(out, svc)
		}
	}
	return out
}

func keys(m sets[cluster.Name]) []cluster.Name {
	out := make([]cluster.Name, 0, len(m))
	for n := range m {
		out = append(out, n)
	}
	return out
}
