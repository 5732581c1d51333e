package reconcile

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/assign"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// ByHand is the nodes that were set up by hand, for which Kubernetes has no
// Node object; sorted by name.
func ByHand(session *ovsdb.Session) ([]*cluster.Node, []cluster.Problem) {
	records := session.ByHand()
	var nodes []*cluster.Node
	var problems []cluster.Problem
	for _, name := range slices.Sorted(maps.Keys(records)) {
		n, bad := cluster.ParseByHand(name, records[name])
		if ls, ok := session.ByHandSwitch(name).(*nbdb.LogicalSwitch); ok && len(n.Annotated) == 0 {
			n.Annotated, n.AnnotatedAs = SwitchSubnets(ls), "" // the record is spoiled: the switch still has them
		}
		nodes, problems = append(nodes, n), append(problems, bad...)
	}
	return nodes, problems
}

// SwitchSubnets is the subnets of a node's switch, which has the routers'
// addresses in them.
func SwitchSubnets(ls *nbdb.LogicalSwitch) []netip.Prefix {
	out := ipnet.Prefixes([]string{ls.ExternalIDs[names.KeyGatewayIP], ls.ExternalIDs[names.KeyGatewayIPv6]})
	for i, p := range out {
		out[i] = p.Masked()
	}
	return out
}

// takeByHand takes in the nodes that were set up by hand, at the beginning of a
// session; it tells what changed.
func (l *Loop) takeByHand() []cluster.Change {
	gone := map[string]bool{}
	for name, n := range l.State.Nodes {
		gone[name] = n.ByHand
	}
	nodes, problems := ByHand(l.session)
	for _, p := range problems {
		l.report(p)
	}
	var changes []cluster.Change
	for _, n := range nodes {
		delete(gone, n.Name)
		changes = append(changes, l.applyByHand(n.Name, n)...)
	}
	for name, byHand := range gone {
		if byHand {
			changes = append(changes, l.applyByHand(name, nil)...)
		}
	}
	return changes
}

// followByHand looks again at the records of nodes whose rows changed: somebody
// may have set a node up by hand, or undone that.
func (l *Loop) followByHand(dirty []nb.Owner) {
	var changes []cluster.Change
	for _, o := range dirty {
		if o.Kind != names.KindNode && o.Kind != names.KindGateway {
			continue
		}
		have := l.State.Nodes[o.Name]
		if have != nil && !have.ByHand {
			continue
		}
		record, ok := l.session.ByHandRecord(o.Name)
		if !ok {
			changes = append(changes, l.applyByHand(o.Name, nil)...)
			continue
		}
		n, problems := cluster.ParseByHand(o.Name, record)
		for _, p := range problems {
			l.report(p)
		}
		if len(problems) > 0 && have != nil {
			continue // what is known counts, and the record is written again
		}
		changes = append(changes, l.applyByHand(o.Name, n)...)
	}
	if len(changes) > 0 {
		l.follow(changes)
	}
}

// applyByHand has a node that was set up by hand come, change or (nil) go. A
// Node object of the same name counts for more, and inherits.
func (l *Loop) applyByHand(name string, n *cluster.Node) []cluster.Change {
	e := cluster.Event{Ref: cluster.Ref{Kind: cluster.KindNode, Name: cluster.Name{Name: name}}}
	switch have := l.State.Nodes[name]; {
	case have != nil && !have.ByHand && n == nil:
		return nil
	case have != nil && !have.ByHand:
		e.New = l.heir(have, n)
	case n != nil:
		e.New = n
	}
	if c, ok := l.State.Apply(e); ok {
		return []cluster.Change{c}
	}
	return nil
}

// inherited is an event of a Node as it is when it has got what a node set up
// by hand under its name left it.
func (l *Loop) inherited(e cluster.Event) cluster.Event {
	n, ok := e.New.(*cluster.Node)
	if !ok {
		return e
	}
	if byHand := l.State.Nodes[n.Name]; byHand != nil && byHand.ByHand {
		e.New = l.heir(n, byHand)
	}
	return e
}

// heir is a Node with what the node set up by hand leaves it, which is written
// to the Node as well.
func (l *Loop) heir(n, byHand *cluster.Node) *cluster.Node {
	heir := *n
	annotations := heir.Inherit(byHand)
	if len(annotations) == 0 {
		return n
	}
	l.Writer.Patch(assign.Patch{Ref: n.Ref(), UID: n.UID, Annotations: annotations})
	return &heir
}
