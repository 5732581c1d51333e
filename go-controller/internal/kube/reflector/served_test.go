package reflector

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Who waits is told when the list of kinds changes, and at the first answer. Nobody is asked while nobody waits.
func TestServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex
		asked, tag, failure := 0, "one", error(nil)
		answer := func(now string, err error) {
			mu.Lock()
			defer mu.Unlock()
			tag, failure = now, err
		}
		var s Served
		go s.run(ctx, time.Second, func(context.Context, string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return tag, failure
		})
		waited := func(limit time.Duration) time.Duration {
			before := time.Now()
			s.wait(ctx, limit)
			return time.Since(before)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		mu.Lock()
		before := asked
		mu.Unlock()
		if before != 0 {
			t.Errorf("asked %d times while nobody waits", before)
		}
		if got := waited(time.Minute); got >= time.Second {
			t.Errorf("the first answer is told after %v, want before a second has passed", got)
		}
		time.AfterFunc(10*time.Second, func() { answer("", errors.New("down")) })
		time.AfterFunc(20*time.Second, func() { answer("two", nil) })
		if got := waited(time.Minute); got < 20*time.Second || got > 21*time.Second {
			t.Errorf("a change after 20 s is told after %v", got)
		}
		if got := waited(time.Minute); got != time.Minute {
			t.Errorf("without a change the wait ends after %v, want the limit", got)
		}
		time.AfterFunc(time.Second, cancel)
		if got := waited(time.Minute); got != time.Second {
			t.Errorf("the wait ends %v after its beginning, want with the context", got)
		}
	})
}
