package server

import (
	"context"
	"errors"
	"testing"
)

// Several keys are locked together, or none is.
func TestLockAll(t *testing.T) {
	var l locks
	unlock, err := l.lockAll(t.Context(), "a", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, free := l.tryLockAll("c", "b"); free {
		t.Error("a key that is held is locked again")
	}
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the runtime is gone")
	cancel(why)
	if _, err := l.lockAll(ended, "d", "a"); !errors.Is(err, why) {
		t.Errorf("waiting for a key that is held: %v, want %v", err, why)
	}
	for _, key := range []string{"c", "d"} { // locked before the key that was not free
		again, free := l.tryLock(key)
		if !free {
			t.Fatalf("%s is still locked", key)
		}
		again()
	}
	unlock()
	again, free := l.tryLockAll("a", "b")
	if !free {
		t.Fatal("the keys are still locked")
	}
	again()
	if len(l.held) != 0 {
		t.Errorf("%d keys are remembered, want none", len(l.held))
	}
}
