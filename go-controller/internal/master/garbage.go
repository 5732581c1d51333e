package master

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// headroom is how many bytes of garbage may always gather before a collection. By default Go collects when there is as
// much garbage as live objects. In a small cluster that is little: a burst of pods then causes a collection every few
// dozen pods. In a large one it is more than a burst is worth.
const headroom = 24 << 20

// leastPercent is the value of GOGC where there are many live objects. With more than that the master would have much
// more memory at its start than later: much garbage comes while everything is compared for the first time. Before that,
// while everything is read, it is readingPercent: there are fewer live objects, and so there is room for more garbage.
const (
	leastPercent   = 50
	readingPercent = 100
)

// mostPercent bounds the value of GOGC just after the start, when almost nothing is live.
const mostPercent = 1000

// collector sets GOGC after each collection so that headroom bytes may gather.
type collector struct {
	mu      sync.Mutex
	least   int // GOGC is never below it
	stopped bool
}

// byDefault is the value of GOGC that nobody has set.
const byDefault = 100

// keepHeadroom starts a collector. It does nothing where the environment sets GOGC: the operator has decided.
func keepHeadroom() *collector {
	c := &collector{least: readingPercent, stopped: figure("/gc/gogc:percent") != byDefault}
	c.collected()
	return c
}

// read tells the collector that everything has been read and granted: comparing comes next.
func (c *collector) read() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.least = leastPercent
	c.set()
}

// stop has GOGC be what it was.
func (c *collector) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.stopped = true
		debug.SetGCPercent(byDefault)
	}
}

// After a burst the memory of its garbage stays with the process until the next collection, which may be hours away. So
// it is returned when at most restBytes were allocated in restTime.
const (
	restBytes = 4 << 20
	restTime  = 10 * time.Second
)

// releaseAtRest returns the memory of garbage after each burst that leaves more than headroom of it, until ctx ends.
func (c *collector) releaseAtRest(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var before, released uint64 // bytes that had been allocated
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := figure(allocated)
		if now-before <= restBytes && now-released > headroom {
			c.release()
			released = now
		}
		before = now
	}
}

// allocated is the metric of all bytes that were ever allocated.
const allocated = "/gc/heap/allocs:bytes"

// release returns the memory of what is garbage now, unless the operator has decided about collections.
func (c *collector) release() {
	c.mu.Lock()
	stopped := c.stopped
	c.mu.Unlock()
	if !stopped {
		debug.FreeOSMemory()
	}
}

// figure reads a metric of the Go runtime that is a whole number.
func figure(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// collected sets GOGC, and schedules itself for the next collection: the cleanup of an unreachable object runs then.
func (c *collector) collected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	c.set()
	runtime.AddCleanup(&struct{ _ [64]byte }{}, (*collector).collected, c)
}

// set sets GOGC by the live objects, unless the collector has stopped.
func (c *collector) set() {
	if !c.stopped {
		debug.SetGCPercent(percent(figure("/gc/heap/live:bytes"), c.least))
	}
}

// percent is the GOGC with which headroom bytes of garbage may gather beside the live bytes. It is never below least.
func percent(live uint64, least int) int {
	return max(int(min(100*headroom/max(live, 1), mostPercent)), least)
}
