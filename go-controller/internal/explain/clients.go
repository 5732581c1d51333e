package explain

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
)

// Clients is a group of clients with the same backends, if the backends differ between clients.
type Clients struct {
	Who      string   `json:"who"`      // "on node n1", "in zone a", "elsewhere"
	Backends []string `json:"backends"` // "address:port"
	Dropped  bool     `json:"dropped,omitempty"`

	at []netip.AddrPort
}

// elsewhere is the group of all clients that are in no other group.
const elsewhere = "elsewhere"

// clients groups the clients on existing nodes by their backends. It returns nil if all clients have the same backends.
func clients(s *cluster.State, choice cluster.Choice) []Clients {
	var out []Clients
	covered := map[string]bool{}
	for _, n := range slices.Sorted(maps.Keys(choice.Nodes)) {
		node := s.Nodes[n]
		if node == nil {
			continue
		}
		if zonal, served := choice.For("", node.Zone); !served || !slices.Equal(zonal, choice.Nodes[n]) {
			out = append(out, Clients{Who: "on node " + n, at: choice.Nodes[n]})
			covered[n] = true
		}
	}
	for _, z := range slices.Sorted(maps.Keys(choice.Zones)) {
		if !index.ZonesOf(s).Has(z) || slices.Equal(choice.Zones[z], choice.Backends) {
			continue // they are elsewhere
		}
		out = append(out, Clients{Who: "in zone " + z, at: choice.Zones[z]})
		for _, n := range index.ZonesOf(s).Nodes(z) {
			covered[n.Name] = true
		}
	}
	if len(out) == 0 && !choice.Dropped {
		return nil
	}
	if len(covered) < len(s.Nodes) || len(out) == 0 {
		out = append(out, Clients{Who: elsewhere, at: choice.Backends, Dropped: choice.Dropped})
	}
	for i := range out {
		out[i].Backends = texts(out[i].at)
	}
	return out
}

// serves lists the groups of clients that an endpoint serves.
func serves(of []Clients, at netip.AddrPort) []string {
	var out []string
	for _, c := range of {
		if slices.Contains(c.at, at) {
			out = append(out, c.Who)
		}
	}
	return out
}

// hints explains why hints of a port's endpoints are not followed.
func hints(
	s *cluster.State, choice cluster.Choice, p cluster.ServicePort, is4 bool, eps []*cluster.EndpointSlice,
) []string {
	if choice.Local || choice.Conditions != cluster.Ready {
		return nil
	}
	var zones, nodes bool
	for _, e := range eps {
		for _, ep := range e.Endpoints {
			if ep.Addr.Is4() == is4 && ep.Conditions.Has(cluster.Ready) && len(cluster.Numbers(p, e)) > 0 {
				zones, nodes = zones || ep.ForZones != "", nodes || ep.ForNodes != ""
			}
		}
	}
	there := func(names map[string][]netip.AddrPort, has func(string) bool) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(names)), has)
	}
	var out []string
	switch {
	case zones && choice.Zones == nil:
		out = append(out, "zone hints are ignored because a ready endpoint has none")
	case zones && !there(choice.Zones, index.ZonesOf(s).Has):
		out = append(out, "zone hints are ignored because no node is in any of these zones "+
			"(label topology.kubernetes.io/zone)")
	}
	switch {
	case nodes && choice.Nodes == nil:
		out = append(out, "node hints are ignored because a ready endpoint has none")
	case nodes && !there(choice.Nodes, func(n string) bool { return s.Nodes[n] != nil }):
		out = append(out, "node hints are ignored because none of these nodes exists")
	}
	return out
}

func texts[T fmt.Stringer](at []T) []string {
	out := make([]string, len(at))
	for i, a := range at {
		out[i] = a.String()
	}
	return out
}
