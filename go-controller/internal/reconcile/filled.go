package reconcile

import (
	"context"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/core"
)

// markFilled tells those who wait for a new database that it has everything, once for each session: before the full
// pass ends, and again later if that fails. It is called when there is nothing to write, and tells whether it does so.
func (l *Loop) markFilled(ctx context.Context) bool {
	if l.marked == l.session || time.Now().Before(l.markAt) || l.passedAt.IsZero() && l.compared.Load() != l.session {
		return false
	}
	session, started := l.session, time.Now()
	l.inFlight = true
	go func() {
		// A transaction in flight is completed even when the program ends.
		err := session.MarkFilled(context.WithoutCancel(ctx))
		l.results <- result{session: session, marks: true, batch: &core.Batch{}, err: err, took: time.Since(started)}
	}()
	return true
}

// filled handles the result of markFilled.
func (l *Loop) filled(r result) {
	if r.err == nil {
		l.marked = r.session
		return
	}
	l.markAt = time.Now().Add(markAgain)
	l.Log.Warn("the database is not marked as filled", "error", r.err, "retry", markAgain)
}

// markAgain is the pause after an attempt to mark the database that failed.
const markAgain = 5 * time.Second
