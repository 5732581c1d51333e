package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/northbound-net/northbound/go-controller/internal/cni/server"
)

var errStarting = errors.New("the agent is starting")

// gate tells the CNI server whether pods can be served. It implements server.Node.
type gate struct {
	mu       sync.Mutex
	settings *server.Settings // nil until the first pass that got so far
	missing  error
	live     func() error  // what can go missing without a pass, and cut running pods off; nil until there is something
	changed  chan struct{} // closed and replaced whenever settings change
}

func newGate() *gate {
	return &gate{missing: errStarting, changed: make(chan struct{})}
}

// Missing implements server.Node.
func (g *gate) Missing() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.live != nil {
		if err := g.live(); err != nil {
			if errors.Is(g.missing, err) {
				err = g.missing // it says what else there is, too
			}
			return &server.LimitedError{Reason: err}
		}
	}
	return g.missing
}

// watch adds a condition that Missing checks each time.
func (g *gate) watch(live func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live = live
}

func (g *gate) miss(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.missing = err
}

// open admits pods once all that they share on this node exists. It stays open when a
// later pass fails: the pod's own ADD reports what is missing then.
func (g *gate) open(s server.Settings) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.settings != nil && *g.settings == s {
		return
	}
	g.settings = &s
	close(g.changed)
	g.changed = make(chan struct{})
}

// Settings implements server.Node.
func (g *gate) Settings(ctx context.Context) (server.Settings, error) {
	for {
		g.mu.Lock()
		settings, missing, changed := g.settings, g.missing, g.changed
		g.mu.Unlock()
		if settings != nil {
			return *settings, nil
		}
		select {
		case <-ctx.Done():
			return server.Settings{}, fmt.Errorf("waiting for the node to be set up: %w", missing)
		case <-changed:
		}
	}
}
