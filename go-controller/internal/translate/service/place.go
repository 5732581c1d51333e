package service

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// answer is a VIP and who answers there.
type answer struct {
	vip netip.AddrPort
	cluster.Choice
}

// placed is a load balancer of a service: its VIPs with their backends, and
// what lists it. Place tells it from the service's others, and is part of the
// row's identity.
type placed struct {
	place string
	vips  map[string]string
	slots []nb.Slot
}

// The places.
const (
	everywhere = ""            // all nodes
	inZone     = "zone-"       // with the zone: its nodes
	otherZones = "other-zones" // nodes of which no zone has its own
	onNode     = "node-"       // with the node
	nodesOf    = "nodes-of-"   // with the zone: its nodes, but for those that have their own
	otherNodes = "other-nodes" // nodes that have neither their own nor their zone's
)

// places is the load balancers that VIPs of one protocol come to. No node has a
// VIP in two of them, since OVN would take either: a VIP is in the one for
// everybody, or in those of zones, or in those of nodes.
func places(s *cluster.State, answers []answer) []placed {
	var all, byZone, byNode []answer
	for _, a := range answers {
		switch {
		case a.differsByNode(s):
			byNode = append(byNode, a)
		case a.differsByZone(s):
			byZone = append(byZone, a)
		default:
			all = append(all, a)
		}
	}
	var out []placed
	if len(all) > 0 {
		group := names.ClusterRow(nbdb.LoadBalancerGroupTable, names.RoleLBGroup)
		out = append(out, placed{everywhere, vipsFor(all, "", ""), []nb.Slot{inGroup(group)}})
	}
	if len(byZone) > 0 {
		out = append(out, zonePlaces(s, byZone)...)
	}
	if len(byNode) > 0 {
		out = append(out, nodePlaces(s, byNode)...)
	}
	return out
}

// differsByNode tells whether nodes of one zone have different backends.
func (a answer) differsByNode(s *cluster.State) bool {
	if a.Local {
		return a.Dropped // otherwise everybody is rejected
	}
	for node, b := range a.Nodes {
		if !s.HasSwitch(node) {
			continue
		}
		if other, _ := a.For("", s.Nodes[node].Zone); !slices.Equal(b, other) {
			return true
		}
	}
	return false
}

// differsByZone tells whether zones have different backends.
func (a answer) differsByZone(s *cluster.State) bool {
	for zone, b := range a.Zones {
		if index.ZonesOf(s).Has(zone) && !slices.Equal(b, a.Backends) {
			return true
		}
	}
	return false
}

// zonePlaces is a load balancer for each zone that has backends of its own, and
// one for the others.
func zonePlaces(s *cluster.State, answers []answer) []placed {
	var out []placed
	rest := placed{place: otherZones, vips: vipsFor(answers, "", "")}
	for _, z := range index.ZonesOf(s).List() {
		in := inGroup(names.ZoneRow(nbdb.LoadBalancerGroupTable, z, names.RoleLBGroup))
		if anyZone(answers, z) {
			out = append(out, placed{inZone + z, vipsFor(answers, "", z), []nb.Slot{in}})
		} else {
			rest.slots = append(rest.slots, in)
		}
	}
	if len(rest.slots) > 0 {
		out = append(out, rest)
	}
	return out
}

// nodePlaces is a load balancer for each node that has backends of its own, and
// if the other nodes have any, one for those of each zone that has its own, and
// one for the rest. They are listed by the nodes' switches one by one: a group
// would bring a VIP to nodes that have it already.
func nodePlaces(s *cluster.State, answers []answer) []placed {
	var out []placed
	at := map[string]int{}
	for _, n := range concerned(s, answers) {
		node := s.Nodes[n]
		p := placed{place: otherNodes}
		switch {
		case slices.ContainsFunc(answers, func(a answer) bool { return a.Nodes[n] != nil }):
			p.place = onNode + n
		case anyZone(answers, node.Zone):
			p.place = nodesOf + node.Zone
		}
		i, made := at[p.place]
		if !made {
			if p.vips = vipsFor(answers, n, node.Zone); len(p.vips) == 0 {
				continue
			}
			i = len(out)
			at[p.place], out = i, append(out, p)
		}
		ls := names.NodeRow(nbdb.LogicalSwitchTable, n, names.RoleSwitch, node.UID)
		out[i].slots = append(out[i].slots, nb.Slot{In: nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: ls}, Column: "load_balancer"})
	}
	return out
}

// concerned lists the nodes that have a switch and may have one of the VIPs,
// sorted.
func concerned(s *cluster.State, answers []answer) []string {
	nodes := map[string]bool{}
	for _, a := range answers {
		if a.Local {
			for n := range a.Nodes {
				nodes[n] = true
			}
			continue
		}
		for n := range s.Nodes {
			nodes[n] = true
		}
	}
	maps.DeleteFunc(nodes, func(n string, _ bool) bool { return !s.HasSwitch(n) })
	return slices.Sorted(maps.Keys(nodes))
}

// anyZone tells whether a VIP has backends of its own for a zone.
func anyZone(answers []answer, zone string) bool {
	return slices.ContainsFunc(answers, func(a answer) bool { return a.Zones[zone] != nil })
}

// vipsFor maps "address:port" of every VIP that clients on a node of a zone
// have to its backends, "" for none (ovn-nb(5), Load_Balancer vips).
func vipsFor(answers []answer, node, zone string) map[string]string {
	out := make(map[string]string, len(answers))
	for _, a := range answers {
		if b, served := a.For(node, zone); served {
			out[a.vip.String()] = text(b)
		}
	}
	return out
}

func inGroup(uuid string) nb.Slot {
	return nb.Slot{In: nb.Ref{Table: nbdb.LoadBalancerGroupTable, UUID: uuid}, Column: "load_balancer"}
}
