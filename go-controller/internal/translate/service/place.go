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

// choice is a VIP and its backends.
type choice struct {
	vip netip.AddrPort
	cluster.Choice
}

// placement is one load balancer of a service: its VIPs with their backends, and the slots that list it. The scope
// tells it from the service's other load balancers, and is part of the row's identity.
type placement struct {
	scope string
	vips  map[string]string
	slots []nb.Slot
}

// The scopes.
const (
	allNodes    = ""            // all nodes
	inZone      = "zone-"       // followed by a zone: its nodes
	otherZones  = "other-zones" // nodes of zones without backends of their own
	onNode      = "node-"       // followed by a node: that node
	nodesOfZone = "nodes-of-"   // followed by a zone: its nodes without backends of their own
	otherNodes  = "other-nodes" // nodes where neither the node nor its zone has backends of its own
)

// placements are the load balancers for VIPs of one protocol. A VIP is in the one for all nodes, or in those of zones,
// or in those of nodes. No node has a VIP in two load balancers: OVN would take either of them. In a primary network no
// VIP differs between clients (cluster.State.SlicesIn): all are in the group of the network.
func placements(s *cluster.State, n *cluster.Network, choices []choice) []placement {
	var all, byZone, byNode []choice
	for _, c := range choices {
		switch {
		case c.differsByNode(s):
			byNode = append(byNode, c)
		case c.differsByZone(s):
			byZone = append(byZone, c)
		default:
			all = append(all, c)
		}
	}
	var out []placement
	if len(all) > 0 {
		group := n.LBGroupRow(nbdb.LoadBalancerGroupTable)
		out = append(out, placement{allNodes, vipsFor(all, "", ""), []nb.Slot{inGroup(group)}})
	}
	return slices.Concat(out, zonePlacements(s, byZone), nodePlacements(s, byNode))
}

// differsByNode is true when nodes of one zone have different backends.
func (c choice) differsByNode(s *cluster.State) bool {
	if c.Local {
		return c.Dropped // otherwise connections are rejected everywhere
	}
	for node, b := range c.Nodes {
		if !s.HasSwitch(node) {
			continue
		}
		if other, _ := c.For("", s.Nodes[node].Zone); !slices.Equal(b, other) {
			return true
		}
	}
	return false
}

// differsByZone is true when zones have different backends.
func (c choice) differsByZone(s *cluster.State) bool {
	for zone, b := range c.Zones {
		if index.ZonesOf(s).Has(zone) && !slices.Equal(b, c.Backends) {
			return true
		}
	}
	return false
}

// zonePlacements is a load balancer for each zone that has backends of its own, and one for the other zones.
func zonePlacements(s *cluster.State, choices []choice) []placement {
	var out []placement
	rest := placement{scope: otherZones, vips: vipsFor(choices, "", "")}
	for _, z := range index.ZonesOf(s).List() {
		in := inGroup(names.ZoneRow(nbdb.LoadBalancerGroupTable, z, names.RoleLBGroup))
		if anyZone(choices, z) {
			out = append(out, placement{inZone + z, vipsFor(choices, "", z), []nb.Slot{in}})
		} else {
			rest.slots = append(rest.slots, in)
		}
	}
	if len(rest.slots) > 0 && len(choices) > 0 {
		out = append(out, rest)
	}
	return out
}

// nodePlacements is a load balancer for each node that has backends of its own. If the other nodes have any, there is
// one more for those of each zone that has backends of its own, and one for the rest. The nodes' switches list them one
// by one: in a group, a VIP would also get to nodes that have it already.
func nodePlacements(s *cluster.State, choices []choice) []placement {
	var out []placement
	at := map[string]int{}
	for _, n := range nodesWithVIPs(s, choices) {
		node := s.Nodes[n]
		p := placement{scope: otherNodes}
		switch {
		case slices.ContainsFunc(choices, func(c choice) bool { return c.Nodes[n] != nil }):
			p.scope = onNode + n
		case anyZone(choices, node.Zone):
			p.scope = nodesOfZone + node.Zone
		}
		i, made := at[p.scope]
		if !made {
			if p.vips = vipsFor(choices, n, node.Zone); len(p.vips) == 0 {
				continue
			}
			i = len(out)
			at[p.scope], out = i, append(out, p)
		}
		ls := names.NodeRow(nbdb.LogicalSwitchTable, n, names.RoleSwitch, node.UID)
		out[i].slots = append(out[i].slots,
			nb.Slot{In: nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: ls}, Column: "load_balancer"})
	}
	return out
}

// nodesWithVIPs lists the nodes that have a switch and may have one of the VIPs, sorted.
func nodesWithVIPs(s *cluster.State, choices []choice) []string {
	nodes := map[string]bool{}
	for _, c := range choices {
		if c.Local {
			for n := range c.Nodes {
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

// anyZone is true when a VIP has backends of its own for a zone.
func anyZone(choices []choice, zone string) bool {
	return slices.ContainsFunc(choices, func(c choice) bool { return c.Zones[zone] != nil })
}

// vipsFor maps "address:port" of each VIP that clients on a node of a zone have to its backends, "address:port,..." or
// "" for none (ovn-nb(5), Load_Balancer vips).
func vipsFor(choices []choice, node, zone string) map[string]string {
	out := make(map[string]string, len(choices))
	for _, c := range choices {
		if b, served := c.For(node, zone); served {
			out[c.vip.String()] = joined(b, ",")
		}
	}
	return out
}

func inGroup(uuid string) nb.Slot {
	return nb.Slot{In: nb.Ref{Table: nbdb.LoadBalancerGroupTable, UUID: uuid}, Column: "load_balancer"}
}
