package nb

import (
	"maps"
	"reflect"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// Schema knows the tables that this version writes, which of their columns are ours, and to which rows these columns
// refer.
type Schema struct {
	tables map[string]*table
	byType map[reflect.Type]*table
	order  []string
}

type table struct {
	name string
	typ  reflect.Type // the nbdb struct
	// root says that rows live until they are deleted. Others go with the last strong reference to them (RFC 7047
	// section 3.2, isRoot).
	root       bool
	marks      bool // has external_ids, so that its rows carry our mark
	cols       []column
	slots      []column
	references []column // of cols and slots, those that refer to rows
	newer      []column // of cols, those that a server may lack
	uuid       int      // struct field of _uuid
	extID      int      // struct field of external_ids
	label      int      // struct field that a person knows the row by
	field      map[string]int
}

// column is a column of ours or a slot.
type column struct {
	name  string
	field int
	form  form
	table string // the table to whose rows the column refers; "" for plain values
	weak  bool   // a reference to a row that goes is removed; a strong one keeps the row
}

// form is how a column is compared and changed.
type form int

const (
	scalar   form = iota // string, int, bool
	optional             // pointer: nil or one value
	set                  // []string: changed member by member
	whole                // map[string]string, every key of which is ours
	shared               // map[string]string, of which only marked keys are ours
	numbers              // map[string]int, every key of which is ours
)

// Tables lists the tables, parents before what they list.
func (s *Schema) Tables() []string { return s.order }

// NewModel is an empty row of a table, nil for a table that is not ours.
func (s *Schema) NewModel(name string) model.Model {
	t, ok := s.tables[name]
	if !ok {
		return nil
	}
	return reflect.New(t.typ).Interface()
}

// Marked tells whether rows of the table carry the ownership mark.
func (s *Schema) Marked(name string) bool { t, ok := s.tables[name]; return ok && t.marks }

// of is the table and the struct value of a model; nil when m is not a model of a table of ours.
func (s *Schema) of(m model.Model) (*table, reflect.Value) {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return nil, reflect.Value{}
	}
	v = v.Elem()
	return s.byType[v.Type()], v
}

// Ref is the table and UUID of a row.
func (s *Schema) Ref(m model.Model) Ref {
	t, v := s.of(m)
	if t == nil {
		return Ref{}
	}
	return Ref{t.name, v.Field(t.uuid).String()}
}

// Label is the name a person knows the row by.
func (s *Schema) Label(m model.Model) string {
	t, v := s.of(m)
	if t == nil || t.label < 0 {
		return ""
	}
	return v.Field(t.label).String()
}

// Mark is the key in the row's ownership mark; ok is false when the row is not ours. A row without room for a mark is
// known by its name. There is only one row of a name (ovn-nb(5), Load_Balancer_Group). It may have any UUID: a copy
// of a database that was put back with ovsdb-client(1) has new ones.
func (s *Schema) Mark(m model.Model) (k Key, ok bool) {
	if g, is := m.(*nbdb.LoadBalancerGroup); is && g != nil {
		kind, name, role, ok := names.LBGroupOwner(g.Name)
		return Key{nbdb.LoadBalancerGroupTable, Owner{kind, name}, role}, ok
	}
	t, v := s.of(m)
	if t == nil || !t.marks {
		return Key{}, false
	}
	ids := dict(v.Field(t.extID))
	k = Key{t.name, Owner{names.Kind(ids[names.OwnerTypeKey]), ids[names.OwnerNameKey]}, ids[names.RoleKey]}
	return k, k.Owner.Kind != "" && k.Owner.Name != ""
}

// NewRow completes a wanted row: it puts the mark of k into m.
func (s *Schema) NewRow(k Key, m model.Model, listIn ...Slot) Row {
	if t, v := s.of(m); t != nil && t.marks {
		ids := dict(v.Field(t.extID))
		out := make(map[string]string, len(ids)+3)
		maps.Copy(out, ids)
		out[names.OwnerTypeKey], out[names.OwnerNameKey] = string(k.Owner.Kind), k.Owner.Name
		out[names.RoleKey] = k.Role
		v.Field(t.extID).Set(reflect.ValueOf(out))
	}
	return Row{Key: k, Model: m, ListIn: listIn}
}

// SlotMembers lists, for every slot column of the row, what it lists.
func (s *Schema) SlotMembers(m model.Model) map[Slot][]string {
	slots := s.Slots(m)
	if slots == nil {
		return nil
	}
	out := make(map[Slot][]string, len(slots))
	for _, sl := range slots {
		out[sl] = s.Members(m, sl.Column)
	}
	return out
}

// Slots lists the slots that a row has.
func (s *Schema) Slots(m model.Model) []Slot {
	t, v := s.of(m)
	if t == nil || len(t.slots) == 0 {
		return nil
	}
	out := make([]Slot, len(t.slots))
	for i, c := range t.slots {
		out[i] = Slot{Ref{t.name, v.Field(t.uuid).String()}, c.name}
	}
	return out
}

// Members lists what a slot column of the row lists; nothing for any other column.
func (s *Schema) Members(m model.Model, column string) []string {
	t, v := s.of(m)
	if t == nil {
		return nil
	}
	for _, c := range t.slots {
		if c.name == column {
			return list(v.Field(c.field))
		}
	}
	return nil
}

// slot is the column of a slot; ok is false when the table has no such slot.
func (s *Schema) slot(sl Slot) (c column, ok bool) {
	if t := s.tables[sl.In.Table]; t != nil {
		if i := slices.IndexFunc(t.slots, func(c column) bool { return c.name == sl.Column }); i >= 0 {
			return t.slots[i], true
		}
	}
	return column{}, false
}

// Child is the table whose rows a slot lists; "" when there is no such slot.
func (s *Schema) Child(sl Slot) string {
	c, _ := s.slot(sl)
	return c.table
}

// Keeps tells whether the slot is a strong reference: a row of a table that is not a root stays as long as such a slot
// lists it. A weak reference keeps no row: the server removes it when the row goes.
func (s *Schema) Keeps(sl Slot) bool {
	c, ok := s.slot(sl)
	return ok && !c.weak
}

// ParentTables lists the tables and columns that may list rows of the table.
func (s *Schema) ParentTables(child string) []Slot {
	var out []Slot
	for _, name := range s.order {
		for _, c := range s.tables[name].slots {
			if c.table == child {
				out = append(out, Slot{Ref{Table: name}, c.name})
			}
		}
	}
	return out
}

// Newer lists the columns of the table that a server with an older schema may lack.
func (s *Schema) Newer(name string) []string {
	var out []string
	if t := s.tables[name]; t != nil {
		for _, c := range t.newer {
			out = append(out, c.name)
		}
	}
	return out
}

// Monitored lists the columns of the table that a monitor needs: those of ours and the slots, except those that the
// server lacks. It leaves out what others write all the time (up, dynamic_addresses).
func (s *Schema) Monitored(name string, lacking ...string) []string {
	t, ok := s.tables[name]
	if !ok {
		return nil
	}
	var out []string
	for _, c := range slices.Concat(t.cols, t.slots) {
		if !slices.Contains(lacking, c.name) {
			out = append(out, c.name)
		}
	}
	return out
}
