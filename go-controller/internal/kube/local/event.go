package local

import (
	"sync"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// events lets many wait for the next change of one object each.
type events struct {
	mu   *sync.Mutex
	wake map[cluster.Name]chan struct{} // closed and removed at the object's next change
}

func newEvents() events { return events{&sync.Mutex{}, map[cluster.Name]chan struct{}{}} }

// next is closed at the next change of the object.
func (e events) next(n cluster.Name) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.wake[n]
	if c == nil {
		c = make(chan struct{})
		e.wake[n] = c
	}
	return c
}

func (e events) fire(n cluster.Name) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.wake[n]; c != nil {
		close(c)
		delete(e.wake, n)
	}
}
