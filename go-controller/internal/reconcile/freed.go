package reconcile

import (
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// now is the time in seconds since 1970. Somebody who sets the clock does not make it jump.
func (l *Loop) now() int64 { return l.born.Add(time.Since(l.born)).Unix() }

// advance tells the core the time.
func (l *Loop) advance() { l.carryOut(l.Core.Advance(l.now())) }

// keepFreed has the core not give what was freed lately, as far as the database tells.
func (l *Loop) keepFreed() {
	l.Core.Ledger().Keep(l.Core.State, l.Recorder.Freed(l.Core.State, l.session))
}

// recordFreed has a new session record what was freed lately. What the database has beside that may be given again:
// the session before perhaps ended before it could write so.
func (l *Loop) recordFreed() {
	freed := l.Core.Ledger().Freed()
	var over []names.Range
	for r, until := range l.session.Freed() {
		if at, lately := freed[r]; !lately {
			over = append(over, r)
		} else if at == until {
			delete(freed, r)
		}
	}
	l.session.Record(freed, over)
}

// untilFree is how long until something may be given that objects wait for; ok is false when nobody does.
func (l *Loop) untilFree() (d time.Duration, ok bool) {
	at, ok := l.Core.Ledger().NextFree()
	return time.Duration(at-l.now()) * time.Second, ok
}
