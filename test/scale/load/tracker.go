package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Name names a pod, or what else a Tracker is to remember.
type Name struct{ Namespace, Name string }

// Tracker remembers when something was first seen of each pod.
type Tracker struct {
	what string

	mu      sync.Mutex
	at      map[Name]time.Time
	counts  map[string]int
	last    map[string]time.Time
	failure error
	changed chan struct{} // closed and replaced with every change
}

// NewTracker is a Tracker; what names it in errors.
func NewTracker(what string) *Tracker {
	return &Tracker{what: what, at: map[Name]time.Time{}, counts: map[string]int{}, last: map[string]time.Time{}, changed: make(chan struct{})}
}

// See records that pods were seen now, unless they had been before.
func (t *Tracker) See(names ...Name) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range names {
		if _, known := t.at[n]; known {
			continue
		}
		t.at[n] = now
		t.counts[n.Namespace]++
		t.last[n.Namespace] = now
	}
	t.wake()
}

// Fail makes everyone who waits give up.
func (t *Tracker) Fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failure = err
	t.wake()
}

func (t *Tracker) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// At is when a pod was first seen; ok is false when it was not.
func (t *Tracker) At(n Name) (at time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok = t.at[n]
	return at, ok
}

// Count is how many pods of a namespace were seen.
func (t *Tracker) Count(namespace string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[namespace]
}

// Wait waits until n pods of a namespace were seen, and tells when the last of
// them was.
func (t *Tracker) Wait(ctx context.Context, namespace string, n int) (last time.Time, err error) {
	what := func() string {
		return fmt.Sprintf("of %d pods in namespace %s: %d so far", n, namespace, t.Count(namespace))
	}
	err = t.wait(ctx, what, func() bool {
		last = t.last[namespace]
		return t.counts[namespace] >= n
	})
	return last, err
}

// WaitName waits until one was seen, and tells when it was.
func (t *Tracker) WaitName(ctx context.Context, n Name) (at time.Time, err error) {
	err = t.wait(ctx, func() string { return fmt.Sprintf("of %s %s", n.Namespace, n.Name) }, func() (ok bool) {
		at, ok = t.at[n]
		return ok
	})
	return at, err
}

// wait waits until seen, which is called with the lock held, returns true; what
// says for an error what it was.
func (t *Tracker) wait(ctx context.Context, what func() string, seen func() bool) error {
	for {
		t.mu.Lock()
		ok, failure, changed := seen(), t.failure, t.changed
		t.mu.Unlock()
		switch {
		case failure != nil:
			return failure
		case ok:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s %s: %w", t.what, what(), context.Cause(ctx))
		}
	}
}
