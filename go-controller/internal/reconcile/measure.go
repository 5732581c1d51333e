package reconcile

import (
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// measureEvery is how often the use of addresses is measured at most: it costs a step for each node.
const measureEvery = time.Second

// measured is what the last measurement of addresses found.
type measured struct {
	at    time.Time
	old   bool            // something has changed since
	nodes map[string]bool // that have gauges
}

// untilMeasured is how long until the next measurement.
func (l *Loop) untilMeasured() time.Duration {
	if !l.synced || !l.measured.old {
		return heartbeat
	}
	return max(measureEvery-time.Since(l.measured.at), time.Millisecond)
}

// measure sets the gauges of addresses and subnets.
func (l *Loop) measure(now time.Time) {
	if !l.synced || !l.measured.old || now.Sub(l.measured.at) < measureEvery {
		return
	}
	use := l.Core.Ledger().Use()
	nodes := make(map[string]bool, len(use.Nodes))
	for _, n := range use.Nodes {
		nodes[n.Node] = true
		setShare(n.Share, l.Metrics.PodAddresses, n.Node, family(n.Subnet))
	}
	for n := range l.measured.nodes {
		if !nodes[n] {
			l.Metrics.PodAddresses.DeletePartialMatch(map[string]string{"node": n})
		}
	}
	for _, r := range use.Ranges {
		setShare(r.Share, l.Metrics.Subnets, r.Subnet.String(), family(r.Subnet))
	}
	setShare(use.Join, l.Metrics.Joins)
	l.measured = measured{now, false, nodes}
}

// setShare sets the two gauges of a share, whose last label is the state.
func setShare(s allocate.Share, g *prometheus.GaugeVec, labels ...string) {
	g.WithLabelValues(append(labels, "used")...).Set(s.Used)
	g.WithLabelValues(append(labels, "available")...).Set(s.Available)
}

// family is the address family of a subnet, as a label.
func family(s netip.Prefix) string {
	if s.Addr().Is4() {
		return "ipv4"
	}
	return "ipv6"
}

// observeLag observes how long the oldest event that a transaction carries took until the database acknowledged it. If
// the transaction failed, the events' times are kept for the next attempt.
func (l *Loop) observeLag(r result) {
	var oldest time.Time
	for _, p := range r.plans {
		at, ok := r.since[p.Owner]
		switch {
		case !ok:
		case r.err != nil:
			l.dirty.returnSince(p.Owner, r.since)
		case oldest.IsZero() || at.Before(oldest):
			oldest = at
		}
	}
	if !oldest.IsZero() {
		l.Metrics.Lag.Observe(time.Since(oldest).Seconds())
	}
}

// received records when the oldest event came that concerns owners, unless an older one does.
func (d *dirtySet) received(owners []nb.Owner, at time.Time) {
	for _, o := range owners {
		if _, older := d.since[o]; !older {
			d.since[o] = at
		}
	}
}

// moveSince moves the time of an owner to a batch.
func (d *dirtySet) moveSince(o nb.Owner, to map[nb.Owner]time.Time) {
	if at, ok := d.since[o]; ok {
		to[o] = at
		delete(d.since, o)
	}
}

// returnSince takes the time of an owner back from a batch that failed.
func (d *dirtySet) returnSince(o nb.Owner, from map[nb.Owner]time.Time) {
	if at, ok := from[o]; ok {
		d.since[o] = at
	}
}
