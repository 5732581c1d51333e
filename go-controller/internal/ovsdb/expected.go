package ovsdb

import (
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// expected is what the last transaction puts into the database and has not been heard of yet: the rows it inserts and
// where rows are then listed. Hearing just that is no reason to plan an owner again, which every pod would be,
// otherwise. Hearing anything else is.
type expected struct {
	rows   map[nb.Ref]model.Model
	listed map[nb.Ref][]nb.Slot
}

// expectation is what plans lead to.
func expectation(plans []nb.Plan) expected {
	e := expected{map[nb.Ref]model.Model{}, map[nb.Ref][]nb.Slot{}}
	for _, p := range plans {
		for _, rc := range p.Rows {
			if rc.Verb == nb.Insert {
				e.rows[nb.Ref{Table: rc.Key.Table, UUID: rc.UUID}] = rc.Model
			}
		}
		for _, m := range p.Members {
			if r := (nb.Ref{Table: m.Key.Table, UUID: m.UUID}); !m.Remove {
				e.listed[r] = append(e.listed[r], m.Slot)
			}
		}
	}
	return e
}

// row tells whether a row that came is the one that was expected. Each is expected once.
func (e expected) row(schema *nb.Schema, r nb.Ref, m model.Model) bool {
	want := e.rows[r]
	delete(e.rows, r)
	return want != nil && schema.SameColumns(want, m)
}

// listing tells whether a slot was expected to list a row from now on; once, as row does.
func (e expected) listing(sl nb.Slot, r nb.Ref) bool {
	slots := e.listed[r]
	i := slices.Index(slots, sl)
	if i < 0 {
		return false
	}
	e.listed[r] = slices.Delete(slots, i, i+1)
	return true
}
