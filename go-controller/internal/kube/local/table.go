package kubeio

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// localObjects are all objects of one kind as values, kept as their watch goes.
// What is wrong with one is told to its owner by the master, not by every node.
type localObjects[T cluster.Object] struct {
	mu      sync.Mutex
	byKey   map[string]T
	version uint64 // changes with any of them
}

func newLocalObjects[T cluster.Object]() *localObjects[T] {
	return &localObjects[T]{byKey: map[string]T{}, version: 1}
}

// all are the objects, in no order, and a number that is another one whenever
// they are.
func (s *localObjects[T]) all() ([]T, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byKey)), s.version
}

// get is the object of a key; ok is false when there is none.
func (s *localObjects[T]) get(key string) (now T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, ok = s.byKey[key]
	return now, ok
}

// set keeps an object, or with keep false removes it; it tells whether that
// changed anything.
func (s *localObjects[T]) set(key string, now T, keep bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, had := s.byKey[key]
	switch {
	case !keep && !had, keep && had && was.Equal(now):
		return false
	case keep:
		s.byKey[key] = now
	default:
		delete(s.byKey, key)
	}
	s.version++
	return true
}

// handler keeps of the watched objects those that decode keeps, and calls
// changed after each change of one.
func (s *localObjects[T]) handler(decode func(obj any) (now T, keep bool), changed func()) cache.ResourceEventHandler {
	put := func(obj any) {
		key, err := cache.MetaNamespaceKeyFunc(obj)
		if err != nil {
			return
		}
		if now, keep := decode(obj); s.set(key, now, keep) {
			changed()
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, after any) { put(after) },
		DeleteFunc: func(obj any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			if err != nil {
				return
			}
			var none T
			if s.set(key, none, false) {
				changed()
			}
		},
	}
}
