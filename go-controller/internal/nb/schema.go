package nb

import (
	"reflect"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// Schema knows the tables we write, and which of their columns are ours.
type Schema struct {
	tables map[string]*table
	byType map[reflect.Type]*table
	order  []string
}

type table struct {
	name  string
	typ   reflect.Type // the nbdb struct
	root  bool         // rows live until deleted; others until nothing refers to them (RFC 7047 section 3.2, isRoot)
	marks bool         // has external_ids, so that its rows carry our mark
	cols  []column
	slots []slotColumn
	uuid  int // struct field of _uuid
	extID int // struct field of external_ids
	label int // struct field that a person knows the row by
	field map[string]int
}

type column struct {
	name  string
	field int
	form  form
	uuids bool // its elements are row references
}

// slotColumn is a column that lists rows of another table.
type slotColumn struct {
	name  string
	field int
	child string
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

// slotSpec is "column: child table".
type slotSpec struct{ column, child string }

// NewSchema describes the tables that this version writes.
func NewSchema() *Schema {
	s := &Schema{tables: map[string]*table{}, byType: map[reflect.Type]*table{}}
	s.add(nbdb.LogicalRouterTable, nbdb.LogicalRouter{}, true,
		[]string{"name", "options", "load_balancer_group", "external_ids"},
		slotSpec{"ports", nbdb.LogicalRouterPortTable}, slotSpec{"static_routes", nbdb.LogicalRouterStaticRouteTable},
		slotSpec{"nat", nbdb.NATTable}, slotSpec{"policies", nbdb.LogicalRouterPolicyTable})
	s.add(nbdb.LogicalSwitchTable, nbdb.LogicalSwitch{}, true,
		[]string{"name", "other_config", "load_balancer_group", "external_ids"},
		slotSpec{"ports", nbdb.LogicalSwitchPortTable}, slotSpec{"qos_rules", nbdb.QoSTable}, slotSpec{"load_balancer", nbdb.LoadBalancerTable},
		slotSpec{"acls", nbdb.ACLTable})
	s.add(nbdb.LogicalRouterPortTable, nbdb.LogicalRouterPort{}, false,
		[]string{"name", "mac", "networks", "options", "external_ids"})
	s.add(nbdb.LogicalRouterStaticRouteTable, nbdb.LogicalRouterStaticRoute{}, false,
		[]string{"ip_prefix", "nexthop", "output_port", "policy", "options", "external_ids"})
	s.add(nbdb.LogicalRouterPolicyTable, nbdb.LogicalRouterPolicy{}, false,
		[]string{"priority", "match", "action", "nexthops", "options", "external_ids"})
	s.add(nbdb.NATTable, nbdb.NAT{}, false,
		[]string{"type", "logical_ip", "external_ip", "external_port_range", "options", "external_ids"})
	s.add(nbdb.LogicalSwitchPortTable, nbdb.LogicalSwitchPort{}, false,
		[]string{"name", "type", "addresses", "port_security", "tag", "options", "external_ids"})
	s.add(nbdb.QoSTable, nbdb.QoS{}, false,
		[]string{"priority", "direction", "match", "bandwidth", "external_ids"})
	s.add(nbdb.ACLTable, nbdb.ACL{}, false,
		[]string{"priority", "direction", "match", "action", "options", "external_ids"})
	s.add(nbdb.LoadBalancerGroupTable, nbdb.LoadBalancerGroup{}, true,
		[]string{"name"}, slotSpec{"load_balancer", nbdb.LoadBalancerTable})
	s.add(nbdb.LoadBalancerTable, nbdb.LoadBalancer{}, true,
		[]string{"name", "protocol", "vips", "options", "selection_fields", "ip_port_mappings", "external_ids"},
		slotSpec{"health_check", nbdb.LoadBalancerHealthCheckTable})
	s.add(nbdb.LoadBalancerHealthCheckTable, nbdb.LoadBalancerHealthCheck{}, false,
		[]string{"vip", "options", "external_ids"})
	s.add(nbdb.AddressSetTable, nbdb.AddressSet{}, true,
		[]string{"name", "addresses", "external_ids"})
	return s
}

func (s *Schema) add(name string, zero any, root bool, cols []string, slots ...slotSpec) {
	typ := reflect.TypeOf(zero)
	t := &table{name: name, typ: typ, root: root, extID: -1, label: -1, field: map[string]int{}}
	for i := range typ.NumField() {
		t.field[typ.Field(i).Tag.Get("ovsdb")] = i
	}
	t.uuid = t.field["_uuid"]
	if i, ok := t.field["external_ids"]; ok {
		t.extID, t.marks = i, true
	}
	for _, l := range []string{"name", "ip_prefix", "logical_ip", "match", "vip"} {
		if i, ok := t.field[l]; ok && t.label < 0 && typ.Field(i).Type.Kind() == reflect.String {
			t.label = i
		}
	}
	for _, c := range cols {
		i := t.field[c]
		t.cols = append(t.cols, column{name: c, field: i, form: formOf(c, typ.Field(i).Type), uuids: c == "load_balancer_group"})
	}
	for _, sl := range slots {
		t.slots = append(t.slots, slotColumn{sl.column, t.field[sl.column], sl.child})
	}
	s.tables[name], s.byType[typ] = t, t
	s.order = append(s.order, name)
}

func formOf(column string, t reflect.Type) form {
	switch {
	case column == "external_ids":
		return shared
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Int:
		return numbers
	case t.Kind() == reflect.Map:
		return whole
	case t.Kind() == reflect.Slice:
		return set
	case t.Kind() == reflect.Pointer:
		return optional
	default:
		return scalar
	}
}

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

// of is the table and the struct value of a model; nil when m is not a model
// of a table of ours.
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

// Mark is the key in the row's ownership mark; ok is false when the row is not
// ours. A row without room for a mark is known by its name and UUID.
func (s *Schema) Mark(m model.Model) (k Key, ok bool) {
	if g, is := m.(*nbdb.LoadBalancerGroup); is && g != nil {
		kind, name, ok := names.LBGroupOwner(g.Name)
		k = Key{nbdb.LoadBalancerGroupTable, Owner{kind, name}, names.RoleLBGroup}
		return k, ok && g.UUID == names.RowUUID(k.Table, kind, name, k.Role, "")
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
		for key, val := range ids {
			out[key] = val
		}
		out[names.OwnerTypeKey], out[names.OwnerNameKey], out[names.RoleKey] = string(k.Owner.Kind), k.Owner.Name, k.Role
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

// Members lists what a slot column of the row lists; nothing for any other
// column.
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

// Child is the table whose rows a slot lists.
func (s *Schema) Child(sl Slot) string {
	if t, ok := s.tables[sl.In.Table]; ok {
		for _, c := range t.slots {
			if c.name == sl.Column {
				return c.child
			}
		}
	}
	return ""
}

// ParentTables lists the tables and columns that may list rows of the table.
func (s *Schema) ParentTables(child string) []Slot {
	var out []Slot
	for _, name := range s.order {
		for _, c := range s.tables[name].slots {
			if c.child == child {
				out = append(out, Slot{Ref{Table: name}, c.name})
			}
		}
	}
	return out
}

// Monitored is pointers to the fields of m that a monitor needs: the columns
// of ours and the slots. What others write all the time (up, dynamic_addresses)
// is not among them.
func (s *Schema) Monitored(m model.Model) []any {
	t, v := s.of(m)
	var out []any
	for _, c := range t.cols {
		out = append(out, v.Field(c.field).Addr().Interface())
	}
	for _, c := range t.slots {
		out = append(out, v.Field(c.field).Addr().Interface())
	}
	return out
}
