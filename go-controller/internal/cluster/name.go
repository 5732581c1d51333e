package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Name is a namespaced name; Namespace is empty for cluster-scoped objects.
type Name struct{ Namespace, Name string }

// String is "namespace/name", or "name".
func (n Name) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

// ParseName is the inverse of Name.String.
func ParseName(s string) Name {
	if ns, name, ok := strings.Cut(s, "/"); ok {
		return Name{ns, name}
	}
	return Name{Name: s}
}

// CompareNames orders names by namespace, then name.
func CompareNames(a, b Name) int {
	if by := cmp.Compare(a.Namespace, b.Namespace); by != 0 {
		return by // most often: cmp.Or would compare the names, too
	}
	return cmp.Compare(a.Name, b.Name)
}

// NameSet is names, each once.
type NameSet map[Name]struct{}

// Put adds a name, or removes it unless in.
func (m NameSet) Put(n Name, in bool) {
	if in {
		m[n] = struct{}{}
	} else {
		delete(m, n)
	}
}

// Sorted lists the names in order.
func (m NameSet) Sorted() []Name { return slices.SortedFunc(maps.Keys(m), CompareNames) }

// List lists the names in no order.
func (m NameSet) List() []Name { return slices.Collect(maps.Keys(m)) }

// NameSets is a set of names for each key. It keeps no key without names.
type NameSets[K comparable] map[K]NameSet

// Put adds a name to the set of k, or removes it unless in.
func (m NameSets[K]) Put(k K, n Name, in bool) {
	if in && m[k] == nil {
		m[k] = NameSet{}
	}
	m[k].Put(n, in)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}
