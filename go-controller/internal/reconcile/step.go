package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// step sends the next transaction, if one may be sent and there is something to send.
func (l *Loop) step(ctx context.Context) {
	defer func() {
		l.Metrics.Dirty.Set(float64(l.dirty.size))
		l.Metrics.Failing.Set(float64(len(l.dirty.waiting)))
		err := l.dirty.failing()
		l.failing.Store(&err)
	}()
	l.paused = l.pause() > 0
	if l.session == nil || !l.fullPassBegun || !l.mayWrite() || l.inFlight || l.paused {
		return
	}
	l.reviewHeld()
	b := l.batch()
	if len(b.Plans) == 0 {
		l.idle(ctx)
		return
	}
	l.send(ctx, b)
}

// batch is the plans of one transaction, the causes for which their owners were planned, and when the oldest event came
// that concerns an owner.
type batch struct {
	*core.Batch
	causes map[nb.Owner]cause
	since  map[nb.Owner]time.Time
}

// batch plans the next transaction. It also handles the owners that need no change or can't be planned.
func (l *Loop) batch() *batch {
	b := &batch{&core.Batch{}, map[nb.Owner]cause{}, map[nb.Owner]time.Time{}}
	if l.dirty.size == 0 && len(l.halves) == 0 {
		return b
	}
	b.Batch = l.Core.NewBatch(l.session.View(), l.session.Claim)
	for len(l.halves) > 0 && len(b.Plans) == 0 {
		for _, o := range l.halves[0] {
			b.causes[o] = clusterChange
			l.dirty.moveSince(o, b.since)
			b.AddVanished(o)
		}
		l.halves = l.halves[1:]
	}
	if len(b.Plans) == 0 {
		l.dirty.take(time.Now(), filling{l, b})
	}
	b.Settle()
	if b.Hold && b.ReleaseReused(l.session.Owners()) {
		l.guard.review = true
	}
	l.settled(b)
	return b
}

// filling fills a batch with dirty owners.
type filling struct {
	loop *Loop
	*batch
}

// TakesAny implements filler.
func (f filling) TakesAny(k names.Kind) bool {
	return (f.loop.most == 0 || len(f.Plans) < f.loop.most) && f.batch.TakesAny(k)
}

// Takes implements filler.
func (f filling) Takes(o nb.Owner) bool { return f.TakesAny(o.Kind) && f.batch.Takes(o) }

// Next implements filler.
func (f filling) Next(o nb.Owner, c cause, vanished bool) (postpone bool) {
	f.causes[o] = c
	f.loop.dirty.moveSince(o, f.since)
	held := f.loop.guard.held[o]
	switch {
	case vanished && held:
	case vanished:
		f.AddVanished(o)
	case !f.Add(o):
		f.loop.wanted(o)
	default:
		postpone = !held
	}
	return postpone
}

// settled handles the owners of a batch that are done or failed, and reports what is new.
func (l *Loop) settled(b *batch) {
	for _, o := range b.Done {
		l.dirty.succeed(o)
	}
	for _, f := range b.Failed {
		wait := l.dirty.fail(f.Owner, f.Err, time.Now())
		l.dirty.returnSince(f.Owner, b.since)
		if slot, waits := f.MissingParent(); waits {
			l.dirty.park(f.Owner, slot.In)
			l.Log.Info("waiting for a parent row", "owner", f.Owner.String(), "error", f.Err, "retry", wait)
		} else {
			l.Log.Error("translating", "owner", f.Owner.String(), "error", f.Err, "retry", wait)
		}
	}
	l.reportAll(l.Core.News(b.Batch))
	l.judge(b.Batch, b.Done)
}

// judge writes the conditions of objects whose owners' rows are in the database.
func (l *Loop) judge(b *core.Batch, owners []nb.Owner) {
	for _, p := range l.Core.Conditions(b, owners) {
		l.Writer.Patch(p)
	}
}

// send commits a batch in the background. The result comes back through l.results.
func (l *Loop) send(ctx context.Context, b *batch) {
	l.inFlight, l.verified = true, false
	s := l.session
	s.Record(l.Core.Ledger().TakeFreed())
	started := time.Now()
	l.sentAt = started
	go func() {
		// A transaction in flight is completed even when the program ends.
		out, err := s.Transact(context.WithoutCancel(ctx), b.Plans)
		l.results <- result{session: s, plans: b.Plans, batch: b.Batch, causes: b.causes, since: b.since,
			outcome: out, err: err, took: time.Since(started)}
	}()
}

// finish handles the result of a transaction.
func (l *Loop) finish(r result) {
	l.inFlight = false
	l.Metrics.Transaction.Observe(r.took.Seconds())
	l.observeLag(r)
	switch {
	case r.raised.Number > 0:
		l.raised(r)
	case r.marks:
		l.filled(r)
	case r.err == nil:
		l.committed(r)
	case errors.Is(r.err, ovsdb.ErrFenced):
		l.failed(r)
		if r.session == l.session {
			l.leads = false
		}
	case r.session != l.Database.Session() || !ovsdb.IsRejected(r.err):
		l.unanswered(r)
	case len(r.plans) > 1:
		l.Metrics.Transactions.WithLabelValues("rejected").Inc()
		l.Log.Warn("transaction refused: halving the batch", "owners", len(r.plans), "error", r.err)
		half := len(r.plans) / 2
		l.halves = append([][]nb.Owner{ownersOf(r.plans[:half]), ownersOf(r.plans[half:])}, l.halves...)
	default:
		l.Metrics.Transactions.WithLabelValues("rejected").Inc()
		o := r.plans[0].Owner
		wait := l.dirty.fail(o, r.err, time.Now())
		l.Log.Error("transaction refused", "owner", o.String(), "error", r.err, "retry", wait)
	}
}

// unanswered handles a transaction without an answer: it took too long, or the connection was lost. The server may not
// survive one of the owners, or may be kept busy by it for so long that it counts as dead. So the next transactions
// have half as many owners, until that one is alone. It then waits, also when there is a new connection.
func (l *Loop) unanswered(r result) {
	l.failed(r)
	l.most = max(len(r.plans)/2, 1)
	if len(r.plans) == 1 {
		l.dirty.blame(r.plans[0].Owner)
		return
	}
	for _, p := range r.plans {
		l.dirty.excuse(p.Owner)
	}
}

// failed has all owners of a transaction tried again.
func (l *Loop) failed(r result) {
	l.Metrics.Transactions.WithLabelValues("failed").Inc()
	l.Log.Warn("transaction", "owners", len(r.plans), "error", r.err, "took", r.took)
	for _, p := range r.plans {
		l.dirty.fail(p.Owner, r.err, time.Now())
	}
}

func ownersOf(plans []nb.Plan) []nb.Owner {
	out := make([]nb.Owner, len(plans))
	for i, p := range plans {
		out[i] = p.Owner
	}
	return out
}

func (l *Loop) committed(r result) {
	l.Metrics.Transactions.WithLabelValues("ok").Inc()
	if l.most *= 2; l.most >= core.FullOps {
		l.most = 0
	}
	l.Metrics.Operations.Add(float64(r.outcome.Ops))
	l.Metrics.Batch.Observe(float64(len(r.plans)))
	var rows [3]int
	for _, p := range r.plans {
		for _, rc := range p.Rows {
			rows[rc.Verb]++
			if rc.Verb == nb.Insert {
				l.dirty.arrived(nb.Ref{Table: rc.Key.Table, UUID: rc.Derived})
			}
		}
		l.dirty.succeed(p.Owner)
		delete(l.suspects, p.Owner)
		if r.causes[p.Owner] == databaseChange {
			l.Metrics.Repairs.WithLabelValues(string(p.Owner.Kind)).Inc()
			l.Log.Warn("repaired", "owner", p.Owner.String(), "plan", p.String())
		}
	}
	for verb, name := range map[nb.Verb]string{nb.Insert: "insert", nb.Update: "update", nb.Delete: "delete"} {
		l.Metrics.Rows.WithLabelValues(name).Add(float64(rows[verb]))
	}
	lost := func(o nb.Owner) bool { return slices.Contains(r.outcome.Lost, o) }
	l.judge(r.batch, slices.DeleteFunc(ownersOf(r.plans), lost))
	for _, o := range r.outcome.Lost {
		wait := l.dirty.fail(o, errors.New("a row vanished while it was written to"), time.Now())
		l.Log.Warn("a row vanished while it was written to", "owner", o.String(), "retry", wait)
	}
	l.Log.Info("transaction", "owners", len(r.plans), "operations", r.outcome.Ops,
		"inserted", rows[nb.Insert], "updated", rows[nb.Update], "deleted", rows[nb.Delete], "took",
		r.took.Round(time.Microsecond))
}

// idle is called when there is nothing to write. Failed owners may still wait for their next attempt: one bad object
// does not keep the rest from being in sync. But those that failed because of others are tried first.
func (l *Loop) idle(ctx context.Context) {
	if l.markFilled(ctx) {
		return
	}
	if !l.fullPassSince.IsZero() && len(l.guard.held) == 0 && !l.dirty.undecided() {
		took := time.Since(l.fullPassSince)
		l.fullPassSince = time.Time{}
		l.Metrics.FullPass.Set(took.Seconds())
		l.Metrics.InSync.Set(1)
		l.compared.Store(l.session)
		l.Log.Info("in sync: the database is what the cluster wants", "took", took.Round(time.Microsecond))
		select {
		case <-l.inSync:
		default:
			close(l.inSync)
		}
	}
	if l.Verify && !l.verified && l.dirty.size == 0 && len(l.guard.held) == 0 && !l.verifyAt.After(time.Now()) {
		l.verify()
	}
}

// verifyAgain is how long a notification may take from the copy of the database to the loop.
const verifyAgain = time.Second

// verify compares every owner with the database and reports what the loop has missed: a difference that is still there
// when verify looks again, although nothing marked the owner as dirty in between. It marks the owner as dirty, and the
// loop repairs it as usual.
func (l *Loop) verify() {
	b := l.Core.Plan(l.session.View(), append(l.Core.Owners(), l.session.Owners()...), nil)
	if err := b.Err(); err != nil {
		l.Log.Error("verify", "error", err)
	}
	suspects, missed := map[nb.Owner]bool{}, 0
	for _, p := range b.Plans {
		if !l.suspects[p.Owner] {
			suspects[p.Owner] = true
			continue
		}
		missed++
		l.Metrics.Differences.Inc()
		l.Log.Error("verify found a difference", "owner", p.Owner.String(), "plan", p.String())
		l.dirty.add(p.Owner, fullPass)
	}
	l.suspects, l.verified, l.verifyAt = suspects, len(suspects) == 0, time.Time{}
	if !l.verified {
		l.verifyAt = time.Now().Add(verifyAgain)
		return
	}
	l.Log.Info("verified", "owners", len(l.Core.Owners()), "differences", missed)
}
