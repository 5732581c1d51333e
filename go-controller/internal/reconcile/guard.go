package reconcile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// guard holds back owners that want nothing any more, when a full pass would remove many rows. An API server that lists
// only part of a cluster must not cost that cluster its network.
type guard struct {
	held     map[nb.Owner]bool
	review   bool         // the owners or the approval may have changed
	there    cluster.Held // when the full pass began
	reported string       // the digest in the last Event
}

// holdBack decides which owners the full pass leaves alone.
func (l *Loop) holdBack(owners []nb.Owner) {
	reported := l.guard.reported
	l.release()
	if l.Leader == nil {
		return
	}
	r := l.Core.Removal(l.session.Glance(), owners)
	if !r.Large() || l.session.Approved() == r.Digest() {
		return
	}
	l.guard.reported = reported // after a reconnection the same Event would say nothing new
	l.guard.held = map[nb.Owner]bool{}
	for _, o := range r.Owners {
		l.guard.held[o] = true
	}
	l.guard.there = core.There(l.session.View(), owners)
	l.Core.Hold(l.guard.there, l.guard.held)
	l.hold(r)
	l.Log.Error("the removal of many rows waits for ovnkube approve", "rows", r.Rows, "of", r.Of, "owners",
		len(r.Owners), "digest", r.Digest())
}

// release holds nothing back any more. changed is that of core.Release.
func (l *Loop) release() (changed bool) {
	l.guard = guard{}
	l.Core.Ledger().Reserve(nil)
	l.heldBack.Store(nil)
	l.Metrics.HeldBack.Set(0)
	return l.Core.Release()
}

// ReasonHeldBack is the reason of the Event about what is held back. The Event is on the namespace whose UID stands for
// the cluster.
const ReasonHeldBack = "RemovalHeldBack"

// hold makes known what is held back. Nobody is granted what its rows have: a pod that the API server does not list may
// still run, with the address in its row.
func (l *Loop) hold(r core.Removal) {
	if l.Core.Ledger().Reserve(l.unclaimed()) {
		l.compareKept()
	}
	err := fmt.Errorf("the removal of %d of %d rows waits: ovnkube approve --digest %s removes them", r.Rows, r.Of,
		r.Digest())
	if digest := r.Digest(); l.guard.reported != digest {
		l.guard.reported = digest
		ns := cluster.Ref{Kind: cluster.KindNamespace, Name: cluster.Name{Name: cluster.SystemNamespace}}
		l.reportAll([]cluster.Problem{{Ref: ns, UID: l.Core.State.UID(), Reason: ReasonHeldBack, Message: err.Error()}})
	}
	l.heldBack.Store(&err)
	l.Metrics.HeldBack.Set(float64(r.Rows))
}

// reviewHeld removes what is held back once that is approved, or is not much any more.
func (l *Loop) reviewHeld() {
	if len(l.guard.held) == 0 || !l.guard.review {
		return
	}
	l.guard.review = false
	r := l.Core.Removal(l.session.Glance(), l.session.Owners())
	approved := l.session.Approved() == r.Digest()
	var changed bool
	if r.Large() && !approved {
		l.hold(r)
		changed = l.Core.Hold(l.guard.there, l.guard.held)
	} else {
		l.Log.Warn("rows that were held back are removed", "rows", r.Rows, "of", r.Of, "approved", approved)
		for o := range l.guard.held {
			l.dirty.add(o, fullPass)
		}
		changed = l.release()
	}
	if changed {
		l.compareAll(l.session.Owners())
	}
}

// unclaimed is the addresses and subnets in rows whose removal waits, without the addresses that a known pod has.
func (l *Loop) unclaimed() []names.Range {
	known := map[names.Range]bool{}
	for network := range l.Core.State.Networks {
		for _, n := range l.Core.State.In(network).PodNetworks {
			for _, p := range n.IPs {
				known[names.Range{Network: network, Prefix: ipnet.Single(p.Addr())}] = true
			}
		}
	}
	held := slices.Collect(maps.Keys(l.guard.held))
	return slices.DeleteFunc(l.Recorder.Unclaimed(l.Core.State, l.session, held), func(r names.Range) bool {
		return known[r]
	})
}

// compareKept marks as dirty the owners that may still keep what is not reserved any more.
func (l *Loop) compareKept() {
	for _, o := range l.session.Owners() {
		if core.Keeps(l.session.Glance(), o) {
			l.dirty.add(o, fullPass)
		}
	}
}

// wanted records that an owner wants rows, or has none: it is not held back any more.
func (l *Loop) wanted(o nb.Owner) {
	if l.guard.held[o] {
		delete(l.guard.held, o)
		l.guard.review = true
	}
}

// HeldBack is what waits for approval; nil when nothing does.
func (l *Loop) HeldBack() error {
	if err := l.heldBack.Load(); err != nil {
		return *err
	}
	return nil
}
