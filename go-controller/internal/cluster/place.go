package cluster

import (
	"maps"
	"slices"
	"strings"
)

// Zones lists the zones that nodes are in, sorted, "" among them if there are
// also nodes that are in none. It is empty when no node is in any: then zones
// tell nobody apart.
func (s *State) Zones() []string {
	if !s.zoned() {
		return nil
	}
	return slices.Sorted(maps.Keys(s.zones))
}

// HasZone tells whether Zones has the zone.
func (s *State) HasZone(zone string) bool { return s.zoned() && len(s.zones[zone]) > 0 }

// zoned tells whether any node is in a zone.
func (s *State) zoned() bool { return len(s.zones) > 1 || len(s.zones) == 1 && len(s.zones[""]) == 0 }

// NodesOf lists the nodes of a zone, sorted; zone is "" for those in none.
func (s *State) NodesOf(zone string) []Name { return sorted(s.zones[zone]) }

// rezone brings the index of zones up to date with a node, either version of
// which may be nil, and lists what came to Zones or left it.
func (s *State) rezone(name Name, old, now *Node) []string {
	if old != nil && now != nil && old.Zone == now.Zone {
		return nil
	}
	before := s.Zones()
	if old != nil {
		mark(s.zones, old.Zone, name, false)
	}
	if now != nil {
		mark(s.zones, now.Zone, name, true)
	}
	after := s.Zones()
	differ := func(in, other []string) []string {
		return slices.DeleteFunc(slices.Clone(in), func(z string) bool { return slices.Contains(other, z) })
	}
	return append(differ(before, after), differ(after, before)...)
}

// HasSwitch tells whether a node has a logical switch: it is there, and has
// subnets.
func (s *State) HasSwitch(node string) bool {
	return s.Nodes[node] != nil && len(s.NodeSubnets[node]) > 0
}

// seat is a node's logical switch, which has the UID of its Node in its own
// UUID, and its zone; it is zero while there is none.
type seat struct {
	there     bool
	uid, zone string
}

func (s *State) seat(node string) seat {
	if !s.HasSwitch(node) {
		return seat{}
	}
	return seat{true, s.Nodes[node].UID, s.Nodes[node].Zone}
}

// ZoneHinted lists the services that have endpoints with hints for zones, in no
// order.
func (s *State) ZoneHinted() []Name { return slices.Collect(maps.Keys(s.zoneHinted)) }

// NodeHinted lists the services that have endpoints with hints for nodes, in no
// order.
func (s *State) NodeHinted() []Name { return slices.Collect(maps.Keys(s.nodeHinted)) }

// LocalOn lists the services of internalTrafficPolicy Local that have endpoints
// on a node, in no order.
func (s *State) LocalOn(node string) []Name {
	return s.withEndpointsOn(node, s.localServices)
}

// ReachedLocally lists the services of which that is true, in no order.
func (s *State) ReachedLocally() []Name { return slices.Collect(maps.Keys(s.reachedLocally)) }

// ReachedLocallyOn lists those of ReachedLocally that have endpoints on a node,
// in no order.
func (s *State) ReachedLocallyOn(node string) []Name {
	return s.withEndpointsOn(node, s.reachedLocally)
}

// indexHints keeps ZoneHinted and NodeHinted.
func (s *State) indexHints(e *EndpointSlice, add bool) {
	svc := Name{e.Name.Namespace, e.Service}
	if slices.ContainsFunc(e.Endpoints, func(e Endpoint) bool { return e.ForZones != "" }) {
		mark(s.zoneHinted, svc, e.Name, add)
	}
	if slices.ContainsFunc(e.Endpoints, func(e Endpoint) bool { return e.ForNodes != "" }) {
		mark(s.nodeHinted, svc, e.Name, add)
	}
}

// Hints are the names in Endpoint.ForZones or ForNodes.
func Hints(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, ",")
}
