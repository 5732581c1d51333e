package master

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// headroom is how many bytes of garbage may always gather before a collection. By default Go collects when there is as
// much garbage as live objects. In a small cluster that is little: a burst of pods then causes a collection every few
// dozen pods. In a large one it is more than a burst is worth.
const headroom = 24 << 20

// leastPercent is the value of GOGC where there are many live objects.
const leastPercent = 50

// mostPercent bounds the value of GOGC just after the start, when almost nothing is live.
const mostPercent = 1000

// collector sets GOGC after each collection so that headroom bytes may gather.
type collector struct {
	mu      sync.Mutex
	stopped bool
}

// keepHeadroom starts a collector and returns what stops it. It does nothing where the environment sets GOGC: the
// operator has decided.
func keepHeadroom() (stop func()) {
	const byDefault = 100
	if figure("/gc/gogc:percent") != byDefault {
		return func() {}
	}
	c := &collector{}
	c.collected()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stopped = true
		debug.SetGCPercent(byDefault)
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
	debug.SetGCPercent(percent(figure("/gc/heap/live:bytes")))
	runtime.AddCleanup(&struct{ _ [64]byte }{}, (*collector).collected, c)
}

// percent is the GOGC with which headroom bytes of garbage may gather beside the live bytes.
func percent(live uint64) int {
	return int(min(max(100*headroom/max(live, 1), leastPercent), mostPercent))
}
