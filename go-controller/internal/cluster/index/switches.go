package index

import "github.com/northbound-net/northbound/go-controller/internal/cluster"

// NodeSwitch is the subject of topics about a node whose logical switch was added, deleted, made anew, or moved to
// another zone; the key is the node.
const NodeSwitch cluster.Subject = "node switch"

// Switches notices what happens to the logical switches of nodes.
type Switches struct{ before nodeSwitch }

// nodeSwitch identifies the logical switch of a node: the Node's UID is part of the row's UUID. It is zero for a node
// without a switch.
type nodeSwitch struct {
	exists    bool
	uid, zone string
}

func newSwitches() *Switches { return &Switches{} }

// Kinds implements cluster.Index.
func (*Switches) Kinds() []cluster.Kind { return []cluster.Kind{cluster.KindNode} }

// Before implements cluster.Index.
func (w *Switches) Before(s *cluster.State, r cluster.Ref) { w.before = switchOf(s, r.Name.Name) }

// After implements cluster.Index.
func (w *Switches) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	if switchOf(s, r.Name.Name) == w.before {
		return nil
	}
	return topics(NodeSwitch, r.Name)
}

func switchOf(s *cluster.State, node string) nodeSwitch {
	if !s.HasSwitch(node) {
		return nodeSwitch{}
	}
	return nodeSwitch{true, s.Nodes[node].UID, s.Nodes[node].Zone}
}
