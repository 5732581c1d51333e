package kubeio

import "sync"

// localEvents lets many wait for the next change of one key each.
type localEvents struct {
	mu   *sync.Mutex
	wake map[string]chan struct{} // closed and removed at the key's next change
}

func newLocalEvents() localEvents {
	return localEvents{&sync.Mutex{}, map[string]chan struct{}{}}
}

// next is closed at the next change of key.
func (e localEvents) next(key string) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.wake[key]
	if c == nil {
		c = make(chan struct{})
		e.wake[key] = c
	}
	return c
}

func (e localEvents) fire(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.wake[key]; c != nil {
		close(c)
		delete(e.wake, key)
	}
}
