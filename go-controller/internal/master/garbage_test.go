package master

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestPercent(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 1000, 1 << 20: 1000, 8 << 20: 300, 24 << 20: 100, 40 << 20: 60, 48 << 20: 50, 49 << 20: 50, 1 << 40: 50,
	} {
		if got := percent(live, leastPercent); got != want {
			t.Errorf("%d live bytes: GOGC %d, want %d", live, got, want)
		}
	}
	if got := percent(1<<30, readingPercent); got != readingPercent {
		t.Errorf("while everything is read: GOGC %d, want %d", got, readingPercent)
	}
}

// GOGC follows the live heap from collection to collection. Afterwards it is what it was. The collector does not touch
// it where the operator has set it.
func TestKeepHeadroom(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	c := keepHeadroom()
	defer c.stop()
	live := make([]byte, 64<<20)
	after := func(what string, ok func(gogc uint64) bool) {
		t.Helper()
		testkit.Eventually(t, what, func() string {
			runtime.GC()
			if now := figure("/gc/gogc:percent"); !ok(now) {
				return fmt.Sprintf("GOGC is %d", now)
			}
			return ""
		})
	}
	after("as much garbage as live objects", func(now uint64) bool { return now == readingPercent })
	c.read()
	after("half as much", func(now uint64) bool { return now == leastPercent })
	runtime.KeepAlive(live) // not beyond
	after("more, beside few live objects", func(now uint64) bool { return now > 200 })
	c.stop()
	runtime.GC()
	if now := figure("/gc/gogc:percent"); now != 100 {
		t.Errorf("afterwards GOGC is %d, want 100", now)
	}
	debug.SetGCPercent(70)
	keepHeadroom().stop()
	if now := figure("/gc/gogc:percent"); now != 70 {
		t.Errorf("GOGC is %d, want the 70 that somebody set", now)
	}
}

// The memory of a burst's garbage is returned when the burst is over, and not before.
func TestReleaseAtRest(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	c := keepHeadroom()
	defer c.stop()
	debug.SetGCPercent(-1) // no collection but that of release
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.releaseAtRest(ctx, 50*time.Millisecond) }()
	defer func() { cancel(); <-done }()
	cycles, before := figure("/gc/cycles/forced:gc-cycles"), figure(allocated)
	garbage := make([]byte, 2*headroom)
	testkit.Eventually(t, "a collection", func() string {
		if figure("/gc/cycles/forced:gc-cycles") == cycles {
			return "none yet"
		}
		return ""
	})
	if grown := figure(allocated) - before; grown < 2*headroom {
		t.Errorf("it came after %d bytes", grown)
	}
	runtime.KeepAlive(garbage)
}
