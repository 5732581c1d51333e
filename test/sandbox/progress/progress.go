package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Log writes steps to a writer. Steps may run at the same time.
type Log struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
}

// New begins a log; its total time counts from here.
func New(w io.Writer) *Log { return &Log{w: w, start: time.Now()} }

// Step is one step under way.
type Step struct {
	log   *Log
	name  string
	start time.Time
	stop  chan struct{}

	mu     sync.Mutex
	detail string
}

// Every is how often a step that goes on says so.
const Every = 5 * time.Second

// Begin starts a step; the caller must call End.
func (l *Log) Begin(name string) *Step {
	s := &Step{log: l, name: name, start: time.Now(), stop: make(chan struct{})}
	go func() {
		tick := time.NewTicker(Every)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
				s.mu.Lock()
				detail := s.detail
				s.mu.Unlock()
				l.printf("  ... %s: %d s so far%s", name, int(time.Since(s.start).Seconds()), detail)
			}
		}
	}()
	return s
}

// Detail says what the step is at now: "unpacking libc6", "2 of 3 nodes".
func (s *Step) Detail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detail = ", " + fmt.Sprintf(format, args...)
}

// End prints how long the step took, and returns err.
func (s *Step) End(err error) error {
	close(s.stop)
	took := time.Since(s.start)
	if err != nil {
		s.log.printf("%6.1f s  %s: not done", took.Seconds(), s.name)
		return err
	}
	s.log.printf("%6.1f s  %s", took.Seconds(), s.name)
	return nil
}

// Total prints a last line with the time since New.
func (l *Log) Total(what string) {
	l.printf("%6.1f s  in all: %s", time.Since(l.start).Seconds(), what)
}

func (l *Log) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format+"\n", args...)
}
