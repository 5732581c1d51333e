package core

import (
	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// merge turns an event into those that the State applies. Other objects say which networks an object means. Three
// sources report on a node: its Node object, the record of a node that was set up by hand (in the Northbound database),
// and the gateway monitor. The State has one Node for all.
func (c *Core) merge(e cluster.Event, out *Result) []cluster.Event {
	e.New = c.State.Resolve(e.New)
	switch e.Ref.Kind {
	case cluster.KindNode:
		if n, ok := e.New.(*cluster.Node); ok {
			e.New = c.withVerdict(c.adopting(n, out))
		} else {
			delete(c.records, e.Ref.Name.Name)
		}
		return []cluster.Event{e}
	case cluster.KindNodeRecord:
		return c.mergeRecord(e, out)
	case cluster.KindGatewayDown:
		return c.mergeDown(e)
	}
	return []cluster.Event{e}
}

// adopting is a Node with what it adopts from a node of its name that was set up by hand. The record is kept until the
// Node object has all of it: an event of the object from before the patch must not take anything back.
func (c *Core) adopting(n *cluster.Node, out *Result) *cluster.Node {
	record := c.records[n.Name]
	if have := c.State.Nodes[n.Name]; have != nil && have.ByHand {
		record = have
	}
	if record == nil || n.ByHand {
		return n
	}
	c.records[n.Name] = record
	adopted := adopt(n, record, out)
	if adopted == n {
		delete(c.records, n.Name)
	}
	return adopted
}

// adopt adds to a Node the annotated values that it lacks and the record of its name has. They are written to the Node
// object as well.
func adopt(n, record *cluster.Node, out *Result) *cluster.Node {
	adopting := *n
	annotations := adopting.Adopt(record)
	if len(annotations) == 0 {
		return n
	}
	out.Patches = append(out.Patches, allocate.Patch{Ref: n.Ref(), UID: n.UID, Found: n.Found,
		Annotations: annotations})
	return &adopting
}

// mergeRecord adds, changes or deletes a node that was set up by hand. A Node object of the same name takes precedence,
// and adopts what the record has.
func (c *Core) mergeRecord(e cluster.Event, out *Result) []cluster.Event {
	ref := cluster.Ref{Kind: cluster.KindNode, Name: e.Ref.Name}
	have := c.State.Nodes[e.Ref.Name.Name]
	record, ok := e.New.(*cluster.NodeRecord)
	switch {
	case have != nil && !have.ByHand && !ok:
		return nil
	case have != nil && !have.ByHand:
		c.records[have.Name] = record.Node
		return []cluster.Event{{Ref: ref, New: adopt(have, record.Node, out)}}
	case ok:
		return []cluster.Event{{Ref: ref, New: c.withVerdict(record.Node)}}
	}
	return []cluster.Event{{Ref: ref}}
}

// mergeDown records whether a gateway is down.
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
	return []cluster.Event{{Ref: n.Ref(), New: c.withVerdict(n)}}
}

// withVerdict is a node with the verdict of the gateway monitor.
func (c *Core) withVerdict(n *cluster.Node) *cluster.Node {
	if n.LeaseExpired == c.down[n.Name] {
		return n
	}
	out := *n
	out.LeaseExpired = c.down[n.Name]
	return &out
}
