package cluster

import (
	"cmp"
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
// parts are cut costs nothing.
type claim struct {
	created int64
	name    string
	costs   []cost // at least one
}

func (c claim) compare(d claim) int {
	return cmp.Or(cmp.Compare(c.created, d.created), cmp.Compare(c.name, d.name))
}

// share is what the objects of a kind in one namespace claim: the oldest first, then the first by name.
type share struct {
	claims []claim
	sum    cost
	cut    int // how many objects lack parts at present
}

// put enters a claim, or removes it unless in.
func (h *share) put(c claim, in bool) {
	at, there := slices.BinarySearchFunc(h.claims, c, claim.compare)
	switch {
	case in && !there:
		h.claims = slices.Insert(h.claims, at, c)
		h.sum = h.sum.plus(c.costs[0])
	case !in && there:
		h.sum = h.sum.minus(h.claims[at].costs[0])
		h.claims = slices.Delete(h.claims, at, at+1)
	}
}

// cuts is how many parts of each object are cut, in the order of claims, so that the rest is within the limit. What an
// older object has is not taken by a younger one.
func (h *share) cuts(limit cost) []int {
	out := make([]int, len(h.claims))
	if h.sum.within(limit) {
		return out
	}
	var used cost
	for i, c := range h.claims {
		for out[i] < len(c.costs) && !used.plus(c.costs[out[i]]).within(limit) {
			out[i]++
		}
		if out[i] < len(c.costs) {
			used = used.plus(c.costs[out[i]])
		}
	}
	return out
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

// placeShare enters what an object claims, or removes it unless in.
func (s *State) placeShare(o sharing, in bool) {
	key := shareKey{o.Ref().Kind, o.Ref().Name.Namespace}
	h := s.shares[key]
	if h == nil {
		h = &share{}
		s.shares[key] = h
	}
	h.put(o.claim(s.Config), in)
	if by := min(o.lacks(), 1); in {
		h.cut += by
	} else {
		h.cut -= by
	}
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

// Shared lists the objects that lack more or less than before since an object has changed, as they are to be: those of
// its kind in its namespace, in the order in which they come first.
func (s *State) Shared(changed Ref) []Object {
	return s.shared(shareKey{changed.Kind, changed.Name.Namespace})
}

// AllShared is Shared after changes to any objects, in no order of kinds and namespaces.
func (s *State) AllShared() (out []Object) {
	for key := range s.shares {
		out = append(out, s.shared(key)...)
	}
	return out
}

func (s *State) shared(key shareKey) (out []Object) {
	h, limit := s.shares[key], shareLimits(s.Config, key.kind)
	if h == nil || h.cut == 0 && h.sum.within(limit) {
		return nil
	}
	for i, cut := range h.cuts(limit) {
		o, ok := s.Object(Ref{key.kind, Name{key.namespace, h.claims[i].name}}).(sharing)
		if !ok {
			continue
		}
		if now := o.lacking(cut); now != Object(o) {
			out = append(out, now)
		}
	}
	return out
}

// Share is services with what the limit of their namespaces leaves each of them, in the same order. It is for programs
// that have no State, and says the same as State.Shared.
func Share(services []*Service, c config.Services) []*Service {
	all, limit := config.Cluster{Services: c}, cost{c.MaxNamespaceVIPs}
	sums := map[string]cost{}
	for _, s := range services {
		sums[s.Name.Namespace] = sums[s.Name.Namespace].plus(s.claim(all).costs[0])
	}
	cut := map[Name]int{}
	for namespace, sum := range sums {
		if sum.within(limit) {
			continue
		}
		var h share
		for _, s := range services {
			if s.Name.Namespace == namespace {
				h.put(s.claim(all), true)
			}
		}
		for i, n := range h.cuts(limit) {
			cut[Name{namespace, h.claims[i].name}] = n
		}
	}
	if len(cut) == 0 {
		return services
	}
	out := slices.Clone(services)
	for i, s := range out {
		out[i] = s.lacking(cut[s.Name]).(*Service)
	}
	return out
}
