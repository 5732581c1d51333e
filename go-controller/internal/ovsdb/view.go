package ovsdb

import (
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// view is the nb.View of a session for one batch. It remembers what it has read from the copy.
type view struct {
	*Session
	rows  map[nb.Ref]model.Model // nil: no row is remembered
	lists map[nb.Slot]*listed
}

// listed is the members of one slot. After searchMax look-ups it also keeps them as a set: most batches ask a switch
// about one pod, a full pass about all.
type listed struct {
	members []string
	asked   int
	set     map[string]struct{}
}

const searchMax = 8

func (l *listed) has(uuid string) bool {
	if l.asked++; l.asked <= searchMax {
		return slices.Contains(l.members, uuid)
	}
	if l.set == nil {
		l.set = make(map[string]struct{}, len(l.members))
		for _, u := range l.members {
			l.set[u] = struct{}{}
		}
	}
	_, ok := l.set[uuid]
	return ok
}

// Owned implements nb.View.
func (v *view) Owned(o nb.Owner) []nb.Ref {
	var out []nb.Ref
	for _, r := range v.index.ownedBy(o) {
		if k, ok := v.schema.Mark(v.Row(r)); ok && k.Owner == o {
			out = append(out, r)
		}
	}
	return out
}

// Row implements nb.View.
func (v *view) Row(r nb.Ref) model.Model {
	m, known := v.rows[r]
	if !known {
		m = v.copy.Row(r.Table, r.UUID)
		if v.rows != nil {
			v.rows[r] = m
		}
	}
	return m
}

// Parents implements nb.View.
func (v *view) Parents(r nb.Ref) []nb.Slot {
	var out []nb.Slot
	for _, sl := range v.index.listing(r) {
		if v.Lists(sl, r.UUID) {
			out = append(out, sl)
		}
	}
	if !slices.ContainsFunc(out, v.schema.Keeps) && v.schema.DeletedByGC(r.Table) && v.Row(r) != nil {
		return v.search(r) // a strong reference must keep it: the index lags behind
	}
	return out
}

// Spent implements nb.View.
func (v *view) Spent(r nb.Ref) bool { return v.index.spentNow(r.UUID) }

// Lacks implements nb.View.
func (v *view) Lacks(table, column string) bool {
	return slices.Contains(v.lacking[table], column)
}

// search finds the slots that list a row without the index: it looks at all rows that may list it.
func (v *view) search(r nb.Ref) []nb.Slot {
	var out []nb.Slot
	for _, sl := range v.schema.ParentTables(r.Table) {
		for _, m := range v.copy.Rows(sl.In.Table) {
			if sl.In.UUID = v.schema.Ref(m).UUID; v.Lists(sl, r.UUID) {
				out = append(out, sl)
			}
		}
	}
	return out
}

// Lists implements nb.View.
func (v *view) Lists(s nb.Slot, uuid string) bool {
	l := v.lists[s]
	if l == nil {
		l = &listed{}
		if m := v.Row(s.In); m != nil {
			l.members = v.schema.Members(m, s.Column)
		}
		v.lists[s] = l
	}
	return l.has(uuid)
}
