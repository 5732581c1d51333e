package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

var errRefused = errors.New("constraint violation")

func owner(k names.Kind, name string) nb.Owner { return nb.Owner{Kind: k, Name: name} }

// taken lists what a set returns at a moment, at most some.
func taken(d *dirtySet, now time.Time, most int) []nb.Owner {
	out := &limited{most: most}
	d.take(now, out)
	return out.owners
}

// limited has room for some owners.
type limited struct {
	most   int
	owners []nb.Owner
}

func (l *limited) TakesAny(names.Kind) bool { return len(l.owners) < l.most }

func (l *limited) IsFull() bool { return false }

func (l *limited) Takes(nb.Owner) bool { return len(l.owners) < l.most }

func (l *limited) Next(o nb.Owner, _ cause, _ bool) (postpone bool) {
	l.owners = append(l.owners, o)
	return false
}

// pairs is full when it has two owners. It then takes only those that are said to have rows.
type pairs struct {
	owners  []nb.Owner
	hasRows map[nb.Owner]bool
	asked   int // by Takes
}

func (p *pairs) TakesAny(names.Kind) bool { return true }

func (p *pairs) IsFull() bool { return len(p.owners) >= 2 }

func (p *pairs) Takes(o nb.Owner) bool {
	p.asked++
	return !p.IsFull() || p.hasRows[o]
}

func (p *pairs) Next(o nb.Owner, _ cause, _ bool) (postpone bool) {
	p.owners = append(p.owners, o)
	return false
}

// While a database is filled, a full transaction asks about each owner once, and not about all in each transaction. It
// asks again about an owner that became dirty again: it may have rows by then.
func TestOwnersThatAFullTransactionLeaves(t *testing.T) {
	const all = 100
	d, now := newDirtySet(), time.Unix(1000, 0)
	pod := func(i int) nb.Owner { return owner(names.KindPod, fmt.Sprint("d/", i)) }
	for i := range all {
		d.add(pod(i), fullPass)
	}
	first := &pairs{}
	if d.take(now, first); len(first.owners) != 2 || first.asked != all {
		t.Fatalf("the first took %v, and asked %d times", first.owners, first.asked)
	}
	again := pod(0)
	for i := 1; slices.Contains(first.owners, again); i++ {
		again = pod(i)
	}
	d.add(again, databaseChange)
	second := &pairs{hasRows: map[nb.Owner]bool{again: true}}
	d.take(now, second)
	if n := len(second.owners); n < 2 || n > 3 || !slices.Contains(second.owners, again) || second.asked > 3 {
		t.Errorf("the second took %v, and asked %d times; want two, and %v among or beside them", second.owners,
			second.asked, again)
	}
	asked, taken := first.asked+second.asked, 2+len(second.owners)
	for taken < all {
		p := &pairs{}
		d.take(now, p)
		asked, taken = asked+p.asked, taken+len(p.owners)
		if len(p.owners) == 0 {
			t.Fatalf("only %d of %d are taken", taken, all)
		}
	}
	if d.size != 0 || asked > 2*all+3 || len(d.left) != 0 {
		t.Errorf("%d are dirty, %d left; asked %d times, want at most twice for each owner", d.size, len(d.left), asked)
	}
}

func wantTaken(t *testing.T, what string, got []nb.Owner, want ...nb.Owner) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: took %v, want %v", what, got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: took %v, want %v", what, got, want)
		}
	}
}

func TestDirtySet(t *testing.T) {
	now := time.Unix(1000, 0)
	pod, node, old := owner(names.KindPod, "d/p"), owner(names.KindNode, "n"), owner("Ancient", "x")
	d := newDirtySet()
	d.add(old, fullPass)
	d.add(pod, clusterChange)
	d.add(pod, databaseChange) // the same owner, once
	d.add(node, clusterChange)
	if d.size != 3 {
		t.Errorf("%d dirty, want 3", d.size)
	}
	wantTaken(t, "the first two", taken(d, now, 2), node, pod) // parents before what they list
	wantTaken(t, "the rest", taken(d, now, 9), old)
	if d.size != 0 {
		t.Errorf("%d dirty after all were taken, want 0", d.size)
	}

	// Each failure waits twice as long, to a limit.
	at := now
	for i, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000} {
		if wait := d.fail(pod, errRefused, at); wait != want*time.Millisecond {
			t.Errorf("failure %d waits %s, want %s", i, wait, want*time.Millisecond)
		}
		next, ok := d.nextAttempt()
		if !ok || !next.Equal(at.Add(want*time.Millisecond)) {
			t.Errorf("failure %d: next attempt at %s, %v", i, next, ok)
		}
		wantTaken(t, "before its time", taken(d, next.Add(-1), 9))
		wantTaken(t, "in its time", taken(d, next, 9), pod)
		at = next
		if err := d.failing(); (err != nil) != (i+1 >= persistent) {
			t.Errorf("after %d failures: %v", i+1, err)
		}
	}
	if got, want := fmt.Sprint(d.failing()), pod.String()+" is not in the database as it should be, after 11 attempts: "+
		errRefused.Error(); got != want {
		t.Errorf("failing: %q, want %q", got, want)
	}

	// A change of its rows does not shorten an owner's wait; a change of its object does.
	d.fail(pod, errRefused, at)
	d.add(pod, databaseChange)
	wantTaken(t, "after an event", taken(d, at, 9))
	d.add(pod, clusterChange)
	wantTaken(t, "after its object changed", taken(d, at, 9), pod)

	// Neither does what may be why the connection was lost.
	blamed := owner(names.KindPod, "d/blamed")
	for range persistent {
		d.fail(pod, errRefused, at)
		d.fail(blamed, errRefused, at)
	}
	if err := d.failing(); err == nil || !strings.Contains(err.Error(), "(and 1 more)") {
		t.Errorf("failing: %v, want one named and one more", err)
	}
	d.blame(blamed)
	for i := range 3 {
		d.retrySoon(at.Add(time.Duration(i) * time.Millisecond))
	}
	soon := at.Add(retryWithin)
	wantTaken(t, "before its time, after something went that may have been in the way", taken(d, soon.Add(-1), 9))
	wantTaken(t, "soon after something went that may have been in the way", taken(d, soon, 9), pod)
	d.succeed(blamed)
	d.drop(blamed)
	d.succeed(pod)
	if wait := d.fail(pod, errRefused, at); wait != firstBackoff {
		t.Errorf("the first failure after a success waits %s, want %s", wait, firstBackoff)
	}
	d.forgive()
	wantTaken(t, "after a new connection", taken(d, at, 9), pod)
	if _, ok := d.nextAttempt(); ok || d.size != 0 || len(d.waiting)+len(d.parents) != 0 {
		t.Errorf("something is left: %+v", d)
	}
}

// An owner that waits for a row is retried as soon as the row exists.
func TestDirtySetParents(t *testing.T) {
	now := time.Unix(1000, 0)
	d := newDirtySet()
	a, b := owner(names.KindPod, "d/a"), owner(names.KindPod, "d/b")
	first, second := nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: "1"}, nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: "2"}
	for _, w := range []struct {
		o nb.Owner
		r nb.Ref
	}{{a, first}, {b, second}, {a, first}} {
		d.fail(w.o, errRefused, now)
		d.park(w.o, w.r)
	}
	wantTaken(t, "while both wait", taken(d, now, 9))
	d.arrived(first)
	wantTaken(t, "when one row is there", taken(d, now, 9), a)
	d.succeed(a)
	d.arrived(second)
	wantTaken(t, "when the other is", taken(d, now, 9), b)
	d.arrived(second)
	if len(d.parents) != 0 {
		t.Errorf("somebody is still remembered: %v", d.parents)
	}
}

// vanishing postpones owners that are gone, and notes those that it plans as vanished.
type vanishing struct {
	limited
	gone map[nb.Owner]bool
	went *[]nb.Owner
}

func (v *vanishing) Next(o nb.Owner, _ cause, vanished bool) (postpone bool) {
	if v.gone[o] && !vanished {
		return true
	}
	if vanished {
		*v.went = append(*v.went, o)
	}
	v.owners = append(v.owners, o)
	return false
}

// Owners that want nothing any more are planned last and in reverse order, over as many transactions as it takes. An
// owner that may want something again, or waits for its next attempt, is not.
func TestDirtySetVanished(t *testing.T) {
	now := time.Unix(1000, 0)
	node, podA, podB, svc := owner(names.KindNode, "n"), owner(names.KindPod, "d/a"), owner(names.KindPod,
		"d/b"), owner(names.KindService, "d/s")
	d := newDirtySet()
	gone := map[nb.Owner]bool{node: true, podA: true, podB: true}
	var went []nb.Owner
	round := func(most int) []nb.Owner {
		f := &vanishing{limited{most: most}, gone, &went}
		d.take(now, f)
		return f.owners
	}
	for _, o := range []nb.Owner{podA, node, svc, podB} {
		d.add(o, clusterChange)
	}
	wantTaken(t, "a full transaction", round(1), svc)
	if d.size != 3 || len(d.vanished) != 3 {
		t.Errorf("%d dirty and %d postponed, want 3 each", d.size, len(d.vanished))
	}
	d.add(podA, databaseChange)
	if d.size != 3 || d.vanished[podA] {
		t.Errorf("%d dirty, want 3; a postponed owner that changed is asked again: %v", d.size, !d.vanished[podA])
	}
	delete(gone, podA)
	wantTaken(t, "one that is back, then the last one", round(2), podA, podB)
	wantTaken(t, "what went", went, podB)
	wait := d.fail(podB, errRefused, now)
	wantTaken(t, "the rest, without the one that waits", round(9), node)
	if next, ok := d.nextAttempt(); d.size != 1 || !ok || !next.Equal(now.Add(wait)) {
		t.Errorf("%d dirty, next attempt at %s, %v; want 1, at %s", d.size, next, ok, now.Add(wait))
	}
	now = now.Add(wait)
	d.add(node, clusterChange)
	wantTaken(t, "a new one and the one that waited", round(9), podB, node)
	wantTaken(t, "what went", went, podB, node, podB, node)

	// An owner that is postponed and then fails waits for its next attempt, too.
	d.add(podB, clusterChange)
	d.add(svc, clusterChange)
	wantTaken(t, "a full transaction", round(1), svc)
	d.waiting[podB] = backoff{attempts: 1, until: now.Add(time.Second)}
	wantTaken(t, "before its time", round(9))
	if d.size != 1 || !d.vanished[podB] {
		t.Errorf("%d dirty, want the one that waits", d.size)
	}
	now = now.Add(time.Second)
	wantTaken(t, "in its time", round(9), podB)
	if d.size != 0 || len(d.vanished) != 0 {
		t.Errorf("something is left: %+v", d)
	}
}

// A set from which all owners were taken keeps no room for them. Looking for the owners of the next change would
// otherwise cost as much as a full pass once had.
func TestDirtySetKeepsNoRoom(t *testing.T) {
	d := newDirtySet()
	all := &vanishing{limited{most: 1001}, map[nb.Owner]bool{}, new([]nb.Owner)}
	for i := range 1000 {
		o := owner(names.KindPod, fmt.Sprintf("d/%d", i))
		d.add(o, fullPass)
		all.gone[o] = true
	}
	d.take(time.Unix(1000, 0), all)
	if d.size != 0 || len(d.byKind) != 0 || d.vanished != nil {
		t.Errorf("%d dirty, maps of %d kinds, vanished %v; want none", d.size, len(d.byKind), d.vanished)
	}
	d.add(owner(names.KindPod, "d/again"), clusterChange)
	wantTaken(t, "an owner that comes later", taken(d, time.Unix(1000, 0), 9), owner(names.KindPod, "d/again"))
}
