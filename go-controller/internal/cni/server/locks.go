package server

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// locks has a lock for each key. The zero value is ready to use.
type locks struct {
	mu   sync.Mutex
	held map[string]*held
}

type held struct {
	token chan struct{} // full while the lock is held
	users int           // holders and waiters
}

// lock waits for the key's lock. unlock must be called once. If ctx ends first, the error is its cause.
func (l *locks) lock(ctx context.Context, key string) (unlock func(), err error) {
	h, leave := l.enter(key)
	select {
	case h.token <- struct{}{}:
		return func() { <-h.token; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// tryLock takes the key's lock if it is free.
func (l *locks) tryLock(key string) (unlock func(), ok bool) {
	h, leave := l.enter(key)
	select {
	case h.token <- struct{}{}:
		return func() { <-h.token; leave() }, true
	default:
		leave()
		return nil, false
	}
}

// lockAll is lock for several keys, in their order. A key that repeats the one before it is locked once.
func (l *locks) lockAll(ctx context.Context, keys ...string) (unlock func(), err error) {
	return all(keys, func(key string) (func(), error) { return l.lock(ctx, key) })
}

// tryLockAll is tryLock for several keys.
func (l *locks) tryLockAll(keys ...string) (unlock func(), ok bool) {
	unlock, err := all(keys, func(key string) (func(), error) {
		unlock, ok := l.tryLock(key)
		if !ok {
			return nil, errLocked
		}
		return unlock, nil
	})
	return unlock, err == nil
}

var errLocked = errors.New("it is locked")

// all locks all keys, or none if one fails.
func all(keys []string, lock func(key string) (func(), error)) (unlock func(), err error) {
	var held []func()
	unlock = func() {
		for _, u := range slices.Backward(held) {
			u()
		}
	}
	for _, key := range slices.Compact(slices.Clone(keys)) {
		u, err := lock(key)
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, u)
	}
	return unlock, nil
}

// enter adds a user of the key's lock. leave must be called once.
func (l *locks) enter(key string) (h *held, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]*held{}
	}
	h = l.held[key]
	if h == nil {
		h = &held{token: make(chan struct{}, 1)}
		l.held[key] = h
	}
	h.users++
	return h, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(l.held, key)
		}
	}
}
