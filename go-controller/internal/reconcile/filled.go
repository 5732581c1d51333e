package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/core"
)

// markFilled tells those who wait for a new database that it has everything, and sets the options of NB_Global. It
// does so once for each session: before the full pass ends, and again later if that fails. It is called when there is
// nothing to write, and tells whether it does so.
func (l *Loop) markFilled(ctx context.Context) bool {
	if l.marked == l.session || time.Now().Before(l.markAt) || l.fullPassSince.IsZero() && l.compared.Load() != l.session {
		return false
	}
	if len(l.dirty.waiting) > 0 && l.patient() {
		return false
	}
	session, started := l.session, time.Now()
	l.inFlight = true
	go func() {
		// A transaction in flight is completed even when the program ends.
		ctx := context.WithoutCancel(ctx)
		err := session.MarkFilled(ctx)
		for key, value := range l.Options {
			err = errors.Join(err, session.SetGlobalOption(ctx, key, value))
		}
		l.results <- result{session: session, marks: true, batch: &core.Batch{}, err: err, took: time.Since(started)}
	}()
	return true
}

// patient tells whether to wait for owners that have failed. After some time they count as bad.
func (l *Loop) patient() bool {
	if l.patience.session != l.session {
		l.patience.session, l.patience.end = l.session, time.Now().Add(markPatience)
	}
	return time.Now().Before(l.patience.end)
}

// filled handles the result of markFilled.
func (l *Loop) filled(r result) {
	if r.err == nil || r.session != l.session {
		l.marked = r.session
		return
	}
	l.markAt = time.Now().Add(markAgain)
	l.Log.Warn("NB_Global is not as it should be", "error", r.err, "retry", markAgain)
}

// The pause after an attempt to mark the database that failed, and how long to wait for owners that have failed.
const (
	markAgain    = 5 * time.Second
	markPatience = 20 * time.Second
)
