package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// cause is why an owner is dirty: a set of the constants below.
type cause uint8

const (
	clusterChange  cause = 1 << iota // an object that its rows depend on changed
	databaseChange                   // one of its rows changed
	fullPass                         // all owners are compared
	retry                            // the last attempt failed
)

const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 30 * time.Second
	// An owner that has failed fewer times is not worth a word: most often another one's rows come first.
	persistent = 4
	// A program of others may change its rows all the time.
	retryWithin = 500 * time.Millisecond
)

// backoff is an owner's history of failed attempts.
type backoff struct {
	attempts int
	until    time.Time
	blamed   bool  // the attempt failed with the connection, and may have been the reason
	among    bool  // the attempt failed along with those of other owners, one of which may have been the reason
	why      error // the last attempt failed
}

// dirtySet is the owners to be planned. They are kept by kind, so that take finds them in the order of names.Kinds.
type dirtySet struct {
	byKind  map[names.Kind]map[nb.Owner]cause
	waiting map[nb.Owner]backoff
	// Owners of byKind that want nothing any more. They are planned last.
	vanished map[nb.Owner]bool
	// Owners of byKind that a full transaction did not take, since they became dirty: the next full one does not either.
	// While a database is filled these are nearly all, and each transaction would ask about each.
	left    map[names.Kind]map[nb.Owner]bool
	parents map[nb.Ref]map[nb.Owner]bool // missing rows, and the owners that wait for them
	since   map[nb.Owner]time.Time       // when the oldest event came that concerns an owner
	size    int
}

func newDirtySet() *dirtySet {
	return &dirtySet{
		byKind: map[names.Kind]map[nb.Owner]cause{}, waiting: map[nb.Owner]backoff{},
		left: map[names.Kind]map[nb.Owner]bool{}, parents: map[nb.Ref]map[nb.Owner]bool{},
		since: map[nb.Owner]time.Time{},
	}
}

func (d *dirtySet) add(o nb.Owner, c cause) {
	m := d.byKind[o.Kind]
	if m == nil {
		m = map[nb.Owner]cause{}
		d.byKind[o.Kind] = m
	}
	if m[o] == 0 {
		d.size++
	}
	m[o] |= c
	delete(d.vanished, o) // it may want rows again
	d.look(o)             // it may have rows now
	if c == clusterChange {
		d.retryNow(o) // the change may have removed what was wrong
	}
}

// filler is what take hands owners to: the next transaction.
type filler interface {
	// TakesAny is false when there is no room for any owner of a kind.
	TakesAny(k names.Kind) bool
	// IsFull is true when there is room only for owners that must change together with others. Whether an owner is one of
	// these does not change until it becomes dirty again.
	IsFull() bool
	// Takes is true when there is room for an owner.
	Takes(o nb.Owner) bool
	// Next plans an owner, or postpones it.
	Next(o nb.Owner, c cause, vanished bool) (postpone bool)
}

// take hands owners over, kind by kind. Owners for which there is no room, and those that wait for their
// next attempt, stay in the set. An owner that is postponed stays, too: take hands it over again after all other
// owners, as vanished and in reverse order.
func (d *dirtySet) take(now time.Time, f filler) {
	kinds := names.Kinds()
	for k := range d.byKind {
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k) // left over from another version
		}
	}
	for _, k := range kinds {
		d.takeKind(k, now, f)
	}
	for _, o := range slices.SortedFunc(maps.Keys(d.vanished), func(a, b nb.Owner) int { return b.Compare(a) }) {
		if d.waiting[o].until.After(now) || !f.Takes(o) {
			continue
		}
		c := d.byKind[o.Kind][o]
		d.drop(o)
		f.Next(o, c, true)
	}
}

// takeKind hands over the owners of a kind.
func (d *dirtySet) takeKind(k names.Kind, now time.Time, f filler) {
	for o, c := range d.byKind[k] {
		if !f.TakesAny(k) || f.IsFull() && len(d.left[k]) == len(d.byKind[k]) { // it may have become full
			return
		}
		switch {
		case d.waiting[o].until.After(now) || d.vanished[o] || f.IsFull() && d.left[k][o]:
		case !f.Takes(o):
			d.leave(o)
		case f.Next(o, c, false):
			d.postpone(o)
		default:
			d.drop(o)
		}
	}
}

// leave records that a full transaction did not take an owner.
func (d *dirtySet) leave(o nb.Owner) {
	if d.left[o.Kind] == nil {
		d.left[o.Kind] = map[nb.Owner]bool{}
	}
	d.left[o.Kind][o] = true
}

// look has the next transaction ask about an owner, even if it is full.
func (d *dirtySet) look(o nb.Owner) {
	if delete(d.left[o.Kind], o); len(d.left[o.Kind]) == 0 {
		delete(d.left, o.Kind)
	}
}

// postpone records that an owner wants nothing any more.
func (d *dirtySet) postpone(o nb.Owner) {
	if d.vanished == nil {
		d.vanished = map[nb.Owner]bool{}
	}
	d.vanished[o] = true
}

// drop removes an owner from the set. A map that is empty is not kept: looking through it would cost as much as when it
// was full, at every change after a full pass.
func (d *dirtySet) drop(o nb.Owner) {
	if delete(d.byKind[o.Kind], o); len(d.byKind[o.Kind]) == 0 {
		delete(d.byKind, o.Kind)
	}
	if delete(d.vanished, o); len(d.vanished) == 0 {
		d.vanished = nil
	}
	d.look(o)
	d.size--
}

// fail puts an owner back to be tried again, and returns how long it waits.
func (d *dirtySet) fail(o nb.Owner, why error, now time.Time) time.Duration {
	b := d.waiting[o]
	wait := min(firstBackoff<<min(b.attempts, 20), lastBackoff)
	d.waiting[o] = backoff{attempts: b.attempts + 1, until: now.Add(wait), blamed: b.blamed, why: why}
	d.add(o, retry)
	return wait
}

// park records that a failed owner waits for a row.
func (d *dirtySet) park(o nb.Owner, parent nb.Ref) {
	if d.parents[parent] == nil {
		d.parents[parent] = map[nb.Owner]bool{}
	}
	d.parents[parent][o] = true
}

// arrived retries at once the owners that wait for a row, which exists now.
func (d *dirtySet) arrived(parent nb.Ref) {
	for o := range d.parents[parent] {
		d.retryNow(o)
	}
	delete(d.parents, parent)
}

// retryNow ends an owner's wait for its next attempt.
func (d *dirtySet) retryNow(o nb.Owner) {
	if b, waits := d.waiting[o]; waits {
		d.waiting[o] = backoff{attempts: b.attempts, among: b.among, why: b.why}
	}
}

// retrySoon has all owners tried again within retryWithin, apart from those that may be why the connection was lost.
// However often it is called, they are tried no more often than that.
func (d *dirtySet) retrySoon(now time.Time) {
	for o, b := range d.waiting {
		if soon := now.Add(retryWithin); !b.blamed && b.until.After(soon) {
			b.until = soon
			d.waiting[o] = b
		}
	}
}

// failing names one owner whose rows are not as they should be, and counts the others; nil when there is none.
func (d *dirtySet) failing() error {
	n := 0
	var first nb.Owner
	for o, b := range d.waiting {
		if b.attempts < persistent {
			continue
		}
		if n++; n == 1 || o.Compare(first) < 0 {
			first = o
		}
	}
	if n == 0 {
		return nil
	}
	b, more := d.waiting[first], ""
	if n > 1 {
		more = fmt.Sprintf(" (and %d more)", n-1)
	}
	return fmt.Errorf("%s%s is not in the database as it should be, after %d attempts: %w", first, more, b.attempts, b.why)
}

// blame records that a failed owner may be why the connection was lost.
func (d *dirtySet) blame(o nb.Owner) {
	b := d.waiting[o]
	b.blamed = true
	d.waiting[o] = b
}

// excuse records that an owner may have failed because of others.
func (d *dirtySet) excuse(o nb.Owner) {
	b := d.waiting[o]
	b.among = true
	d.waiting[o] = b
}

// undecided tells whether an owner waits of which it is not known whether its rows can be written.
func (d *dirtySet) undecided() bool {
	for _, b := range d.waiting {
		if b.among {
			return true
		}
	}
	return false
}

// forgive forgets all failures for which the lost connection may be the reason, and not the other way round.
func (d *dirtySet) forgive() {
	maps.DeleteFunc(d.waiting, func(_ nb.Owner, b backoff) bool { return !b.blamed })
	clear(d.parents)
}

// succeed forgets an owner's failures.
func (d *dirtySet) succeed(o nb.Owner) { delete(d.waiting, o) }

// nextAttempt is when the first waiting owner may be tried; ok is false when none waits.
func (d *dirtySet) nextAttempt() (t time.Time, ok bool) {
	for o, b := range d.waiting {
		if d.byKind[o.Kind][o] == 0 {
			continue
		}
		if !ok || b.until.Before(t) {
			t, ok = b.until, true
		}
	}
	return t, ok
}
