package cluster

import (
	"cmp"
	"iter"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// sharing is an object whose namespace has a limit for all its objects of the kind together. Its place is in
// State.shares.
type sharing interface {
	Object
	// claim is what the object would cost. It does not depend on what was cut.
	claim(c config.Cluster) claim
	// lacking is the object without so many of its parts; itself when it lacks as many already.
	lacking(cut int) Object
	// lacks is how many parts were cut.
	lacks() int
}

// cost is in the units of the limits of a kind: the number of VIPs, or of selectors and of terms.
type cost [2]int

func (c cost) plus(d cost) cost { return cost{c[0] + d[0], c[1] + d[1]} }

func (c cost) minus(d cost) cost { return cost{c[0] - d[0], c[1] - d[1]} }

// within is true when a limit allows the cost; 0 allows everything.
func (c cost) within(limit cost) bool {
	return (limit[0] == 0 || c[0] <= limit[0]) && (limit[1] == 0 || c[1] <= limit[1])
}

// claim is what an object costs, part by part: all of it, then all but its last part, and so on. What is left when all
// parts are cut costs nothing, as does an object without parts.
type claim struct {
	created int64
	name    string
	costs   []cost
	cut     int // how many parts the object lacks at present
}

// without is the cost of the object without so many of its parts.
func (c claim) without(cut int) cost {
	if cut < len(c.costs) {
		return c.costs[cut]
	}
	return cost{}
}

func (c claim) compare(d claim) int {
	return cmp.Or(cmp.Compare(c.created, d.created), cmp.Compare(c.name, d.name))
}

// share is what the objects of a kind in one namespace claim: the oldest first, then the first by name.
type share struct {
	claims  []claim
	sum     cost // of objects that lack nothing
	lacking int  // how many objects lack parts at present
}

// put enters a claim, or removes it unless in.
func (h *share) put(c claim, in bool) {
	at, there := slices.BinarySearchFunc(h.claims, c, claim.compare)
	by := min(c.cut, 1)
	switch {
	case in && !there:
		h.claims = slices.Insert(h.claims, at, c)
		h.sum, h.lacking = h.sum.plus(c.without(0)), h.lacking+by
	case !in && there:
		h.sum, h.lacking = h.sum.minus(c.without(0)), h.lacking-by
		h.claims = slices.Delete(h.claims, at, at+1)
	}
}

// cuts is how many parts of each object are to be cut, in the order of claims, so that the rest is within the limit.
// What an older object has is not taken by a younger one. Objects that lack so many already are passed over.
func (h *share) cuts(limit cost) iter.Seq2[string, int] {
	return func(yield func(name string, cut int) bool) {
		if h.lacking == 0 && h.sum.within(limit) {
			return
		}
		var used cost
		for _, c := range h.claims {
			cut := 0
			for cut < len(c.costs) && !used.plus(c.without(cut)).within(limit) {
				cut++
			}
			used = used.plus(c.without(cut))
			if cut != c.cut && !yield(c.name, cut) {
				return
			}
		}
	}
}

// shareLimits is the limits of a namespace for a kind.
func shareLimits(c config.Cluster, k Kind) cost {
	if k == KindService {
		return cost{c.Services.MaxNamespaceVIPs}
	}
	return cost{c.Policies.MaxNamespaceSelectors, c.Policies.MaxNamespaceTerms}
}

// shareKey names the share of a kind in a namespace.
type shareKey struct {
	kind      Kind
	namespace string
}

// claimOf is the claim of an object as it is.
func claimOf(o sharing, c config.Cluster) claim {
	out := o.claim(c)
	out.cut = o.lacks()
	return out
}

// placeShare enters what an object claims, or removes it unless in.
func (s *State) placeShare(o sharing, in bool) {
	key := shareKey{o.Ref().Kind, o.Ref().Name.Namespace}
	h := s.shares[key]
	if h == nil {
		h = &share{}
		s.shares[key] = h
	}
	h.put(claimOf(o, s.Config), in)
	if len(h.claims) == 0 {
		delete(s.shares, key)
	}
}

// lackingAsBefore is an object that lacks what the present one of its name does.
func (s *State) lackingAsBefore(o Object) Object {
	now, ok := o.(sharing)
	if !ok {
		return o
	}
	if before, ok := s.Object(o.Ref()).(sharing); ok {
		return now.lacking(before.lacks())
	}
	return o
}

// Shared lists the objects that lack more or less than before these changes, as they are to be: those of the same kinds
// and namespaces, in the order in which they come first.
func (s *State) Shared(changes []Change) (out []Object) {
	var seen []shareKey
	for _, c := range changes {
		key := shareKey{c.Ref.Kind, c.Ref.Name.Namespace}
		if s.shares[key] != nil && !slices.Contains(seen, key) {
			seen = append(seen, key)
			out = append(out, s.shared(key)...)
		}
	}
	return out
}

// AllShared is Shared after changes of all objects, in no order of kinds and namespaces.
func (s *State) AllShared() (out []Object) {
	for key := range s.shares {
		out = append(out, s.shared(key)...)
	}
	return out
}

func (s *State) shared(key shareKey) (out []Object) {
	h := s.shares[key]
	if h == nil {
		return nil
	}
	for name, cut := range h.cuts(shareLimits(s.Config, key.kind)) {
		if o, ok := s.Object(Ref{key.kind, Name{key.namespace, name}}).(sharing); ok {
			out = append(out, o.lacking(cut))
		}
	}
	return out
}

// Share is services with what the limit of their namespaces leaves each of them, in the same order. It is for programs
// that have no State, and says the same as State.Shared.
func Share(services []*Service, c config.Services) []*Service {
	all, limit := config.Cluster{Services: c}, cost{c.MaxNamespaceVIPs}
	claims, sums := make([]claim, len(services)), map[string]cost{}
	for i, s := range services {
		claims[i] = claimOf(s, all)
		sums[s.Name.Namespace] = sums[s.Name.Namespace].plus(claims[i].without(0))
	}
	cut := map[Name]int{}
	for namespace, sum := range sums {
		if sum.within(limit) {
			continue
		}
		var h share
		for i, s := range services {
			if s.Name.Namespace == namespace {
				h.put(claims[i], true)
			}
		}
		for name, n := range h.cuts(limit) {
			cut[Name{namespace, name}] = n
		}
	}
	if len(cut) == 0 {
		return services
	}
	out := slices.Clone(services)
	for i, s := range out {
		if n, ok := cut[s.Name]; ok {
			out[i] = s.lacking(n).(*Service)
		}
	}
	return out
}
