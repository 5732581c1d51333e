package index

import (
	"cmp"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// NodeChassis is the subject of topics about a node whose chassis is another now, or is claimed by it and held by
// another node than before; the key is the node.
const NodeChassis cluster.Subject = "node chassis"

// Chassis answers which OVN chassis is a node's.
type Chassis struct {
	claims claims[string, cluster.Node]
	is     map[string]string // by node
	old    *cluster.Node     // the node that changes, as it was
}

func newChassis() *Chassis {
	return &Chassis{claims: newClaims(compareChassis), is: map[string]string{}}
}

// compareChassis orders the nodes that claim a chassis. The node of that name comes first, since ovn-controller takes
// the host name for a chassis, too; then the one whose agent derives the id from the node's name; then the oldest.
func compareChassis(id string, a, b *cluster.Node) int {
	return cmp.Or(cluster.CompareBool(a.Name != id, b.Name != id),
		cluster.CompareBool(names.SystemID(a.Name) != id, names.SystemID(b.Name) != id), a.CompareAge(b))
}

// ChassisOf is the index of a State.
func ChassisOf(s *cluster.State) *Chassis { return of(s, newChassis) }

// Kinds implements cluster.Index.
func (*Chassis) Kinds() []cluster.Kind { return []cluster.Kind{cluster.KindNode} }

// Before implements cluster.Index.
func (x *Chassis) Before(s *cluster.State, r cluster.Ref) { x.old = s.Nodes[r.Name.Name] }

// After implements cluster.Index.
func (x *Chassis) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	old, now := x.old, s.Nodes[r.Name.Name]
	x.old = nil
	if old == now {
		return nil
	}
	changed := x.claims.replace(old, now, chassisClaims(old), chassisClaims(now))
	for _, n := range changed {
		x.is[n.Name] = x.find(n)
	}
	was := x.is[r.Name.Name]
	if now == nil {
		delete(x.is, r.Name.Name)
	} else if x.is[now.Name] = x.find(now); x.is[now.Name] != was {
		changed = append(changed, now)
	}
	return topics(NodeChassis, sortedNames(changed)...)
}

// chassisClaims is the chassis that a node claims; n may be nil.
func chassisClaims(n *cluster.Node) []string {
	switch {
	case n == nil:
		return nil
	case n.ChassisID == "":
		return []string{n.Name}
	}
	return []string{n.Name, n.ChassisID}
}

func (x *Chassis) find(n *cluster.Node) string {
	if n.ChassisID != "" && x.claims.holder(n.ChassisID) == n {
		return n.ChassisID
	}
	return n.Name
}

// Of is the value of requested-chassis for a node's logical ports: the chassis, or the host name while that is unknown
// or another node holds the chassis. ovn-controller accepts both (ovn-nb(5), Logical_Switch_Port
// options:requested-chassis).
func (x *Chassis) Of(node string) string { return cmp.Or(x.is[node], node) }

// Holder is the node that holds a chassis, nil when none claims it.
func (x *Chassis) Holder(id string) *cluster.Node { return x.claims.holder(id) }
