package agent

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// How often the agent probes a gateway node's daemons, how long each may take to
// answer, and how long a part may be broken before the gateway is out of service. A
// daemon that restarts is back within that time, so that connections do not move to
// another gateway and back.
const (
	probeInterval = time.Second
	probeTimeout  = 2 * time.Second
	outageGrace   = 5 * time.Second
)

// afterBoot is how long after the start of its machine nobody relies on a gateway: what its Node says is from before.
const afterBoot = time.Minute

// machineRuns is for how long this machine has been running (sysinfo(2)).
func machineRuns() time.Duration {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return time.Duration(s.Uptime) * time.Second
}

// part is a part of a gateway that can fail.
type part string

const (
	partBridge     part = "external bridge"
	partPatch      part = "patch port"
	partVSwitchd   part = "ovs-vswitchd"
	partController part = "ovn-controller"
)

// outage knows which parts of the gateway are broken, and since when.
type outage struct {
	mu     sync.Mutex
	broken map[part]fault
	worked map[part]bool // those that were seen to work
	relied bool          // the cluster has relied on the gateway since this process runs
}

type fault struct {
	why   string
	since time.Time // the zero time for a part that nobody relies on: it was never seen to work
}

func newOutage() *outage { return &outage{broken: map[part]fault{}, worked: map[part]bool{}} }

// note records what is wrong with a part now, "" for nothing.
func (o *outage) note(p part, why string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if why == "" {
		delete(o.broken, p)
		o.worked[p] = true
		return
	}
	was, known := o.broken[p]
	if !known && (o.worked[p] || o.relied) {
		was.since = now
	}
	o.broken[p] = fault{why, was.since}
}

// inService is for a gateway that is in service as its Node says: the cluster relies on all of its parts, also on those
// that this process has not seen at work. They count as broken from now on, if they are.
func (o *outage) inService(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p, f := range o.broken {
		if f.since.IsZero() {
			o.broken[p] = fault{f.why, now}
		}
	}
	o.relied = true
}

// forget is for a node that is no gateway any more. Old faults must not count when it
// becomes one again.
func (o *outage) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.broken)
	o.relied = false
}

// seen tells whether a part has ever worked.
func (o *outage) seen(p part) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.worked[p]
}

// why is the reason why the gateway is out of service, "" when it is in service.
func (o *outage) why(now time.Time) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range slices.Sorted(maps.Keys(o.broken)) {
		if f := o.broken[p]; now.Sub(f.since) >= outageGrace {
			return f.why
		}
	}
	return ""
}

// watchDaemons probes the daemons of a gateway node. It starts a pass when the gateway
// goes out of service or comes back, so that the Node's annotation says so.
func (a *Agent) watchDaemons(ctx context.Context) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !a.isGateway.Load() {
			continue
		}
		a.probe(ctx)
		why := a.outage.why(time.Now())
		if why != last {
			a.kick()
		}
		last = why
	}
}

// probe asks each daemon once. ovs-vswitchd runs beside its database. An ovn-controller
// that was never found in its run directory may run elsewhere.
func (a *Agent) probe(ctx context.Context) {
	ovsDir, local := a.config.OVSRunDir()
	for p, dir := range map[part]string{partVSwitchd: ovsDir, partController: a.config.OVNRunDir} {
		if p == partVSwitchd && !local {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, probeTimeout)
		_, err := ovs.Appctl(asking, dir, string(p), "version")
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			a.outage.note(p, "", time.Now())
		case p == partController && errors.Is(err, fs.ErrNotExist) && !a.outage.seen(p):
		default:
			a.outage.note(p, string(p)+" does not answer", time.Now())
		}
	}
}
