package local

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/reflector"
)

// table keeps of each object of one kind a value. It is the Sink of the kind's watch.
type table[T any] struct {
	decode  func(runtime.Object) (value T, keep bool)
	equal   func(a, b T) bool
	changed func([]change[T]) // called after changes; not for objects whose values stayed equal
	onList  func()            // called after the first list

	mu      sync.Mutex
	byName  map[cluster.Name]T
	version uint64 // differs after each change
	listed  bool
}

// change is the value of an object before and after; the zero value stands for none.
type change[T any] struct {
	name     cluster.Name
	was, now T
}

func newTable[T any](
	decode func(runtime.Object) (T, bool), equal func(a, b T) bool, changed func([]change[T]), listed func(),
) *table[T] {
	return &table[T]{
		decode: decode, equal: equal, changed: changed, onList: listed, byName: map[cluster.Name]T{}, version: 1,
	}
}

// Known implements reflector.Sink.
func (t *table[T]) Known() iter.Seq[cluster.Name] { return maps.Keys(t.byName) }

// decoded is the value of an object.
type decoded[T any] struct {
	value T
	keep  bool
}

// Decode implements reflector.Sink.
func (t *table[T]) Decode(obj kinds.Object) (any, error) {
	value, keep := t.decode(obj)
	return decoded[T]{value, keep}, nil
}

// Put implements reflector.Sink.
func (t *table[T]) Put(came []reflector.Item, gone []cluster.Name, listed bool) error {
	var changes []change[T]
	for _, it := range came {
		now, ok := it.Value.(decoded[T])
		if !ok {
			return fmt.Errorf("the watch delivers a %T, want it decoded", it.Value)
		}
		if c, changed := t.set(it.Name, now.value, now.keep); changed {
			changes = append(changes, c)
		}
	}
	for _, name := range gone {
		var none T
		if c, changed := t.set(name, none, false); changed {
			changes = append(changes, c)
		}
	}
	if len(changes) > 0 {
		t.changed(changes)
	}
	if listed && !t.isListed() { // after changed, so that what follows from a first list is known with it
		t.mu.Lock()
		t.listed = true
		t.mu.Unlock()
		t.onList()
	}
	return nil
}

// set keeps a value, or with keep false removes it; changed tells whether that made a difference.
func (t *table[T]) set(name cluster.Name, now T, keep bool) (c change[T], changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, had := t.byName[name]
	switch {
	case !keep && !had, keep && had && t.equal(was, now):
		return c, false
	case keep:
		t.byName[name] = now
	default:
		delete(t.byName, name)
	}
	t.version++
	return change[T]{name, was, now}, true
}

// all are the values, in no order, and the table's version.
func (t *table[T]) all() ([]T, uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.byName)), t.version
}

// get is the value of an object; ok is false when there is none.
func (t *table[T]) get(name cluster.Name) (now T, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, ok = t.byName[name]
	return now, ok
}

// isListed tells whether the first list has arrived.
func (t *table[T]) isListed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.listed
}
