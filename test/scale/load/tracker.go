package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Name is the name of a pod or another thing that a Tracker remembers.
type Name struct{ Namespace, Name string }

// Tracker remembers when each thing was first seen.
type Tracker struct {
	what string

	mu      sync.Mutex
	at      map[Name]time.Time
	counts  map[string]int
	last    map[string]time.Time
	failure error
	changed chan struct{} // closed and replaced after every change
}

// NewTracker returns a Tracker. what names it in errors.
func NewTracker(what string) *Tracker {
	return &Tracker{what: what, at: map[Name]time.Time{}, counts: map[string]int{}, last: map[string]time.Time{},
		changed: make(chan struct{})}
}

// See records that things were seen now, unless they were seen before.
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

// Fail makes all waits fail.
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

// At returns when a thing was first seen. ok is false if it was not.
func (t *Tracker) At(n Name) (at time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok = t.at[n]
	return at, ok
}

// Count returns how many things of a namespace were seen.
func (t *Tracker) Count(namespace string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[namespace]
}

// Wait waits until n things of a namespace were seen, and returns when the last one was.
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

// WaitName waits until a thing was seen, and returns when it was.
func (t *Tracker) WaitName(ctx context.Context, n Name) (at time.Time, err error) {
	err = t.wait(ctx, func() string { return fmt.Sprintf("of %s %s", n.Namespace, n.Name) }, func() (ok bool) {
		at, ok = t.at[n]
		return ok
	})
	return at, err
}

// wait waits until seen returns true, which it calls with the lock held. what describes the wait in errors.
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
