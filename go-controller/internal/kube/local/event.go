package local

import (
	"sync"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// events lets many wait for the next change of one object each.
type events struct {
	wake sync.Map // by cluster.Name: a chan struct{}, closed and removed at the object's next change
}

// next is closed at the next change of the object.
func (e *events) next(n cluster.Name) <-chan struct{} {
	c, _ := e.wake.LoadOrStore(n, make(chan struct{}))
	return c.(chan struct{})
}

func (e *events) fire(n cluster.Name) {
	if c, ok := e.wake.LoadAndDelete(n); ok {
		close(c.(chan struct{}))
	}
}
