package allocate

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Patch is annotations to be written to an object, and those to be removed. It holds for an object whose annotations of
// these keys are Found: another master may have written since.
type Patch struct {
	Ref         cluster.Ref
	UID         string
	Found       cluster.Found
	Annotations map[string]string
	Remove      []string
	Status      *Status         // if not nil, the patch is about the status alone
	Claim       *ClaimStatus    // the same, of an IPAMClaim
	Taints      []cluster.Taint // if there are any, the patch removes these from a Node, and does nothing else
	Finalizers  *Finalizers     // if not nil, the patch is about the finalizers alone
}

// Finalizers is a finalizer that is to be added to those of an object, or removed from them. That is done only while
// they are as Found.
type Finalizers struct {
	Found  string // as JSON; "" for none
	Name   string
	Remove bool // else it is added
}

// ClaimStatus is the addresses of an IPAMClaim, and the name of the pod that has, or last had, them. If Condition is
// not true, the claim has none, and that alone is written. It is written only while the status is as Found.
type ClaimStatus struct {
	IPs       []netip.Prefix
	Pod       string
	Condition cluster.Condition // of TypeIPsAllocated
	Found     string            // as JSON; "" for none
}

// Status is the conditions that an object's status is to have. They are written only while the conditions are as Found.
type Status struct {
	Conditions []cluster.Condition
	Found      cluster.Observed
}

// set writes an annotation, or removes it when there was one and nothing is left of it.
func (p *Patch) set(key, before, value string) {
	switch {
	case value != "":
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[key] = value
	case before != "":
		p.Remove = append(p.Remove, key)
	}
}

// Result is what one call of Update led to.
type Result struct {
	Changes  []cluster.Change  // grants, which the state already contains
	Patches  []Patch           // for the API server
	Problems []cluster.Problem // for the authors of objects
}

// Ledger records who holds what in every network.
type Ledger struct {
	*book   // of the cluster's own network
	books   map[names.Network]*book
	waiting map[cluster.Name]string // pods that lack an attachment, and what was last reported of why
	updated bool                    // there was an update: what came before is no news
	// kept is what was freed lately in networks that have no book: they are gone, or not known yet.
	kept      map[names.Network]*freedSet
	stillUsed stillUsed // as inUse last found it
}

// book records who holds what in one network.
type book struct {
	network *cluster.Network
	subnets *subnetPool
	nodes   map[string]*nodeLease // in a network that has a subnet for each node
	shared  *nodeLease            // in another: what the pods of all nodes share; nil otherwise
	pods    map[cluster.PodPort]*podLease
	macs    map[ipnet.MAC]cluster.PodPort  // that pods asked for
	addrs   map[netip.Addr]cluster.PodPort // the same, in a network without subnets
	// Objects for which nothing was left, with their UIDs. They are looked at again when something may be given.
	waitingNodes map[string]string
	waitingPods  map[string]map[cluster.PodPort]waiting // by node
	former       *formerSubnets
	join         *joinPool
	exits        map[string]*exitLease        // of a primary network, by node
	waitingExits map[exit]bool                // in the cluster's own network: exits for which there was no address
	claims       map[cluster.Name]*claimLease // IPAMClaims that have addresses
	freed        *freedSet
	retry        bool // those that wait are to be looked at again
}

// waiting is a pod that waits for an address, and why.
type waiting struct{ uid, why string }

// New is a ledger in which nobody holds anything.
func New(networks map[names.Network]*cluster.Network) *Ledger {
	l := &Ledger{books: map[names.Network]*book{}, waiting: map[cluster.Name]string{},
		kept: map[names.Network]*freedSet{}}
	for name, n := range networks {
		l.books[name] = newBook(n, newFreedSet())
	}
	l.book = l.books[names.Own]
	return l
}

func newBook(n *cluster.Network, freed *freedSet) *book {
	b := &book{
		network:      n,
		subnets:      newSubnetPool(n.Subnets, freed),
		nodes:        map[string]*nodeLease{},
		pods:         map[cluster.PodPort]*podLease{},
		macs:         map[ipnet.MAC]cluster.PodPort{},
		addrs:        map[netip.Addr]cluster.PodPort{},
		waitingNodes: map[string]string{},
		waitingPods:  map[string]map[cluster.PodPort]waiting{},
		former:       newFormerSubnets(),
		exits:        map[string]*exitLease{},
		waitingExits: map[exit]bool{},
		join:         newJoinPool(n.JoinSubnets, freed),
		claims:       map[cluster.Name]*claimLease{},
		freed:        freed,
	}
	if n.Topology != cluster.Layer3 {
		b.shared = newSharedLease(n)
	}
	return b
}

// bare is true for a network without subnets, where pods have the addresses that they ask for.
func (b *book) bare() bool { return b.shared != nil && len(b.shared.pools) == 0 }

// lease is the subnets that pods of a node get addresses of; nil when there are none yet, or the node is gone.
func (u *update) lease(node string) *nodeLease {
	switch {
	case u.shared == nil:
		return u.book.nodes[node]
	case u.s.Nodes[node] == nil:
		return nil
	}
	return u.shared
}

// Check is why a node can't have the subnets in the cluster's own network; nil when it has them already, or could get
// them.
func (l *Ledger) Check(node string, subnets []netip.Prefix) error {
	if lease := l.nodes[node]; lease != nil && slices.Equal(lease.subnets, subnets) {
		return nil
	}
	return l.subnets.check(subnets)
}

// Update brings the grants in s up to date after changes, which s already contains. An object gets one patch, which has
// what it holds in every network.
func (l *Ledger) Update(s *cluster.State, changes []cluster.Change) Result {
	u := &update{s: s, book: l.book, ledger: l,
		ports: map[names.Network]map[cluster.PodPort]bool{}, exits: map[exit]bool{}, patched: map[string]bool{},
		claimed: map[cluster.Name]bool{}, failed: map[cluster.Name]cluster.Condition{}, read: annotation.NewNodeRead(),
		primaries: map[string]map[names.Network]bool{}}
	if !l.updated {
		u.expect(len(s.Pods))
	}
	opened := u.followNetworks()
	nodes := map[string]bool{}
	for _, c := range changes {
		switch {
		case c.Granted:
		case c.Ref.Kind == cluster.KindNode && c.Ref.Name.Name == names.JoinSwitch:
			u.refuseName(c)
		case c.Ref.Kind == cluster.KindNode:
			nodes[c.Ref.Name.Name] = true
		case c.Ref.Kind == cluster.KindPod:
			u.lookAt(c.Old)
			u.lookAt(c.New)
			u.waitAnew(c)
			if c.New == nil {
				delete(l.waiting, c.Ref.Name)
			}
		case c.Ref.Kind.Defines():
			u.lookAtAskers(names.Defined(c.Ref.Name.Namespace, c.Ref.Name.Name))
			u.lookAtPrimary(c)
			u.lookAtClaims(c.Ref.Name.Namespace)
		case c.Ref.Kind == cluster.KindNamespace:
			u.lookAtPrimary(c)
			u.lookAtClaims(c.Ref.Name.Name)
		case c.Ref.Kind == cluster.KindIPAMClaim:
			u.lookAtClaim(c.Ref.Name)
		}
	}
	u.lookAtExits(nodes)
	for _, n := range sortedKeys(l.books) {
		u.book, u.nodes, u.pods = l.books[n], maps.Clone(nodes), u.ports[n]
		if u.network.Primary { // there may be many
			u.nodes = u.nodesOf(n)
		}
		if u.pods == nil {
			u.pods = map[cluster.PodPort]bool{}
		}
		if opened[n] {
			u.lookAtClaimsOf(n)
		}
		if opened[n] && u.shared == nil {
			u.lookAtAllNodes()
		}
		u.Changes = slices.Grow(u.Changes, len(u.pods))
		u.settle()
	}
	u.lookAtStrays(nodes)
	u.patchNodes()
	u.patchPods()
	u.patchClaims()
	l.updated = true
	return u.Result
}

// expect makes room for the pods of the cluster's own network, before the first of them is granted anything.
func (u *update) expect(pods int) {
	u.s.ExpectPods(pods)
	u.book.pods = make(map[cluster.PodPort]*podLease, pods)
	u.ports[names.Own] = make(map[cluster.PodPort]bool, pods)
}

// lookAt has a pod looked at in every network that it is attached to.
func (u *update) lookAt(o cluster.Object) {
	p, ok := o.(*cluster.Pod)
	if !ok {
		return
	}
	for a := range u.s.Attachments(p) {
		u.lookAtPort(a.Network, cluster.PodPort{Pod: p.Name, Interface: a.Interface})
	}
	if !u.s.AnyPrimary() {
		return
	}
	primary := cluster.PodPort{Pod: p.Name, Interface: names.PrimaryInterface}
	for name, b := range u.ledger.books {
		if b.network.Primary && (b.pods[primary] != nil || u.ports[name][primary]) {
			u.lookAtPort(name, primary)
			if p.Node != "" {
				u.exits[exit{name, p.Node}] = true
			}
		}
	}
}

// lookAtPort has a pod's interface looked at in a network.
func (u *update) lookAtPort(n names.Network, p cluster.PodPort) {
	if u.ports[n] == nil {
		u.ports[n] = map[cluster.PodPort]bool{}
	}
	u.ports[n][p] = true
}

// lookAtPodsOn has the pods on a node looked at in this network, and lists their interfaces.
func (u *update) lookAtPodsOn(node string) []cluster.PodPort {
	out := u.portsOn(node)
	for _, p := range out {
		u.pods[p] = true
	}
	return out
}

// settle brings one network up to date.
func (u *update) settle() {
	u.tryAgain()
	if u.shared == nil {
		u.releaseNodes()
	} else {
		u.lookAtAskersOn(u.nodes) // they may have come or gone
	}
	u.releasePods()
	u.lookAtHosts()
	if u.shared == nil {
		u.claimNodes()
		u.allocateNodes()
		u.releaseIdleNodes()
	}
	if u.network.Hosts || len(u.join.subnets) > 0 {
		u.releaseJoins()
		u.allocateJoins()
	}
	if u.network.Hosts {
		u.claimExits()
	}
	u.claimPods()
	u.settleClaims()
	if u.network.Hosts {
		u.allocateExits()
	}
	u.allocatePods()
	u.settleLacking()
}

// update is one call of Update: the objects that are still to be looked at, and the result so far.
type update struct {
	Result
	s      *cluster.State
	ledger *Ledger
	ports  map[names.Network]map[cluster.PodPort]bool // pods to be looked at
	exits  map[exit]bool                              // exits to be looked at
	closed []names.Network                            // networks that are gone, or were made anew

	claimed map[cluster.Name]bool              // IPAMClaims to be looked at
	failed  map[cluster.Name]cluster.Condition // what those say that have no addresses: see fail

	read      annotation.NodeRead
	primaries map[string]map[names.Network]bool // by node, as hasPrimaryPods has found them

	// In the network that is being settled:
	*book
	nodes map[string]bool
	pods  map[cluster.PodPort]bool

	patched     map[string]bool // nodes whose annotations are to be written
	patchedPods []*cluster.Pod  // the same of pods; one may occur more than once
}

func (u *update) problem(o cluster.Object, uid, reason, message string) {
	u.Problems = append(u.Problems,
		cluster.Problem{Ref: o.Ref(), UID: uid, Reason: reason, Message: u.network.Name.Message(message)})
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

// port is an interface that a pod asks for in this network.
type port struct {
	cluster.PodPort
	pod   *cluster.Pod
	asked cluster.Asked
	key   string // of its entry in the annotation
}

// port is the interface that a pod asks for; ok is false when it does not, or in a way that is not served, or is gone.
func (u *update) port(p cluster.PodPort) (out port, ok bool) {
	pod := u.s.Pods[p.Pod]
	if pod == nil || !pod.WantsNetwork() {
		return port{}, false
	}
	for a := range u.s.Attachments(pod) {
		if a.Network == u.network.Name && a.Interface == p.Interface {
			return port{p, pod, a.Asked, a.Key()}, a.Asked.Unserved == "" // else it waits: see missing
		}
	}
	return port{}, false
}

// sortedPods lists the interfaces that are to be looked at, of pods for which there are subnets; those of the oldest
// pod first. With waiting it leaves out those that hold something.
func (u *update) sortedPods(waiting bool) []port {
	var out []port
	if !waiting {
		out = make([]port, 0, len(u.pods))
	}
	for n := range u.pods {
		if waiting && u.book.pods[n] != nil {
			continue
		}
		if p, ok := u.port(n); ok && u.lease(p.pod.Node) != nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(x, y port) int {
		if by := x.pod.CompareAge(y.pod); by != 0 {
			return by
		}
		return cmp.Compare(x.Interface, y.Interface)
	})
	return out
}

// sortedKeys lists the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
