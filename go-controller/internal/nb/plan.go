package nb

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Verb is what happens to a row.
type Verb int

// The verbs.
const (
	Insert Verb = iota
	Update
	Delete
)

// ColumnChange is the change of one column, in one of three forms.
type ColumnChange struct {
	Column   string
	Old, New any // a scalar or optional column: string, int, bool, or nil

	Add, Remove []string // a set column: members, sorted
	UUIDs       bool     // the members are row references

	Put  map[string]string // a map column: keys to write, after Drop
	Drop []string          // keys to remove, sorted; a key whose value changes is in both
	Was  map[string]string // what dropped keys had
	// The values of the map are integers; Put and Was have them in decimal.
	Numbers bool
}

// RowChange is what happens to one row.
type RowChange struct {
	Verb    Verb
	Key     Key
	UUID    string
	Label   string
	Model   model.Model    // Insert: the whole row
	Columns []ColumnChange // Update: what differs; Insert: every column that is set
}

// Membership puts a row into a slot or takes it out.
type Membership struct {
	Slot   Slot
	In     string // label of the slot's row
	Key    Key
	UUID   string
	Label  string
	Remove bool
}

// Plan is everything that moves one owner's rows from have to want.
type Plan struct {
	Owner   Owner
	Rows    []RowChange
	Members []Membership
}

// Empty tells whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Rows) == 0 && len(p.Members) == 0 }

// Ops is how many OVSDB operations the plan takes at most.
func (p Plan) Ops() int { return len(p.Rows) + len(p.Members) }

// Scope tells a Plan which rows other plans of the same transaction add, and
// their labels.
type Scope map[Ref]string

// Plan compares what v has of owner o with what it wants. inserted holds the
// rows that earlier plans of the same batch insert; the rows that this plan
// inserts are added to it. It returns a *MissingParentError, and no plan, when
// a slot's row is neither there nor inserted.
func (s *Schema) Plan(v View, o Owner, want []Row, inserted Scope) (Plan, error) {
	p := Plan{Owner: o}
	have := s.have(v, o)
	fresh := Scope{}
	want = s.placed(v, want)
	for _, w := range want {
		ref := s.Ref(w.Model)
		h := v.Row(ref)
		delete(have, ref)
		if h == nil {
			p.Rows = append(p.Rows, s.insertion(w, ref))
			fresh[ref] = s.Label(w.Model)
		} else if cols := s.diff(h, w.Model); len(cols) > 0 {
			p.Rows = append(p.Rows, RowChange{Verb: Update, Key: w.Key, UUID: ref.UUID, Label: s.Label(w.Model), Columns: cols})
		}
	}
	for _, w := range want {
		m, err := s.memberships(v, w, fresh, inserted)
		if err != nil {
			return Plan{Owner: o}, err
		}
		p.Members = append(p.Members, m...)
	}
	for ref, k := range have {
		s.remove(&p, v, ref, k)
	}
	if inserted != nil {
		maps.Copy(inserted, fresh)
	}
	p.sort()
	return p, nil
}

// have is the owner's rows by reference, each with the key in its mark.
func (s *Schema) have(v View, o Owner) map[Ref]Key {
	out := map[Ref]Key{}
	for _, ref := range v.Owned(o) {
		if k, ok := s.Mark(v.Row(ref)); ok && k.Owner == o {
			out[ref] = k
		}
	}
	return out
}

func (s *Schema) insertion(w Row, ref Ref) RowChange {
	return RowChange{Verb: Insert, Key: w.Key, UUID: ref.UUID, Label: s.Label(w.Model), Model: w.Model,
		Columns: s.diff(s.NewModel(ref.Table), w.Model)}
}

func (s *Schema) memberships(v View, w Row, fresh, inserted Scope) ([]Membership, error) {
	var out []Membership
	ref := s.Ref(w.Model)
	label := s.Label(w.Model)
	for _, sl := range w.ListIn {
		parent := v.Row(sl.In)
		in, known := s.labelIn(parent, sl.In, fresh, inserted)
		if !known {
			return nil, &MissingParentError{Key: w.Key, Slot: sl}
		}
		if parent == nil || !v.Lists(sl, ref.UUID) {
			out = append(out, Membership{Slot: sl, In: in, Key: w.Key, UUID: ref.UUID, Label: label})
		}
	}
	if _, isFresh := fresh[ref]; isFresh {
		return out, nil // nothing lists a row that does not exist
	}
	for _, sl := range v.Parents(ref) {
		if parent := v.Row(sl.In); !slices.Contains(w.ListIn, sl) && s.ours(parent) {
			out = append(out, Membership{Slot: sl, In: s.Label(parent), Key: w.Key, UUID: ref.UUID, Label: label, Remove: true})
		}
	}
	return out, nil
}

// labelIn is the label of a row that is there or is being inserted; known is
// false when it is neither.
func (s *Schema) labelIn(row model.Model, ref Ref, inserted ...Scope) (label string, known bool) {
	if row != nil {
		return s.Label(row), true
	}
	for _, scope := range inserted {
		if label, known = scope[ref]; known {
			return label, true
		}
	}
	return "", false
}

// ours tells whether a row may be changed by a plan: it carries our mark, or,
// in a table that has no room for one, has a UUID as we derive them.
func (s *Schema) ours(m model.Model) bool {
	if _, ok := s.Mark(m); ok {
		return true
	}
	ref := s.Ref(m)
	return !s.Marked(ref.Table) && names.IsRowUUID(ref.UUID)
}

// remove plans the end of a row. A row of a table that is not a root goes when
// nothing lists it any more; a weak reference goes with the row.
func (s *Schema) remove(p *Plan, v View, ref Ref, k Key) {
	label := s.Label(v.Row(ref))
	p.Rows = append(p.Rows, RowChange{Verb: Delete, Key: k, UUID: ref.UUID, Label: label})
	if s.tables[ref.Table].root {
		return
	}
	for _, sl := range v.Parents(ref) {
		p.Members = append(p.Members, Membership{Slot: sl, In: s.Label(v.Row(sl.In)), Key: k, UUID: ref.UUID, Label: label, Remove: true})
	}
}

// DeletedByGC tells whether rows of the table go by themselves when nothing
// lists them, so that no delete operation is sent.
func (s *Schema) DeletedByGC(name string) bool { t, ok := s.tables[name]; return ok && !t.root }

// SameColumns tells whether two versions of a row of a database have the same
// in every column of ours, whatever rows they list: whether diff is empty.
func (s *Schema) SameColumns(before, after model.Model) bool {
	t, b := s.of(before)
	if t == nil {
		return false
	}
	_, a := s.of(after)
	return !slices.ContainsFunc(t.cols, func(c column) bool { return !c.same(b.Field(c.field), a.Field(c.field)) })
}

// same tells whether diff of two values of a database is empty. A set there has
// no duplicates, so that most changes show without sorting.
func (c column) same(h, w reflect.Value) bool {
	switch c.form {
	case set:
		if len(list(h)) != len(list(w)) {
			return false
		}
	case whole, shared:
		if maps.Equal(dict(h), dict(w)) {
			return true
		}
	}
	_, differs := c.diff(h, w)
	return !differs
}

// diff lists the columns of ours in which want differs from have.
func (s *Schema) diff(have, want model.Model) []ColumnChange {
	t, w := s.of(want)
	_, h := s.of(have)
	var out []ColumnChange
	for _, c := range t.cols {
		if d, differs := c.diff(h.Field(c.field), w.Field(c.field)); differs {
			out = append(out, d)
		}
	}
	return out
}

func (c column) diff(h, w reflect.Value) (ColumnChange, bool) {
	d := ColumnChange{Column: c.name}
	switch c.form {
	case set:
		d.UUIDs = c.uuids
		d.Add, d.Remove = setDiff(list(h), list(w))
		return d, len(d.Add)+len(d.Remove) > 0
	case whole, shared:
		d.mapDiff(dict(h), dict(w), c.form == shared)
		return d, len(d.Put)+len(d.Drop) > 0
	case numbers:
		d.Numbers = true
		d.mapDiff(decimals(h), decimals(w), false)
		return d, len(d.Put)+len(d.Drop) > 0
	default:
		if h.Kind() == reflect.String && h.String() == w.String() {
			return d, false
		}
		d.Old, d.New = plain(h), plain(w)
		return d, d.Old != d.New
	}
}

// list is the value of a set column; it is read through its address because
// Interface of the value itself would allocate.
func list(v reflect.Value) []string {
	if l, ok := v.Addr().Interface().(*[]string); ok {
		return *l
	}
	return nil
}

// dict is the value of a map column of strings, read as list does.
func dict(v reflect.Value) map[string]string {
	if m, ok := v.Addr().Interface().(*map[string]string); ok {
		return *m
	}
	return nil
}

// plain is the value of a scalar or optional column; nil for an empty optional.
func plain(v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	return v.Interface()
}

// decimals is a map[string]int with its values in decimal.
func decimals(v reflect.Value) map[string]string {
	m, _ := v.Interface().(map[string]int)
	out := make(map[string]string, len(m))
	for k, n := range m {
		out[k] = strconv.Itoa(n)
	}
	return out
}

// Integers is Put with its values as integers, for a column of Numbers.
func (d ColumnChange) Integers() map[string]int {
	out := make(map[string]int, len(d.Put))
	for k, n := range d.Put {
		out[k], _ = strconv.Atoi(n) // a plan writes what decimals wrote
	}
	return out
}

// setDiff is what is in want and not in have, and what is in have and not in
// want, both sorted and without duplicates. Both sides are sorted already more
// often than not, and may have a member for every pod of a namespace.
func setDiff(have, want []string) (add, remove []string) {
	if slices.Equal(have, want) {
		return nil, nil
	}
	have, want = sorted(have), sorted(want)
	for len(have) > 0 || len(want) > 0 {
		switch {
		case len(have) == 0 || len(want) > 0 && want[0] < have[0]:
			add = append(add, want[0])
			want = after(want)
		case len(want) == 0 || have[0] < want[0]:
			remove = append(remove, have[0])
			have = after(have)
		default:
			have, want = after(have), after(want)
		}
	}
	return add, remove
}

// sorted is the members in order; l itself when they are.
func sorted(l []string) []string {
	if slices.IsSorted(l) {
		return l
	}
	l = slices.Clone(l)
	slices.Sort(l)
	return l
}

// after is a sorted list without its first member and that one's duplicates.
func after(l []string) []string {
	i := 1
	for i < len(l) && l[i] == l[0] {
		i++
	}
	return l[i:]
}

func (d *ColumnChange) mapDiff(have, want map[string]string, sharedKeys bool) {
	for k, w := range want {
		h, there := have[k]
		if there && h == w {
			continue
		}
		if d.Put == nil {
			d.Put = map[string]string{}
		}
		d.Put[k] = w
		if there {
			d.drop(k, h)
		}
	}
	for k, h := range have {
		if _, wanted := want[k]; !wanted && (!sharedKeys || ownKey(k)) {
			d.drop(k, h)
		}
	}
	slices.Sort(d.Drop)
}

func (d *ColumnChange) drop(key, was string) {
	if d.Was == nil {
		d.Was = map[string]string{}
	}
	d.Drop = append(d.Drop, key)
	d.Was[key] = was
}

// ownKey tells whether an external_ids key is ours to remove.
func ownKey(k string) bool {
	return strings.HasPrefix(k, names.KeyPrefix) || slices.Contains(names.ClassicKeys(), k)
}

func (p *Plan) sort() {
	slices.SortFunc(p.Rows, func(a, b RowChange) int {
		return cmp.Or(cmp.Compare(a.Verb, b.Verb), compareKeys(a.Key, b.Key), cmp.Compare(a.UUID, b.UUID))
	})
	slices.SortFunc(p.Members, func(a, b Membership) int {
		return cmp.Or(compareSlots(a.Slot, b.Slot), compareKeys(a.Key, b.Key), cmp.Compare(a.UUID, b.UUID))
	})
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), a.Owner.Compare(b.Owner), cmp.Compare(a.Role, b.Role))
}

func compareSlots(a, b Slot) int {
	return cmp.Or(cmp.Compare(a.In.Table, b.In.Table), cmp.Compare(a.In.UUID, b.In.UUID), cmp.Compare(a.Column, b.Column))
}
