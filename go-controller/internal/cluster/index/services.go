package index

import (
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Services answers which Services have rows that depend on nodes.
type Services struct {
	zoneHinted, nodeHinted          cluster.NameSets[cluster.Name] // by Service, its slices that have such hints
	internalLocal, localFromOutside cluster.NameSet
}

func newServices() *Services {
	return &Services{
		zoneHinted: cluster.NameSets[cluster.Name]{}, nodeHinted: cluster.NameSets[cluster.Name]{},
		internalLocal: cluster.NameSet{}, localFromOutside: cluster.NameSet{},
	}
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
		v.internalLocal.Put(o.Name, in && o.InternalLocal)
		v.localFromOutside.Put(o.Name, in && o.LocalFromOutside())
	case *cluster.EndpointSlice:
		if o.Service == "" {
			return
		}
		svc := cluster.Name{Namespace: o.Name.Namespace, Name: o.Service}
		zones := slices.ContainsFunc(o.Endpoints, func(e cluster.Endpoint) bool { return e.ForZones != "" })
		nodes := slices.ContainsFunc(o.Endpoints, func(e cluster.Endpoint) bool { return e.ForNodes != "" })
		v.zoneHinted.Put(svc, o.Name, in && zones)
		v.nodeHinted.Put(svc, o.Name, in && nodes)
	}
}

// ZoneHinted lists the Services that have endpoints with hints for zones, in no order.
func (v *Services) ZoneHinted() []cluster.Name { return slices.Collect(maps.Keys(v.zoneHinted)) }

// NodeHinted lists the Services that have endpoints with hints for nodes, in no order.
func (v *Services) NodeHinted() []cluster.Name { return slices.Collect(maps.Keys(v.nodeHinted)) }

// InternalLocalOn lists the Services with internalTrafficPolicy Local that have endpoints on a node, in no order.
func (v *Services) InternalLocalOn(s *cluster.State, node string) []cluster.Name {
	return withEndpointsOn(s, node, v.internalLocal)
}

// LocalFromOutside lists the Services for which Service.LocalFromOutside is true, in no order.
func (v *Services) LocalFromOutside() []cluster.Name { return v.localFromOutside.List() }

// LocalFromOutsideOn lists those of LocalFromOutside that have endpoints on a node, in no order.
func (v *Services) LocalFromOutsideOn(s *cluster.State, node string) []cluster.Name {
	return withEndpointsOn(s, node, v.localFromOutside)
}

// withEndpointsOn lists those of the Services that have endpoints on a node.
func withEndpointsOn(s *cluster.State, node string, services cluster.NameSet) []cluster.Name {
	var out []cluster.Name
	for svc := range services {
		if s.HasEndpointsOn(svc, node) {
			out = append(out, svc)
		}
	}
	return out
}
