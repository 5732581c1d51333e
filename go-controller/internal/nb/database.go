package nb

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"
)

// Database is a Northbound database in memory: what Apply of plans on an empty
// database leads to, with OVSDB's garbage collection and weak references. It
// is for working without a server and for tests.
type Database struct {
	schema *Schema
	rows   map[Ref]model.Model
}

// NewDatabase is an empty database.
func NewDatabase(s *Schema) *Database {
	return &Database{schema: s, rows: map[Ref]model.Model{}}
}

// Put adds a row, or replaces it, without regard to marks.
func (d *Database) Put(m model.Model) { d.rows[d.schema.Ref(m)] = model.Clone(m) }

// Drop removes a row and what only it listed.
func (d *Database) Drop(r Ref) {
	delete(d.rows, r)
	d.collect()
}

// Rows lists the rows of a table, ordered by label and UUID.
func (d *Database) Rows(table string) []model.Model {
	var out []model.Model
	for r, m := range d.rows {
		if r.Table == table {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b model.Model) int {
		return cmp.Or(cmp.Compare(d.schema.Label(a), d.schema.Label(b)), cmp.Compare(d.schema.Ref(a).UUID, d.schema.Ref(b).UUID))
	})
	return out
}

// Owners lists every owner that a mark names.
func (d *Database) Owners() []Owner {
	seen := map[Owner]bool{}
	for _, m := range d.rows {
		if k, ok := d.schema.Mark(m); ok {
			seen[k.Owner] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), Owner.Compare)
}

// Owned implements View.
func (d *Database) Owned(o Owner) []Ref {
	var out []Ref
	for r, m := range d.rows {
		if k, ok := d.schema.Mark(m); ok && k.Owner == o {
			out = append(out, r)
		}
	}
	return out
}

// Row implements View.
func (d *Database) Row(r Ref) model.Model { return d.rows[r] }

// Parents implements View.
func (d *Database) Parents(r Ref) []Slot {
	var out []Slot
	for _, m := range d.rows {
		for sl, members := range d.schema.SlotMembers(m) {
			if d.schema.Child(sl) == r.Table && slices.Contains(members, r.UUID) {
				out = append(out, sl)
			}
		}
	}
	slices.SortFunc(out, compareSlots)
	return out
}

// Lists implements View.
func (d *Database) Lists(s Slot, uuid string) bool {
	m := d.rows[s.In]
	return m != nil && slices.Contains(d.schema.Members(m, s.Column), uuid)
}

// Spent implements View: nobody has to forget a row of a database in memory.
func (d *Database) Spent(Ref) bool { return false }

// Apply carries plans out as one transaction.
func (d *Database) Apply(plans ...Plan) error {
	for _, p := range plans {
		for _, rc := range p.Rows {
			if err := d.applyRow(rc); err != nil {
				return fmt.Errorf("applying plan of %s: %w", p.Owner, err)
			}
		}
	}
	for _, p := range plans {
		for _, m := range p.Members {
			if err := d.applyMember(m); err != nil {
				return fmt.Errorf("applying plan of %s: %w", p.Owner, err)
			}
		}
	}
	d.collect()
	return nil
}

func (d *Database) applyRow(rc RowChange) error {
	ref := Ref{rc.Key.Table, rc.UUID}
	_, there := d.rows[ref]
	switch rc.Verb {
	case Insert:
		if there {
			return fmt.Errorf("inserting %s %s: duplicate uuid", ref.Table, ref.UUID)
		}
		d.Put(rc.Model)
		return nil
	case Delete:
		delete(d.rows, ref)
		return nil
	}
	if !there {
		return fmt.Errorf("updating %s %s: no such row", ref.Table, ref.UUID)
	}
	t, v := d.schema.of(d.rows[ref])
	for _, c := range rc.Columns {
		applyColumn(v.Field(t.field[c.Column]), c)
	}
	return nil
}

func applyColumn(f reflect.Value, c ColumnChange) {
	switch f.Kind() {
	case reflect.Slice:
		old, _ := f.Interface().([]string)
		f.Set(reflect.ValueOf(setApply(old, c.Add, c.Remove)))
	case reflect.Map:
		if c.Numbers {
			old, _ := f.Interface().(map[string]int)
			f.Set(reflect.ValueOf(mapApply(old, c.Drop, c.Integers())))
		} else {
			old, _ := f.Interface().(map[string]string)
			f.Set(reflect.ValueOf(mapApply(old, c.Drop, c.Put)))
		}
	case reflect.Pointer:
		if c.New == nil {
			f.SetZero()
			return
		}
		p := reflect.New(f.Type().Elem())
		p.Elem().Set(reflect.ValueOf(c.New))
		f.Set(p)
	default:
		f.Set(reflect.ValueOf(c.New))
	}
}

func mapApply[V any](old map[string]V, drop []string, put map[string]V) map[string]V {
	out := make(map[string]V, len(old)+len(put))
	maps.Copy(out, old)
	for _, k := range drop {
		delete(out, k)
	}
	maps.Copy(out, put)
	return out
}

func setApply(old, add, remove []string) []string {
	out := slices.DeleteFunc(slices.Clone(old), func(x string) bool { return slices.Contains(remove, x) })
	for _, x := range add {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	slices.Sort(out)
	return out
}

func (d *Database) applyMember(m Membership) error {
	parent, there := d.rows[m.Slot.In]
	if !there {
		if m.Remove {
			return nil
		}
		return fmt.Errorf("listing %s: no row %s %s", m.UUID, m.Slot.In.Table, m.Slot.In.UUID)
	}
	t, v := d.schema.of(parent)
	f := v.Field(t.field[m.Slot.Column])
	old, _ := f.Interface().([]string)
	if m.Remove {
		f.Set(reflect.ValueOf(setApply(old, nil, []string{m.UUID})))
	} else {
		f.Set(reflect.ValueOf(setApply(old, []string{m.UUID}, nil)))
	}
	return nil
}

// collect drops what nothing lists any more, and references to rows that are
// gone, until nothing changes.
func (d *Database) collect() {
	for changed := true; changed; {
		changed = false
		listed := map[Ref]bool{}
		for _, m := range d.rows {
			for sl, members := range d.schema.SlotMembers(m) {
				child := d.schema.Child(sl)
				for _, u := range members {
					listed[Ref{child, u}] = true
				}
				d.dropDangling(m, sl, child)
			}
		}
		for r := range d.rows {
			if d.schema.DeletedByGC(r.Table) && !listed[r] {
				delete(d.rows, r)
				changed = true
			}
		}
	}
}

func (d *Database) dropDangling(m model.Model, sl Slot, child string) {
	t, v := d.schema.of(m)
	f := v.Field(t.field[sl.Column])
	old, _ := f.Interface().([]string)
	kept := slices.DeleteFunc(slices.Clone(old), func(u string) bool { return d.rows[Ref{child, u}] == nil })
	if len(kept) != len(old) {
		f.Set(reflect.ValueOf(kept))
	}
}
