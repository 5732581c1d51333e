package ovsdb

import (
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// expected is the news that our last transaction will cause: the rows that it inserts and the slots that then list
// them. Exactly this news makes no owner dirty. Otherwise every new pod would be planned twice.
type expected struct {
	rows   map[nb.Ref]model.Model
	listed map[nb.Ref][]nb.Slot
}

// expectation is the news that plans will cause.
func expectation(plans []nb.Plan) expected {
	e := expected{map[nb.Ref]model.Model{}, map[nb.Ref][]nb.Slot{}}
	for _, p := range plans {
		for _, rc := range p.Rows {
			if rc.Verb == nb.Insert {
				e.rows[rc.Ref()] = rc.Model
			}
		}
		for _, m := range p.Members {
			if r := m.Ref(); !m.Remove {
				e.listed[r] = append(e.listed[r], m.Slot)
			}
		}
	}
	return e
}

// row tells whether a row that was inserted is expected. Each is expected once.
func (e expected) row(schema *nb.Schema, r nb.Ref, m model.Model) bool {
	want := e.rows[r]
	delete(e.rows, r)
	return want != nil && schema.SameColumns(want, m)
}

// listing tells whether it is expected that the slot lists the row now. Each listing is expected once.
func (e expected) listing(sl nb.Slot, r nb.Ref) bool {
	slots := e.listed[r]
	i := slices.Index(slots, sl)
	if i < 0 {
		return false
	}
	e.listed[r] = slices.Delete(slots, i, i+1)
	return true
}
