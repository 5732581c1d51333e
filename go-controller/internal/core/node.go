package core

import (
	"maps"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// merge turns an event into those that the State applies. Three sources speak of
// a node: its Node object, the record that the commands by hand leave in the
// Northbound database, and the monitor of gateways. The State has one Node of
// them all.
func (c *Core) merge(e cluster.Event, out *Result) []cluster.Event {
	switch e.Ref.Kind {
	case cluster.KindNode:
		if n, ok := e.New.(*cluster.Node); ok {
			e.New = c.marked(c.adopted(n, out))
		}
		return []cluster.Event{e}
	case cluster.KindNodeRecord:
		return c.mergeRecord(e, out)
	case cluster.KindGatewayDown:
		return c.mergeDown(e)
	}
	return []cluster.Event{e}
}

// adopted is a Node object with what a node of its name that was set up by hand
// leaves it.
func (c *Core) adopted(n *cluster.Node, out *Result) *cluster.Node {
	if have := c.State.Nodes[n.Name]; have != nil && have.ByHand && !n.ByHand {
		return adopt(n, have, out)
	}
	return n
}

// adopt is a Node with what the record says and the Node does not. That is
// written to the Node as well.
func adopt(n, record *cluster.Node, out *Result) *cluster.Node {
	heir := *n
	annotations := heir.Adopt(record)
	if len(annotations) == 0 {
		return n
	}
	out.Patches = append(out.Patches, allocate.Patch{Ref: n.Ref(), UID: n.UID, Annotations: annotations})
	return &heir
}

// mergeRecord has a node that was set up by hand come, change or go. A Node
// object of the same name counts for more, and adopts what the record says.
func (c *Core) mergeRecord(e cluster.Event, out *Result) []cluster.Event {
	ref := cluster.Ref{Kind: cluster.KindNode, Name: e.Ref.Name}
	have := c.State.Nodes[e.Ref.Name.Name]
	record, ok := e.New.(*cluster.NodeRecord)
	switch {
	case have != nil && !have.ByHand && !ok:
		return nil
	case have != nil && !have.ByHand:
		return []cluster.Event{{Ref: ref, New: adopt(have, record.Node, out)}}
	case ok:
		return []cluster.Event{{Ref: ref, New: c.marked(record.Node)}}
	}
	return []cluster.Event{{Ref: ref}}
}

// mergeDown notes whether a gateway is down.
func (c *Core) mergeDown(e cluster.Event) []cluster.Event {
	name := e.Ref.Name.Name
	if e.New != nil {
		c.down[name] = true
	} else {
		delete(c.down, name)
	}
	n := c.State.Nodes[name]
	if n == nil {
		return nil
	}
	return []cluster.Event{{Ref: n.Ref(), New: c.marked(n)}}
}

// marked is a node with the monitor's verdict.
func (c *Core) marked(n *cluster.Node) *cluster.Node {
	if n.NoLease == c.down[n.Name] {
		return n
	}
	out := *n
	out.NoLease = c.down[n.Name]
	return &out
}

// Down lists the gateways that the monitor found down.
func (c *Core) Down() map[string]bool { return maps.Clone(c.down) }
