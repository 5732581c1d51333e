package ovsdb

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// index knows the owner of each row and the slots that list it, so that neither is searched for. Events feed it, a
// moment after the copy has changed. So it says only where to look, and every answer is checked against the copy.
// What it lacks at that moment is looked at again when the event arrives.
type index struct {
	schema *nb.Schema
	wake   func() // called when there is news

	mu      sync.Mutex
	owner   map[nb.Ref]nb.Owner
	owned   map[nb.Owner][]nb.Ref
	parents map[nb.Ref][]nb.Slot
	dirty   map[nb.Owner]bool
	cleared bool                 // a row of nobody's went, or is another: it may have been in an owner's way
	spent   map[string]time.Time // when the row of each UUID was deleted
	earlier map[string]time.Time // the same, of earlier rows
	coming  expected
}

// A UUID is not used again for spentFor after its row was deleted: ovn-northd has processed the deletion by then. At
// most spentMax UUIDs are remembered, and at least the last half of these.
const (
	spentFor = time.Minute
	spentMax = 100_000
)

func newIndex(s *nb.Schema, wake func()) *index {
	return &index{schema: s, wake: wake, owner: map[nb.Ref]nb.Owner{}, owned: map[nb.Owner][]nb.Ref{},
		parents: map[nb.Ref][]nb.Slot{}, dirty: map[nb.Owner]bool{}, spent: map[string]time.Time{}}
}

// change records that a row was inserted (before is nil), changed, or deleted (after is nil), and marks the owners
// concerned dirty. A row without an owner is news, too: the wrong one of two cluster routers is not ours.
func (x *index) change(before, after model.Model) {
	x.mu.Lock()
	defer x.mu.Unlock()
	news := false
	switch {
	case before == nil && x.coming.row(x.schema, x.schema.Ref(after), after):
	case before == nil || after == nil || !x.schema.SameColumns(before, after):
		x.concern(before, after)
		news = true
	}
	x.reown(before, after)
	if x.changeSlots(before, after) || news {
		x.wake()
	}
}

// load records the n rows that are there at the start. That is no news: whoever gets a new session looks at every row.
func (x *index) load(n int, rows iter.Seq[model.Model]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.owner, x.owned = make(map[nb.Ref]nb.Owner, n), make(map[nb.Owner][]nb.Ref, n)
	x.parents = make(map[nb.Ref][]nb.Slot, n)
	for row := range rows {
		x.loadRow(row)
	}
}

func (x *index) loadRow(row model.Model) {
	r := x.schema.Ref(row)
	if k, ok := x.schema.Mark(row); ok {
		x.own(r, k.Owner)
	}
	for _, sl := range x.schema.Slots(row) {
		child := x.schema.Child(sl)
		for _, u := range x.schema.Members(row, sl.Column) {
			x.list(sl, nb.Ref{Table: child, UUID: u}, true)
		}
	}
}

// reown records the row's owner.
func (x *index) reown(before, after model.Model) {
	var was, is nb.Key
	var had, has bool
	if before != nil {
		was, had = x.schema.Mark(before)
	}
	if after != nil {
		is, has = x.schema.Mark(after)
	}
	if had && (!has || was.Owner != is.Owner) {
		x.disown(x.schema.Ref(before), was.Owner)
	}
	if had && after == nil {
		x.spend(x.schema.Ref(before).UUID)
	}
	if has {
		x.own(x.schema.Ref(after), is.Owner)
	}
}

// concern marks the owners of a row dirty. When only its slots change, that concerns the owners of the listed rows
// instead: see changeSlots.
func (x *index) concern(before, after model.Model) {
	owned := false
	for _, m := range []model.Model{before, after} {
		if m == nil {
			continue
		}
		if k, ok := x.schema.Mark(m); ok {
			x.dirty[k.Owner], owned = true, true
		}
		if o, ok := x.owner[x.schema.Ref(m)]; ok {
			x.dirty[o], owned = true, true
		}
	}
	if before == nil || owned {
		return
	}
	r := x.schema.Ref(before)
	x.cleared = x.cleared || r.Table != nbdb.NBGlobalTable && r != freedSet() // both are the master's own
}

// changeSlots records what a row lists now, and tells whether that is news.
func (x *index) changeSlots(before, after model.Model) (news bool) {
	row := after
	if row == nil {
		row = before
	}
	for _, sl := range x.schema.Slots(row) {
		had, has := x.members(before, sl), x.members(after, sl)
		n := 0 // new members usually come last
		for n < len(had) && n < len(has) && had[n] == has[n] {
			n++
		}
		child := x.schema.Child(sl)
		for _, u := range difference(had[n:], has[n:]) {
			news = x.setListed(sl, nb.Ref{Table: child, UUID: u}, false) || news
		}
		for _, u := range difference(has[n:], had[n:]) {
			news = x.setListed(sl, nb.Ref{Table: child, UUID: u}, true) || news
		}
	}
	return news
}

// members is what a slot of a row lists; m is nil when there is no row.
func (x *index) members(m model.Model, sl nb.Slot) []string {
	if m == nil {
		return nil
	}
	return x.schema.Members(m, sl.Column)
}

// setListed records whether a slot lists a row. When that is news, the row's owner becomes dirty.
func (x *index) setListed(sl nb.Slot, r nb.Ref, listed bool) (news bool) {
	news = !listed || !x.coming.listing(sl, r)
	if o, ok := x.owner[r]; ok && news {
		x.dirty[o] = true
		if !listed { // the next event may say that the row is deleted
			x.spend(r.UUID)
		}
	}
	x.list(sl, r, listed)
	return news
}

func (x *index) list(sl nb.Slot, r nb.Ref, listed bool) {
	ps := x.parents[r]
	i := slices.Index(ps, sl)
	switch {
	case listed && i < 0:
		x.parents[r] = append(ps, sl)
	case !listed && i >= 0:
		ps = slices.Delete(slices.Clone(ps), i, i+1)
		if len(ps) == 0 {
			delete(x.parents, r)
		} else {
			x.parents[r] = ps
		}
	}
}

// own records the owner of a row. The row may be in owner and not yet in owned: claim leaves it so.
func (x *index) own(r nb.Ref, o nb.Owner) {
	x.owner[r] = o
	if !slices.Contains(x.owned[o], r) {
		x.owned[o] = append(x.owned[o], r)
	}
}

func (x *index) disown(r nb.Ref, o nb.Owner) {
	if x.owner[r] == o {
		delete(x.owner, r)
	}
	rs := x.owned[o]
	i, last := slices.Index(rs, r), len(rs)-1
	switch {
	case i < 0:
	case last == 0:
		delete(x.owned, o)
	default: // the order does not matter
		rs[i] = rs[last]
		x.owned[o] = rs[:last]
	}
}

// expect records what a transaction that is about to be sent will cause, in place of what earlier ones caused.
func (x *index) expect(plans []nb.Plan) {
	coming := expectation(plans)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.coming = coming
}

// committed records what our transaction did, without waiting for its events.
func (x *index) committed(plans []nb.Plan) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range plans {
		for _, rc := range p.Rows {
			r := rc.Ref()
			if rc.Verb == nb.Delete {
				x.disown(r, rc.Key.Owner)
				x.spend(rc.UUID)
			} else {
				x.own(r, rc.Key.Owner)
			}
		}
		for _, m := range p.Members {
			x.list(m.Slot, m.Ref(), !m.Remove)
		}
	}
}

func (x *index) spend(uuid string) {
	if len(x.spent) >= spentMax/2 {
		x.spent, x.earlier = make(map[string]time.Time, len(x.spent)), x.spent
	}
	x.spent[uuid] = time.Now()
}

// spentNow tells whether the row of a UUID was deleted not long ago.
func (x *index) spentNow(uuid string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.spent[uuid]
	if !ok {
		at, ok = x.earlier[uuid]
	}
	return ok && time.Since(at) < spentFor
}

// claim records the owner of a row whose table has no place for a mark.
func (x *index) claim(r nb.Ref, o nb.Owner) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.owner[r] = o
}

func (x *index) takeDirty() []nb.Owner {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.dirty) == 0 {
		return nil
	}
	out := slices.Collect(maps.Keys(x.dirty))
	x.dirty = map[nb.Owner]bool{} // to clear and to look through the old one costs as much as when it was full
	return out
}

func (x *index) takeCleared() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	cleared := x.cleared
	x.cleared = false
	return cleared
}

func (x *index) ownedBy(o nb.Owner) []nb.Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.owned[o])
}

func (x *index) listing(r nb.Ref) []nb.Slot {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.parents[r])
}

func (x *index) owners() []nb.Owner {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make([]nb.Owner, 0, len(x.owned))
	for o := range x.owned {
		out = append(out, o)
	}
	return out
}

func (x *index) hasOwner(is func(nb.Owner) bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for o := range x.owned {
		if is(o) {
			return true
		}
	}
	return false
}

// difference is what is in a and not in b.
func difference(a, b []string) []string {
	if len(a) == 0 {
		return nil
	}
	in := make(map[string]struct{}, len(b))
	for _, s := range b {
		in[s] = struct{}{}
	}
	var out []string
	for _, s := range a {
		if _, ok := in[s]; !ok {
			out = append(out, s)
		}
	}
	return out
}
