package core

import (
	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// readiness is what a Node needs once its agent has said that it has set the node up: no taint that waits for the
// agent, and a condition for those that look at it. The taint never comes back by itself (ADR 0051).
func (c *Core) readiness(r cluster.Ref) (out []allocate.Patch) {
	if r.Kind != cluster.KindNode || !c.started {
		return nil
	}
	n := c.State.Nodes[r.Name.Name]
	if n == nil || n.ByHand || !n.AgentReady {
		return nil
	}
	if len(n.Taints) > 0 {
		out = append(out, allocate.Patch{Ref: r, UID: n.UID, Taints: n.Taints})
	}
	if !n.Available {
		status := &allocate.Status{Conditions: []cluster.Condition{cluster.NodeAvailable()}}
		out = append(out, allocate.Patch{Ref: r, UID: n.UID, Status: status})
	}
	return out
}
