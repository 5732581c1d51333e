package index

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// addressList is addresses of one family, as sorted text. Changes gather until list is called, so
// that merging many costs as much as merging one.
type addressList struct {
	sorted []string       // never changed in place: rows refer to it
	delta  map[string]int // by address: 1 to add it, -1 to remove it
	more   map[string]int // how many others have an address, beside the first one
}

// change adds (by = 1) or removes (by = -1) an address of somebody. The two pods of a virtual machine that moves have
// the same.
func (l *addressList) change(a string, by int) {
	switch {
	case by > 0 && l.has(a):
		if l.more == nil {
			l.more = map[string]int{}
		}
		l.more[a]++
		return
	case by < 0 && l.more[a] > 0:
		if l.more[a]--; l.more[a] == 0 {
			delete(l.more, a)
		}
		return
	}
	if l.delta == nil {
		l.delta = map[string]int{}
	}
	l.delta[a] += by
	if l.delta[a] == 0 {
		delete(l.delta, a)
	}
}

// has is true for an address that somebody has.
func (l *addressList) has(a string) bool {
	if by := l.delta[a]; by != 0 {
		return by > 0
	}
	_, there := slices.BinarySearch(l.sorted, a)
	return there
}

// list is the addresses. The caller must not change them.
func (l *addressList) list() []string {
	if len(l.delta) == 0 {
		return l.sorted
	}
	changed := slices.Sorted(maps.Keys(l.delta))
	out := make([]string, 0, len(l.sorted)+len(changed))
	rest := l.sorted
	for _, a := range changed {
		i, there := slices.BinarySearch(rest, a)
		out = append(out, rest[:i]...)
		rest = rest[i:]
		if there {
			rest = rest[1:]
		}
		if l.delta[a] > 0 {
			out = append(out, a)
		}
	}
	l.sorted, l.delta = append(out, rest...), nil
	return l.sorted
}

// NamespaceAddresses is the subject of topics about a namespace whose pods gained or lost an address; the key's name is
// the namespace.
const NamespaceAddresses cluster.Subject = "addresses of a namespace"

// Addresses lists the addresses of each namespace's pods.
type Addresses struct {
	lists  map[listKey]*addressList
	before []netip.Addr // of the pod, as they were before it changed
}

// listKey names an addressList.
type listKey struct {
	namespace string
	is4       bool
}

func newAddresses() *Addresses { return &Addresses{lists: map[listKey]*addressList{}} }

// AddressesOf is the index of a State.
func AddressesOf(s *cluster.State) *Addresses { return of(s, newAddresses) }

// Kinds implements cluster.Index.
func (*Addresses) Kinds() []cluster.Kind { return []cluster.Kind{cluster.KindPod} }

// Before implements cluster.Index.
func (x *Addresses) Before(s *cluster.State, r cluster.Ref) { x.before = usedBy(s, r.Name) }

// After implements cluster.Index.
func (x *Addresses) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	before, after := x.before, usedBy(s, r.Name)
	x.before = nil
	if slices.Equal(before, after) {
		return nil
	}
	for _, a := range before {
		x.listOf(r.Name, a).change(a.String(), -1)
	}
	for _, a := range after {
		x.listOf(r.Name, a).change(a.String(), 1)
	}
	return topics(NamespaceAddresses, cluster.Name{Name: r.Name.Namespace})
}

// usedBy is the addresses that a pod holds and uses.
func usedBy(s *cluster.State, pod cluster.Name) []netip.Addr {
	if p := s.Pods[pod]; p == nil || !p.WantsNetwork() {
		return nil
	}
	return cluster.PodAddrs(s.PodNetworks[cluster.PodPort{Pod: pod}])
}

func (x *Addresses) listOf(pod cluster.Name, a netip.Addr) *addressList {
	k := listKey{pod.Namespace, a.Is4()}
	if x.lists[k] == nil {
		x.lists[k] = &addressList{}
	}
	return x.lists[k]
}

// List lists the addresses of one family that pods of a namespace hold and use, sorted as text. The caller must not
// change the list.
func (x *Addresses) List(namespace string, is4 bool) []string {
	k := listKey{namespace, is4}
	l := x.lists[k]
	if l == nil {
		return nil
	}
	out := l.list()
	if len(out) == 0 {
		delete(x.lists, k)
		return nil
	}
	return out
}

// Any is true when a namespace's pods have addresses.
func (x *Addresses) Any(namespace string) bool {
	for _, is4 := range []bool{true, false} {
		if l := x.lists[listKey{namespace, is4}]; l != nil && len(l.list()) > 0 {
			return true
		}
	}
	return false
}
