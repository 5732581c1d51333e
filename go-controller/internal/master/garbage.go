package master

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// headroom is how much garbage, in bytes, may always gather before it is
// collected. By default Go collects when there is as much as live objects, which
// in a small cluster is little: a burst of pods then collects every few dozen
// pods. Where there are more live objects than this, the default holds.
const headroom = 48 << 20

// mostPercent bounds the value of GOGC, for the first moments.
const mostPercent = 1000

// collector sets GOGC after each collection so that headroom is kept.
type collector struct {
	mu      sync.Mutex
	stopped bool
}

// keepHeadroom starts that and returns what ends it. It does nothing where the
// environment sets GOGC: then somebody has decided.
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

// figure reads one of the metrics of the runtime that are whole numbers.
func figure(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// collected sets GOGC, and has itself called after the next collection: what
// nothing refers to lives until then.
func (c *collector) collected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	debug.SetGCPercent(percent(figure("/gc/heap/live:bytes")))
	runtime.AddCleanup(&struct{ _ [64]byte }{}, (*collector).collected, c)
}

// percent is the GOGC that leaves headroom beside live bytes.
func percent(live uint64) int {
	return int(min(max(100*headroom/max(live, 1), 100), mostPercent))
}
