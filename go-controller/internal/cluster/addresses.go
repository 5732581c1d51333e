package cluster

import (
	"maps"
	"net/netip"
	"slices"
)

// addressList is the addresses of one family in one namespace, as text, in
// order. Changes gather and are merged in when somebody asks, so that many of
// them cost what one does.
type addressList struct {
	sorted []string // never changed in place: rows hold it
	delta  map[string]int
}

// change adds (by = 1) or takes away (by = -1) an address.
func (l *addressList) change(a string, by int) {
	if l.delta == nil {
		l.delta = map[string]int{}
	}
	l.delta[a] += by
	if l.delta[a] == 0 {
		delete(l.delta, a)
	}
}

// list is the addresses; the caller must not change them.
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

// listKey names an addressList.
type listKey struct {
	namespace string
	is4       bool
}

// Addresses lists the addresses of one family that pods of a namespace hold and
// use, in the order of their text. The caller must not change the list.
func (s *State) Addresses(namespace string, is4 bool) []string {
	l := s.addresses[listKey{namespace, is4}]
	if l == nil {
		return nil
	}
	out := l.list()
	if len(out) == 0 {
		delete(s.addresses, listKey{namespace, is4})
		return nil
	}
	return out
}

// used is the addresses that a pod holds and uses.
func (s *State) used(n Name) []netip.Addr {
	p, net := s.Pods[n], s.PodNetworks[n]
	if p == nil || !p.WantsNetwork() {
		return nil
	}
	return PodAddrs(net)
}

// relist brings the lists up to date with a pod that used the addresses was.
func (s *State) relist(n Name, was []netip.Addr) {
	now := s.used(n)
	if slices.Equal(was, now) {
		return
	}
	for _, a := range was {
		s.listOf(n, a).change(a.String(), -1)
	}
	for _, a := range now {
		s.listOf(n, a).change(a.String(), 1)
	}
}

func (s *State) listOf(n Name, a netip.Addr) *addressList {
	k := listKey{n.Namespace, a.Is4()}
	if s.addresses[k] == nil {
		s.addresses[k] = &addressList{}
	}
	return s.addresses[k]
}
