package replica

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/ovn-kubernetes/libovsdb/model"
)

// table is the rows of a table, and how they are laid out.
type table struct {
	name    string
	row     reflect.Type // the struct
	uuid    int          // the field of _uuid
	columns map[string]int
	rows    map[string]model.Model
}

func newTable(t Table) (*table, error) {
	out := &table{name: t.Name, row: reflect.TypeOf(t.Row).Elem(), uuid: -1, columns: map[string]int{},
		rows: map[string]model.Model{}}
	fields := map[string]int{}
	for i := range out.row.NumField() {
		fields[out.row.Field(i).Tag.Get("ovsdb")] = i
	}
	for _, column := range append([]string{"_uuid"}, t.Columns...) {
		i, ok := fields[column]
		if !ok || !decodable(reflect.New(out.row.Field(i).Type).Interface()) {
			return nil, fmt.Errorf("copying table %s: a %s has no field for column %s, or one of another type", t.Name,
				out.row, column)
		}
		out.columns[column] = i
	}
	out.uuid = out.columns["_uuid"]
	return out, nil
}

// row reads what happened to a row, and returns the row as it is now: nil when it was deleted.
func (r *reader) row(d *jsontext.Decoder, t *table, id, kind string, before model.Model) (model.Model, error) {
	now := reflect.New(t.row)
	switch {
	case kind == "initial", kind == "insert":
		if before != nil {
			return nil, errors.New("it is inserted, and there already")
		}
		now.Elem().Field(t.uuid).SetString(id)
		return now.Interface(), r.columns(d, t, now.Elem(), false)
	case before == nil:
		return nil, fmt.Errorf("it is not there for %q", kind)
	case kind == "delete":
		return nil, d.SkipValue()
	case kind == "modify":
		now.Elem().Set(reflect.ValueOf(before).Elem())
		return now.Interface(), r.columns(d, t, now.Elem(), true)
	}
	return nil, fmt.Errorf("%q is no kind of change", kind)
}

// columns reads the columns of a row. A difference says of sets and maps what changes in them.
func (r *reader) columns(d *jsontext.Decoder, t *table, row reflect.Value, difference bool) error {
	r.members = nil
	return object(d, func(name []byte) error {
		column := r.text(name)
		i, ok := t.columns[column]
		if !ok {
			return d.SkipValue()
		}
		if err := r.column(d, row.Field(i).Addr().Interface(), difference); err != nil {
			return fmt.Errorf("column %s: %w", column, err)
		}
		return nil
	})
}
