package index

import (
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// claims records which objects claim a key, such as an address. The first in order holds the key.
type claims[K comparable, T any] struct {
	of    map[K][]*T
	order func(k K, a, b *T) int // never 0 for two objects that claim k at the same time
}

func newClaims[K comparable, T any](order func(k K, a, b *T) int) claims[K, T] {
	return claims[K, T]{of: map[K][]*T{}, order: order}
}

// holder is the object that has k, nil when none claims it.
func (c claims[K, T]) holder(k K) *T {
	if l := c.of[k]; len(l) > 0 {
		return l[0]
	}
	return nil
}

// replace replaces the claims of an object as it was by those of the object as it is; either may be nil. It lists the
// other objects that claim a key which has another holder now, some perhaps more than once. Those that neither gained
// nor lost the key are among them: what users hear of their claim names the holder.
func (c claims[K, T]) replace(old, now *T, dropped, added []K) []*T {
	before := map[K]*T{}
	for _, k := range slices.Concat(dropped, added) {
		before[k] = c.holder(k)
	}
	for _, k := range dropped {
		c.drop(k, old)
	}
	for _, k := range added {
		c.add(k, now)
	}
	var others []*T
	for k, was := range before {
		is := c.holder(k)
		if was == is || was == old && is == now && old != nil {
			continue
		}
		others = append(others, c.of[k]...)
		if was != nil {
			others = append(others, was)
		}
	}
	return slices.DeleteFunc(others, func(o *T) bool { return o == old || o == now })
}

// add adds a claim. An object may name a key twice and claims it once.
func (c claims[K, T]) add(k K, by *T) {
	l := c.of[k]
	i, _ := slices.BinarySearchFunc(l, by, func(a, b *T) int { return c.order(k, a, b) })
	if i == len(l) || l[i] != by {
		c.of[k] = slices.Insert(l, i, by)
	}
}

func (c claims[K, T]) drop(k K, by *T) {
	l := slices.DeleteFunc(c.of[k], func(o *T) bool { return o == by })
	if len(l) == 0 {
		delete(c.of, k)
	} else {
		c.of[k] = l
	}
}

// sortedNames lists the names of objects, sorted, each once.
func sortedNames[T cluster.Object](objects []T) []cluster.Name {
	var out []cluster.Name
	for _, o := range objects {
		out = append(out, o.Ref().Name)
	}
	slices.SortFunc(out, cluster.CompareNames)
	return slices.Compact(out)
}
