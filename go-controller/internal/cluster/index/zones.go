package index

import (
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// ZoneInUse is the subject of topics about a zone that joined or left Zones.List; the key's name is the zone.
const ZoneInUse cluster.Subject = "zone in use"

// Zones answers which topology zones have nodes.
type Zones struct {
	nodes  cluster.NameSets[string] // the nodes of each zone; the key "" has those in no zone
	before []string                 // List, as it was before the node changed
}

func newZones() *Zones { return &Zones{nodes: cluster.NameSets[string]{}} }

// ZonesOf is the index of a State.
func ZonesOf(s *cluster.State) *Zones { return of(s, newZones) }

// Kinds implements cluster.Index.
func (*Zones) Kinds() []cluster.Kind { return []cluster.Kind{cluster.KindNode} }

// Before implements cluster.Index.
func (z *Zones) Before(s *cluster.State, r cluster.Ref) {
	z.before = z.List()
	if n := s.Nodes[r.Name.Name]; n != nil {
		z.nodes.Put(n.Zone, r.Name, false)
	}
}

// After implements cluster.Index.
func (z *Zones) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	if n := s.Nodes[r.Name.Name]; n != nil {
		z.nodes.Put(n.Zone, r.Name, true)
	}
	before, after := z.before, z.List()
	var out []cluster.Topic
	add := func(these, others []string) {
		for _, zone := range these {
			if !slices.Contains(others, zone) {
				out = append(out, cluster.Topic{Subject: ZoneInUse, Key: cluster.Name{Name: zone}})
			}
		}
	}
	add(before, after)
	add(after, before)
	return out
}

// List lists the zones that have nodes, sorted. It has "" when some nodes are in no zone. It is empty while no node is
// in a zone.
func (z *Zones) List() []string {
	if !z.used() {
		return nil
	}
	return slices.Sorted(maps.Keys(z.nodes))
}

// Has is true when List has the zone.
func (z *Zones) Has(zone string) bool { return z.used() && len(z.nodes[zone]) > 0 }

// used is true when any node is in a zone.
func (z *Zones) used() bool { return len(z.nodes) > 1 || len(z.nodes) == 1 && len(z.nodes[""]) == 0 }

// Nodes lists the nodes of a zone, sorted. The zone "" has the nodes in no zone.
func (z *Zones) Nodes(zone string) []cluster.Name { return z.nodes[zone].Sorted() }
