package allocate

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Patch is annotations to be written to an object, and those to be removed.
type Patch struct {
	Ref         cluster.Ref
	UID         string
	Annotations map[string]string
	Remove      []string
}

// Result is what one call of Assign led to.
type Result struct {
	Changes  []cluster.Change  // grants, which the state already contains
	Patches  []Patch           // for the API server
	Problems []cluster.Problem // for the objects' owners
}

// Ledger remembers who holds what.
type Ledger struct {
	subnets *subnetPool
	nodes   map[string]*nodeLease
	pods    map[cluster.Name]*podLease
	// Those that want what is not there to be given, with their UIDs.
	starvedNodes map[string]string
	starvedPods  map[string]map[cluster.Name]string // by node
	before       *memory
	join         *joinPool
}

// New is a ledger in which nobody holds anything.
func New(c config.Cluster) *Ledger {
	return &Ledger{
		subnets:      newSubnetPool(c.Subnets),
		nodes:        map[string]*nodeLease{},
		pods:         map[cluster.Name]*podLease{},
		starvedNodes: map[string]string{},
		starvedPods:  map[string]map[cluster.Name]string{},
		before:       newMemory(),
		join:         newJoinPool(c),
	}
}

// Check is the reason why a node can't have the subnets; nil when it has them
// already.
func (l *Ledger) Check(node string, subnets []netip.Prefix) error {
	if lease := l.nodes[node]; lease != nil && slices.Equal(lease.subnets, subnets) {
		return nil
	}
	return l.subnets.check(subnets)
}

// Assign brings the grants in s up to date after changes, which s already
// contains.
func (l *Ledger) Assign(s *cluster.State, changes []cluster.Change) Result {
	a := &assignment{Ledger: l, s: s, nodes: map[string]bool{}, pods: map[cluster.Name]bool{}, patched: map[string]bool{}}
	for _, c := range changes {
		switch {
		case c.Granted:
		case c.Ref.Kind == cluster.KindNode && c.Ref.Name.Name == names.JoinSwitch:
			a.refuseName(c)
		case c.Ref.Kind == cluster.KindNode:
			a.nodes[c.Ref.Name.Name] = true
		case c.Ref.Kind == cluster.KindPod:
			a.pods[c.Ref.Name] = true
		}
	}
	a.releaseNodes()
	a.releasePods()
	a.claimNodes()
	a.allocateNodes()
	a.joinNodes()
	a.patchNodes()
	a.claimPods()
	a.allocatePods()
	return a.Result
}

// assignment is one call of Assign: what is still to be looked at, and the
// result so far.
type assignment struct {
	*Ledger
	Result
	s     *cluster.State
	nodes map[string]bool
	pods  map[cluster.Name]bool

	patched map[string]bool // nodes whose annotations are to be written
}

func (a *assignment) problem(o cluster.Object, uid, reason, message string) {
	a.Problems = append(a.Problems, cluster.Problem{Ref: o.Ref(), UID: uid, Reason: reason, Message: message})
}

func (a *assignment) sortedNodes() []*cluster.Node {
	var out []*cluster.Node
	for n := range a.nodes {
		if o := a.s.Nodes[n]; o != nil {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(x, y *cluster.Node) int {
		return cmp.Or(later(x.ByHand)-later(y.ByHand), cmp.Compare(x.Created, y.Created), cmp.Compare(x.Name, y.Name))
	})
	return out
}

// later is 1 for what comes after the others: a node that was set up by hand
// has no age, and must not take what a Node holds.
func later(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// sortedPods is the pods to be looked at that want a network on a node that
// has subnets.
func (a *assignment) sortedPods() []*cluster.Pod {
	var out []*cluster.Pod
	for n := range a.pods {
		if p := a.s.Pods[n]; p != nil && p.WantsNetwork() && a.Ledger.nodes[p.Node] != nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(x, y *cluster.Pod) int {
		return cmp.Or(cmp.Compare(x.Created, y.Created), cluster.CompareNames(x.Name, y.Name))
	})
	return out
}

// sortedKeys is a map's keys in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
