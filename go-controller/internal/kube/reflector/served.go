package reflector

import (
	"context"
	"sync"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// lookPause is how often an API server is asked whether the list of its kinds has changed, while some kind is missing.
const lookPause = 5 * time.Second

// Served tells the watches of optional kinds when the API server serves other kinds than before. The zero value tells
// nothing until Run.
type Served struct {
	mu      sync.Mutex
	waiting map[chan struct{}]bool
}

// wait returns when the API server serves other kinds, after a time, or when ctx ends.
func (s *Served) wait(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	changed := make(chan struct{})
	s.mu.Lock()
	if s.waiting == nil {
		s.waiting = map[chan struct{}]bool{}
	}
	s.waiting[changed] = true
	s.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, changed)
}

// Run asks the API server for changes, for as long as somebody waits, until ctx ends.
func (s *Served) Run(ctx context.Context, d *client.Discovery) {
	if d != nil {
		s.run(ctx, lookPause, d.Tag)
	}
}

func (s *Served) run(ctx context.Context, pause time.Duration, ask func(context.Context, string) (string, error)) {
	known := ""
	look := time.NewTicker(pause)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if !s.anybody() {
			continue
		}
		tag, err := ask(ctx, known)
		if err != nil {
			continue // those who wait look for themselves in the end
		}
		// After the first answer, too: a kind may have come between a refusal and the question.
		if tag != known {
			s.tell()
		}
		known = tag
	}
}

func (s *Served) anybody() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > 0
}

func (s *Served) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for changed := range s.waiting {
		close(changed)
	}
	s.waiting = nil
}
