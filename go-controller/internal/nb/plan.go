package nb

import (
	"cmp"
	"maps"
	"slices"

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

// ColumnChange is what happens to one column. Which fields are set depends on the column's form.
type ColumnChange struct {
	Column   string
	Old, New any // a scalar or optional column: string, int, bool, or nil

	Add, Remove []string // a set column: members, sorted
	UUIDs       bool     // the column refers to rows

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
	Derived string         // Insert: the UUID by which other rows refer to it; UUID is that, or a stand-in
	Model   model.Model    // Insert: the whole row
	Columns []ColumnChange // Update: what differs; Insert: every column that is set
}

// Ref points at the changed row.
func (r RowChange) Ref() Ref { return Ref{r.Key.Table, r.UUID} }

// Membership puts a row into a slot or takes it out.
type Membership struct {
	Slot   Slot
	In     string // label of the slot's row
	Key    Key
	UUID   string
	Label  string
	Remove bool
	// Implied says that the row is deleted and the slot is a weak reference: the server takes the row out by itself.
	// ovsdb-server 3.1 forgets to when something else changes in the slot's row in the same transaction. Then the
	// transaction must take the row out explicitly.
	Implied bool
}

// Ref points at the row that the slot lists.
func (m Membership) Ref() Ref { return Ref{m.Key.Table, m.UUID} }

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

// Scope tells a Plan which rows other plans of the same transaction add, and their labels.
type Scope map[Ref]string

// Plan compares what v has of owner o with what it wants. inserted holds the rows that earlier plans of the same
// transaction insert; the rows that this plan inserts are added to it. It returns a *MissingParentError, and no plan,
// when a row that must list one of the wanted rows, or to which one refers, is neither there nor inserted.
func (s *Schema) Plan(v View, o Owner, want []Row, inserted Scope) (Plan, error) {
	p := Plan{Owner: o}
	resolver := resolver{Schema: s, view: v, want: want, inserted: inserted}
	rows, err := resolver.rows()
	if err != nil {
		return p, err
	}
	have := s.have(v, o)
	wanted := make(map[Ref]bool, len(rows))
	fresh := Scope{}
	for i, w := range rows {
		ref := s.Ref(w.Model)
		change := RowChange{Verb: Update, Key: w.Key, UUID: ref.UUID, Label: s.Label(w.Model)}
		h := v.Row(ref)
		wanted[ref] = true
		if h == nil {
			change.Verb, change.Model, change.Derived = Insert, w.Model, s.Ref(want[i].Model).UUID
			h = s.NewModel(ref.Table)
			fresh[ref] = change.Label
		}
		change.Columns = s.diff(h, w.Model)
		if change.Verb == Insert || len(change.Columns) > 0 {
			p.Rows = append(p.Rows, change)
		}
	}
	for _, w := range rows {
		p.Members = append(p.Members, s.memberships(v, w, fresh, inserted)...)
	}
	for _, h := range have {
		if !wanted[h.Ref] {
			s.remove(&p, v, h.Ref, h.Key)
		}
	}
	if inserted != nil {
		maps.Copy(inserted, fresh)
	}
	p.sort()
	return p, nil
}

// owned is a row of an owner, with the key in its mark.
type owned struct {
	Ref
	Key Key
}

// have is the owner's rows.
func (s *Schema) have(v View, o Owner) []owned {
	var out []owned
	for _, ref := range v.Owned(o) {
		if k, ok := s.Mark(v.Row(ref)); ok && k.Owner == o {
			out = append(out, owned{ref, k})
		}
	}
	return out
}

// memberships is what moves a row into the slots that must list it and out of others.
func (s *Schema) memberships(v View, w Row, fresh, inserted Scope) []Membership {
	var out []Membership
	ref := s.Ref(w.Model)
	m := Membership{Key: w.Key, UUID: ref.UUID, Label: s.Label(w.Model)}
	parents := v.Parents(ref) // nearly always these are just w.ListIn
	for _, m.Slot = range w.ListIn {
		if slices.Contains(parents, m.Slot) {
			continue
		}
		parent := v.Row(m.Slot.In)
		if parent != nil && v.Lists(m.Slot, ref.UUID) {
			continue
		}
		m.In = s.labelIn(parent, m.Slot.In, fresh, inserted)
		out = append(out, m)
	}
	m.Remove = true // a slot may list even a row that is not inserted yet, see Membership.Implied
	for _, m.Slot = range parents {
		if parent := v.Row(m.Slot.In); !slices.Contains(w.ListIn, m.Slot) && s.ours(parent) {
			m.In = s.Label(parent)
			out = append(out, m)
		}
	}
	return out
}

// labelIn is the label of a row that is there or is being inserted.
func (s *Schema) labelIn(row model.Model, ref Ref, fresh, inserted Scope) string {
	if row != nil {
		return s.Label(row)
	}
	if label, ok := fresh[ref]; ok {
		return label
	}
	return inserted[ref]
}

// ours tells whether a row may be changed by a plan: it carries our mark, or, in a table that has no room for one, has
// a name as we give them, or a UUID as we derive them.
func (s *Schema) ours(m model.Model) bool {
	if _, ok := s.Mark(m); ok {
		return true
	}
	ref := s.Ref(m)
	return !s.Marked(ref.Table) && names.IsRowUUID(ref.UUID)
}

// remove plans the end of a row. A row of a table that is not a root is deleted by taking it out of the slots that keep
// it. Weak references go with the row.
func (s *Schema) remove(p *Plan, v View, ref Ref, k Key) {
	label := s.Label(v.Row(ref))
	p.Rows = append(p.Rows, RowChange{Verb: Delete, Key: k, UUID: ref.UUID, Label: label})
	m := Membership{Key: k, UUID: ref.UUID, Label: label, Remove: true}
	for _, m.Slot = range v.Parents(ref) {
		parent := v.Row(m.Slot.In)
		m.In, m.Implied = s.Label(parent), !s.Keeps(m.Slot)
		if !m.Implied || s.ours(parent) {
			p.Members = append(p.Members, m)
		}
	}
}

// DeletedByGC tells whether the server deletes a row of the table by itself when no strong reference to it is left, so
// that no delete operation is sent.
func (s *Schema) DeletedByGC(name string) bool { t, ok := s.tables[name]; return ok && !t.root }

func (p *Plan) sort() {
	slices.SortFunc(p.Rows, func(a, b RowChange) int {
		return cmp.Or(cmp.Compare(a.Verb, b.Verb), compareKeys(a.Key, b.Key), cmp.Compare(a.UUID, b.UUID))
	})
	slices.SortFunc(p.Members, func(a, b Membership) int {
		return cmp.Or(a.Slot.Compare(b.Slot), compareKeys(a.Key, b.Key), cmp.Compare(a.UUID, b.UUID))
	})
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), a.Owner.Compare(b.Owner), cmp.Compare(a.Role, b.Role))
}

// Compare orders slots by the row that has them, and then by column.
func (s Slot) Compare(o Slot) int {
	return cmp.Or(cmp.Compare(s.In.Table, o.In.Table), cmp.Compare(s.In.UUID, o.In.UUID), cmp.Compare(s.Column, o.Column))
}
