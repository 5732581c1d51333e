package nb

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// resolver replaces the derived UUIDs in wanted rows by the UUIDs that the rows have, or get, in the database. The two
// differ for a row that was deleted not long ago. Such a row comes back under a stand-in, so that ovn-northd takes it
// for another row: it may not have processed the deletion yet. They also differ for a row without room for a mark that
// somebody else made: no other can have its name.
type resolver struct {
	*Schema
	view     View
	want     []Row
	inserted Scope          // rows that earlier plans of the transaction insert
	moved    map[Ref]string // wanted rows that have a stand-in, or get one
	own      map[Ref]bool   // wanted rows; nil until the first look-up
}

// rows is the wanted rows with every UUID resolved, and without values for columns that the database lacks.
func (r *resolver) rows() ([]Row, error) {
	for _, w := range r.want {
		ref := r.Ref(w.Model)
		if r.view.Row(ref) != nil {
			continue
		}
		if uuid := r.place(ref); uuid != ref.UUID {
			if r.moved == nil {
				r.moved = map[Ref]string{}
			}
			r.moved[ref] = uuid
		}
	}
	out := r.want
	for i, w := range r.want {
		changed, err := r.row(&w)
		if err != nil {
			return nil, err
		}
		if changed {
			if &out[0] == &r.want[0] {
				out = slices.Clone(r.want)
			}
			out[i] = w
		}
	}
	return out, nil
}

// place is the UUID for a row that does not exist under its derived one: that under which it exists, or else the first
// of its UUIDs that is not spent.
func (r *resolver) place(derived Ref) string {
	if at, there := r.namesake(derived); there {
		return at.UUID
	}
	free := derived.UUID
	spent := r.view.Spent(derived)
	for n := 1; n <= names.StandIns; n++ {
		at := standIn(derived, n)
		if r.view.Row(at) != nil {
			return at.UUID
		}
		if spent && !r.view.Spent(at) {
			free, spent = at.UUID, false
		}
	}
	return free
}

func standIn(r Ref, n int) Ref { return Ref{r.Table, names.StandIn(r.UUID, n)} }

// namesake is the row that is known by its name to be the one with this derived UUID.
func (r *resolver) namesake(derived Ref) (at Ref, there bool) {
	if r.Marked(derived.Table) {
		return derived, false
	}
	for _, m := range r.view.Rows(derived.Table) {
		k, ok := r.Mark(m)
		if ok && names.RowUUID(k.Table, k.Owner.Kind, k.Owner.Name, k.Role, "") == derived.UUID {
			return r.Ref(m), true
		}
	}
	return derived, false
}

// row resolves a wanted row, and tells whether that changed it. It fails when a row that must list it, or to which it
// refers, is not there.
func (r *resolver) row(w *Row) (changed bool, err error) {
	t, v := r.of(w.Model)
	if t == nil {
		return false, fmt.Errorf("a row of %s in %s, which is no table of ours", w.Key.Owner, w.Key.Table)
	}
	listIn, original := w.ListIn, w.Model
	for i, sl := range listIn {
		if child := r.Child(sl); child != t.name {
			return false, fmt.Errorf("%s of %s can't be listed in %s.%s: want a slot for rows of %s",
				t.name, w.Key.Owner, sl.In.Table, sl.Column, t.name)
		}
		in, there := r.find(sl.In)
		if !there {
			return false, &MissingParentError{Key: w.Key, Slot: sl}
		}
		if in != sl.In {
			if &w.ListIn[0] == &listIn[0] {
				w.ListIn = slices.Clone(listIn)
			}
			w.ListIn[i].In, changed = in, true
		}
	}
	for _, c := range t.references {
		targets, err := r.targets(w.Key, c, v)
		if err != nil {
			return false, err
		}
		if targets != nil {
			c.setTargets(r.edit(w, original, c), targets)
		}
	}
	for _, c := range t.newer {
		if !v.Field(c.field).IsZero() && r.view.Lacks(t.name, c.name) {
			r.edit(w, original, c).SetZero()
		}
	}
	if uuid, ok := r.moved[Ref{t.name, v.Field(t.uuid).String()}]; ok {
		r.edit(w, original, column{field: t.uuid}).SetString(uuid)
	}
	return changed || w.Model != original, nil
}

// edit is a column of a wanted row, to be written. The row gets a model of its own first.
func (r *resolver) edit(w *Row, original model.Model, c column) reflect.Value {
	if w.Model == original {
		w.Model = model.Clone(original)
	}
	_, v := r.of(w.Model)
	return v.Field(c.field)
}

// targets is the rows to which a column of a wanted row refers, resolved; nil when they are the same.
func (r *resolver) targets(k Key, c column, v reflect.Value) ([]string, error) {
	var out []string
	wanted := c.targets(v.Field(c.field))
	for i, uuid := range wanted {
		derived := Ref{c.table, uuid}
		at, there := r.find(derived)
		if !there {
			return nil, &MissingParentError{Key: k, Slot: Slot{In: derived}, Reference: c.name}
		}
		if at != derived {
			if out == nil {
				out = slices.Clone(wanted)
			}
			out[i] = at.UUID
		}
	}
	return out, nil
}

// find is the place of a row after the transaction; there is false when the row will not exist.
func (r *resolver) find(derived Ref) (at Ref, there bool) {
	if uuid, ok := r.moved[derived]; ok {
		return Ref{derived.Table, uuid}, true
	}
	if r.comes(derived) || r.wanted(derived) {
		return derived, true
	}
	for n := 1; n <= names.StandIns; n++ {
		if at := standIn(derived, n); r.comes(at) {
			return at, true
		}
	}
	return r.namesake(derived)
}

// comes tells whether a row is there or an earlier plan inserts it.
func (r *resolver) comes(at Ref) bool {
	if r.view.Row(at) != nil {
		return true
	}
	_, ok := r.inserted[at]
	return ok
}

// wanted tells whether a row is among the wanted ones.
func (r *resolver) wanted(ref Ref) bool {
	if r.own == nil {
		r.own = make(map[Ref]bool, len(r.want))
		for _, w := range r.want {
			r.own[r.Ref(w.Model)] = true
		}
	}
	return r.own[ref]
}

// Find is the place of the row with this derived UUID: the derived UUID or a stand-in. It is the derived one when there
// is no such row.
func (s *Schema) Find(v View, derived Ref) Ref {
	r := resolver{Schema: s, view: v}
	at, _ := r.find(derived)
	return at
}

// targets is the UUIDs in a reference column.
func (c column) targets(f reflect.Value) []string {
	if c.form == set {
		return list(f)
	}
	if f.IsNil() {
		return nil
	}
	return []string{f.Elem().String()}
}

// setTargets writes the UUIDs into a reference column.
func (c column) setTargets(f reflect.Value, uuids []string) {
	switch {
	case c.form == set:
		f.Set(reflect.ValueOf(uuids))
	case len(uuids) == 0:
		f.SetZero()
	default:
		f.Set(reflect.ValueOf(&uuids[0]))
	}
}
