package nb

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"
)

// Database is a Northbound database in memory, for working without a server and for tests. It collects rows to which no
// reference is left and keeps references intact, as ovsdb-server does.
type Database struct {
	schema *Schema
	rows   map[Ref]model.Model
	index  *index // of the rows as they are; nil after a change
}

// index answers what a plan asks for each of its rows.
type index struct {
	owned   map[Owner][]Ref
	parents map[Ref][]Slot
}

// NewDatabase is an empty database.
func NewDatabase(s *Schema) *Database {
	return &Database{schema: s, rows: map[Ref]model.Model{}}
}

// Put adds a row, or replaces it, without regard to marks.
func (d *Database) Put(m model.Model) {
	d.index = nil
	d.rows[d.schema.Ref(m)] = model.Clone(m)
}

// Drop removes a row, the rows that only it kept, and every reference to what is gone, as an operator does who removes
// the row by hand.
func (d *Database) Drop(r Ref) {
	d.index = nil
	delete(d.rows, r)
	d.collect(func(column) bool { return true })
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
		byLabel := cmp.Compare(d.schema.Label(a), d.schema.Label(b))
		return cmp.Or(byLabel, cmp.Compare(d.schema.Ref(a).UUID, d.schema.Ref(b).UUID))
	})
	return out
}

// Owners lists every owner that a mark names.
func (d *Database) Owners() []Owner {
	return slices.SortedFunc(maps.Keys(d.indexed().owned), Owner.Compare)
}

// Owned implements View.
func (d *Database) Owned(o Owner) []Ref { return d.indexed().owned[o] }

// Row implements View. Who changes the row puts it again.
func (d *Database) Row(r Ref) model.Model { return d.rows[r] }

// Parents implements View.
func (d *Database) Parents(r Ref) []Slot {
	if d.rows[r] == nil {
		return nil // collect has removed every reference to it
	}
	return d.indexed().parents[r]
}

// indexed is the index of the rows.
func (d *Database) indexed() *index {
	if d.index != nil {
		return d.index
	}
	d.index = &index{owned: map[Owner][]Ref{}, parents: map[Ref][]Slot{}}
	for r, m := range d.rows {
		if k, ok := d.schema.Mark(m); ok {
			d.index.owned[k.Owner] = append(d.index.owned[k.Owner], r)
		}
		for _, sl := range d.schema.Slots(m) {
			for _, uuid := range d.schema.Members(m, sl.Column) {
				child := Ref{d.schema.Child(sl), uuid}
				d.index.parents[child] = append(d.index.parents[child], sl)
			}
		}
	}
	for _, slots := range d.index.parents {
		slices.SortFunc(slots, Slot.Compare)
	}
	return d.index
}

// Lists implements View.
func (d *Database) Lists(s Slot, uuid string) bool {
	m := d.rows[s.In]
	return m != nil && slices.Contains(d.schema.Members(m, s.Column), uuid)
}

// Spent implements View: no ovn-northd watches a database in memory.
func (d *Database) Spent(Ref) bool { return false }

// Lacks implements View: a database in memory has every column.
func (d *Database) Lacks(string, string) bool { return false }

// Apply carries plans out as one transaction. After an error the content is undefined.
func (d *Database) Apply(plans ...Plan) error {
	d.index = nil
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
	d.collect(func(c column) bool { return c.weak })
	return d.dangling()
}

func (d *Database) applyRow(rc RowChange) error {
	ref := rc.Ref()
	_, there := d.rows[ref]
	switch rc.Verb {
	case Insert:
		if there {
			return fmt.Errorf("inserting %s %s: duplicate uuid", ref.Table, ref.UUID)
		}
		d.Put(rc.Model)
		return nil
	case Delete:
		if !d.schema.DeletedByGC(ref.Table) {
			delete(d.rows, ref)
		}
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
	add, remove := []string{m.UUID}, []string(nil)
	if m.Remove {
		add, remove = remove, add
	}
	f.Set(reflect.ValueOf(setApply(list(f), add, remove)))
	return nil
}

// collect removes rows to which no strong reference is left until nothing changes. It also removes references to rows
// that are gone, from the columns that drop selects.
func (d *Database) collect(drop func(column) bool) {
	for changed := true; changed; {
		changed = false
		kept := map[Ref]bool{}
		for _, m := range d.rows {
			t, v := d.schema.of(m)
			for _, c := range t.references {
				if drop(c) {
					d.dropDangling(c, v.Field(c.field))
				}
				for _, uuid := range c.targets(v.Field(c.field)) {
					kept[Ref{c.table, uuid}] = kept[Ref{c.table, uuid}] || !c.weak
				}
			}
		}
		for r := range d.rows {
			if d.schema.DeletedByGC(r.Table) && !kept[r] {
				delete(d.rows, r)
				changed = true
			}
		}
	}
}

// dropDangling removes references to rows that are gone from a column.
func (d *Database) dropDangling(c column, f reflect.Value) {
	old := c.targets(f)
	gone := func(uuid string) bool { return d.rows[Ref{c.table, uuid}] == nil }
	if slices.ContainsFunc(old, gone) {
		c.setTargets(f, slices.DeleteFunc(slices.Clone(old), gone))
	}
}

// dangling is an error when a strong reference points to no row: the server refuses such a transaction.
func (d *Database) dangling() error {
	for r, m := range d.rows {
		t, v := d.schema.of(m)
		for _, c := range t.references {
			for _, uuid := range c.targets(v.Field(c.field)) {
				if d.rows[Ref{c.table, uuid}] == nil {
					return fmt.Errorf("applying plans: %s.%s of row %s refers to row %s of %s, which does not exist",
						r.Table, c.name, r.UUID, uuid, c.table)
				}
			}
		}
	}
	return nil
}
