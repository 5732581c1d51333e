package index

import (
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// claims records which objects claim a key, such as an address, in their order.
// The first of them holds the key.
type claims[K comparable, T any] struct {
	of    map[K][]*T
	order func(k K, a, b *T) int // never 0 for two that claim at the same time
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

// replace replaces the claims of old, an object as it was, by those of now, the
// object as it is; either may be nil. It lists the other objects that gained or
// lost a key by that, some perhaps more than once.
func (c claims[K, T]) replace(old, now *T, dropped, added []K) []*T {
	type change struct{ drop, add bool }
	keys := map[K]change{}
	for _, k := range dropped {
		keys[k] = change{drop: true}
	}
	for _, k := range added {
		keys[k] = change{keys[k].drop, true}
	}
	var rivals []*T
	for k, change := range keys {
		was := c.holder(k)
		if change.drop {
			c.drop(k, old)
		}
		if change.add {
			c.add(k, now)
		}
		is := c.holder(k)
		for _, h := range []*T{was, is} {
			if was != is && h != nil && h != old && h != now {
				rivals = append(rivals, h)
			}
		}
	}
	return rivals
}

func (c claims[K, T]) add(k K, by *T) {
	l := c.of[k]
	i, _ := slices.BinarySearchFunc(l, by, func(a, b *T) int { return c.order(k, a, b) })
	c.of[k] = slices.Insert(l, i, by)
}

func (c claims[K, T]) drop(k K, by *T) {
	l := slices.DeleteFunc(c.of[k], func(o *T) bool { return o == by })
	if len(l) == 0 {
		delete(c.of, k)
	} else {
		c.of[k] = l
	}
}

// sortedNames is the names of objects, each once.
func sortedNames[T cluster.Object](objects []T) []cluster.Name {
	var out []cluster.Name
	for _, o := range objects {
		out = append(out, o.Ref().Name)
	}
	slices.SortFunc(out, cluster.CompareNames)
	return slices.Compact(out)
}
