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

// Result is what one call of Update led to.
type Result struct {
	Changes  []cluster.Change  // grants, which the state already contains
	Patches  []Patch           // for the API server
	Problems []cluster.Problem // for the authors of objects
}

// Ledger records who holds what.
type Ledger struct {
	subnets *subnetPool
	nodes   map[string]*nodeLease
	pods    map[cluster.Name]*podLease
	// Objects for which nothing was left, with their UIDs. They are looked at again when something may be given.
	waitingNodes map[string]string
	waitingPods  map[string]map[cluster.Name]string // by node
	former       *formerSubnets
	join         *joinPool
	freed        *freedSet
	retry        bool // those that wait are to be looked at again
}

// New is a ledger in which nobody holds anything.
func New(c config.Cluster) *Ledger {
	freed := newFreedSet()
	return &Ledger{
		subnets:      newSubnetPool(c.Subnets, freed),
		nodes:        map[string]*nodeLease{},
		pods:         map[cluster.Name]*podLease{},
		waitingNodes: map[string]string{},
		waitingPods:  map[string]map[cluster.Name]string{},
		former:       newFormerSubnets(),
		join:         newJoinPool(c, freed),
		freed:        freed,
	}
}

// Check is why a node can't have the subnets; nil when it has them already, or could get them.
func (l *Ledger) Check(node string, subnets []netip.Prefix) error {
	if lease := l.nodes[node]; lease != nil && slices.Equal(lease.subnets, subnets) {
		return nil
	}
	return l.subnets.check(subnets)
}

// Update brings the grants in s up to date after changes, which s already contains.
func (l *Ledger) Update(s *cluster.State, changes []cluster.Change) Result {
	u := &update{Ledger: l, s: s, nodes: map[string]bool{}, pods: map[cluster.Name]bool{}, patched: map[string]bool{}}
	for _, c := range changes {
		switch {
		case c.Granted:
		case c.Ref.Kind == cluster.KindNode && c.Ref.Name.Name == names.JoinSwitch:
			u.refuseName(c)
		case c.Ref.Kind == cluster.KindNode:
			u.nodes[c.Ref.Name.Name] = true
		case c.Ref.Kind == cluster.KindPod:
			u.pods[c.Ref.Name] = true
		}
	}
	u.tryAgain()
	u.releaseNodes()
	u.releasePods()
	u.claimNodes()
	u.allocateNodes()
	u.releaseJoins()
	u.allocateJoins()
	u.patchNodes()
	u.claimPods()
	u.allocatePods()
	return u.Result
}

// update is one call of Update: the objects that are still to be looked at, and the result so far.
type update struct {
	*Ledger
	Result
	s     *cluster.State
	nodes map[string]bool
	pods  map[cluster.Name]bool

	patched map[string]bool // nodes whose annotations are to be written
}

func (u *update) problem(o cluster.Object, uid, reason, message string) {
	u.Problems = append(u.Problems, cluster.Problem{Ref: o.Ref(), UID: uid, Reason: reason, Message: message})
}

// sortedNodes lists the nodes that are to be looked at and exist, the oldest first.
func (u *update) sortedNodes() []*cluster.Node {
	var out []*cluster.Node
	for n := range u.nodes {
		if o := u.s.Nodes[n]; o != nil {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, (*cluster.Node).CompareAge)
	return out
}

// sortedPods lists the pods that are to be looked at, want a network, and are on a node that has subnets; the oldest
// first.
func (u *update) sortedPods() []*cluster.Pod {
	var out []*cluster.Pod
	for n := range u.pods {
		if p := u.s.Pods[n]; p != nil && p.WantsNetwork() && u.Ledger.nodes[p.Node] != nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(x, y *cluster.Pod) int {
		return cmp.Or(cmp.Compare(x.Created, y.Created), cluster.CompareNames(x.Name, y.Name))
	})
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
