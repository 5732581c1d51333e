package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// Reasons of the condition about the network outside, which is this project's own.
const (
	conditionMapped  = "NodesHaveBridges"
	conditionUnknown = "NoNodeReports"
)

// reasonUnbridged is another. It is also that of a Problem with a NetworkAttachmentDefinition, which has no status.
const reasonUnbridged = "NodesWithoutBridge"

// unbridged lists the nodes that lack a bridge to the network outside that a network is joined to, sorted. Pods of the
// network don't start there. known is how many nodes' agents have reported which bridges they have; others are not
// listed.
func unbridged(s *cluster.State, n *cluster.Network) (nodes []string, known int) {
	if n == nil || n.Topology != cluster.Localnet {
		return nil, 0
	}
	for name, node := range s.Nodes {
		if node.Reports() {
			known++
		}
		if node.Unbridged(n.Physical.Name) {
			nodes = append(nodes, name)
		}
	}
	slices.Sort(nodes)
	return nodes, known
}

// withoutBridge says which nodes lack a bridge to the network outside that a network is joined to. It does not say how
// many these are: where most nodes lack it, each that comes would change what was reported.
func withoutBridge(n *cluster.Network, nodes []string) string {
	const most = 10
	list := strings.Join(nodes[:min(len(nodes), most)], ", ")
	if len(nodes) > most {
		list += " and more"
	}
	return fmt.Sprintf("pods of the network don't start on these nodes, which have no bridge for physical network %s: "+
		"%s; see --bridge-mappings of the node agent", n.Physical.Name, list)
}

// bridging lists the owners of networks of topology Localnet whose condition or report names a node since it has
// changed, or names it no longer.
func bridging(s *cluster.State, c cluster.Change) (out []nb.Owner) {
	old, _ := c.Old.(*cluster.Node)
	now, _ := c.New.(*cluster.Node)
	if old.SameBridges(now) {
		return nil
	}
	for _, n := range s.Networks {
		physical := n.Physical.Name
		if n.Topology == cluster.Localnet && (old.Unbridged(physical) != now.Unbridged(physical) ||
			old.Reports() != now.Reports()) {
			out = append(out, nb.Owner{Kind: names.KindCluster, Name: n.ClusterOwner()})
		}
	}
	return out
}

// mapped is the condition that tells whether every node has a bridge to the network outside; ok is false for a network
// that is joined to none.
func mapped(s *cluster.State, u *cluster.UserNetwork, created cluster.Condition) (c cluster.Condition, ok bool) {
	if u.Network == nil || u.Network.Topology != cluster.Localnet {
		return c, false
	}
	c.Type = cluster.TypeNetworkMapped
	switch nodes, known := unbridged(s, u.Network); {
	case !created.True:
		c.Reason, c.Message = created.Reason, "the network is not joined to anything: see "+created.Type
	case known == 0:
		c.Reason, c.Message = conditionUnknown, "no node's agent has reported its bridges yet"
	case len(nodes) > 0:
		c.Reason, c.Message = reasonUnbridged, withoutBridge(u.Network, nodes)
	default:
		c.True, c.Reason = true, conditionMapped
		c.Message = "every node whose agent reports its bridges has one for physical network " + u.Network.Physical.Name
	}
	return c, true
}
