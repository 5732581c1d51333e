package nb

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// NewSchema describes the tables that this version writes. A test holds that describe finds nothing wrong with them.
func NewSchema() *Schema {
	s, _ := describe(nbdb.Schema(), nbdb.SchemaFile(), tables())
	return s
}

// describe looks up what is ours in the database's schema: which tables are roots, and which columns refer to rows of
// which table. oldest is the oldest schema that a server may have, as JSON. The error names everything that does not
// fit.
func describe(newest ovsdb.DatabaseSchema, oldest string, ours []written) (*Schema, error) {
	var first struct {
		Tables map[string]struct{ Columns map[string]json.RawMessage }
	}
	if err := json.Unmarshal([]byte(oldest), &first); err != nil {
		return nil, fmt.Errorf("parsing the oldest schema: %w", err)
	}
	s := &Schema{tables: map[string]*table{}, byType: map[reflect.Type]*table{}}
	var faults []error
	for _, w := range ours {
		root, err := newest.IsRoot(w.table)
		if err != nil {
			faults = append(faults, fmt.Errorf("table %s: the schema has no such table", w.table))
			continue
		}
		t := newTable(w, root)
		faults = append(faults, t.describe(w, *newest.Table(w.table), first.Tables[w.table].Columns))
		s.tables[t.name], s.byType[t.typ] = t, t
		s.order = append(s.order, t.name)
	}
	for _, name := range s.order {
		for _, r := range s.tables[name].references {
			if s.tables[r.table] == nil {
				faults = append(faults, fmt.Errorf("column %s.%s refers to table %s, which is not ours", name, r.name, r.table))
			}
		}
	}
	return s, errors.Join(faults...)
}

// newTable finds the fields of the table's model.
func newTable(w written, root bool) *table {
	typ := reflect.TypeOf(w.zero).Elem()
	t := &table{name: w.table, typ: typ, root: root, label: -1, field: make(map[string]int, typ.NumField())}
	for i := range typ.NumField() {
		t.field[typ.Field(i).Tag.Get("ovsdb")] = i
	}
	t.uuid = t.field["_uuid"]
	t.extID, t.marks = t.field["external_ids"]
	for _, l := range []string{"name", "ip_prefix", "logical_ip", "match", "vip"} {
		if i, ok := t.field[l]; ok && t.label < 0 && typ.Field(i).Type.Kind() == reflect.String {
			t.label = i
		}
	}
	return t
}

// describe adds the columns that are ours. first is the columns that the table has in the oldest schema.
func (t *table) describe(w written, in ovsdb.TableSchema, first map[string]json.RawMessage) error {
	var faults []error
	for _, name := range slices.Concat(w.columns, w.slots) {
		c, err := t.columnOf(name, in)
		if err != nil {
			faults = append(faults, fmt.Errorf("column %s.%s: %w", t.name, name, err))
			continue
		}
		newer := first[name] == nil
		switch slot := slices.Contains(w.slots, name); {
		case slot && (c.table == "" || c.form != set || newer):
			faults = append(faults, fmt.Errorf("column %s.%s is a slot: want a set of references to rows that every server has",
				t.name, name))
			continue
		case slot:
			t.slots = append(t.slots, c)
		default:
			t.cols = append(t.cols, c)
			if newer {
				t.newer = append(t.newer, c)
			}
		}
		if c.table != "" {
			t.references = append(t.references, c)
		}
	}
	return errors.Join(faults...)
}

// columnOf is a column as the schema describes it.
func (t *table) columnOf(name string, in ovsdb.TableSchema) (column, error) {
	described := in.Column(name)
	i, ok := t.field[name]
	if described == nil || !ok {
		return column{}, errors.New("the schema or the model has no such column")
	}
	c := column{name: name, field: i, form: formOf(name, t.typ.Field(i).Type)}
	key := described.TypeObj.Key
	target, err := key.RefTable()
	if err != nil || target == "" {
		return c, nil // plain values
	}
	how, err := key.RefType()
	if err != nil || c.form != set && c.form != optional {
		return c, errors.New("want a set of references to rows, or one that is optional")
	}
	c.table, c.weak = target, how == ovsdb.Weak
	return c, nil
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
