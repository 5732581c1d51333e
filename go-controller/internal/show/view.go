package show

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// view is a database with its schema, for printing.
type view struct {
	schema  *nb.Schema
	columns ovsdb.DatabaseSchema
	db      *nb.Database
}

// refs is the table that the values of a column refer to, "" for plain values.
func (v *view) refs(table, column string) string {
	refs, _ := v.columns.Table(table).Column(column).TypeObj.Key.RefTable()
	return refs
}

// rows lists the rows of a table, sorted by name.
func rows[T any](v *view, table string) []*T { return typed[T](v.db.Rows(table)) }

func typed[T any](models []model.Model) []*T {
	var out []*T
	for _, m := range models {
		if t, ok := any(m).(*T); ok {
			out = append(out, t)
		}
	}
	return out
}

// members lists the rows that a slot column refers to, sorted by name.
func members[T any](v *view, table string, uuids []string) []*T {
	var found []model.Model
	for _, u := range uuids {
		if m := v.db.Row(nb.Ref{Table: table, UUID: u}); m != nil {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b model.Model) int { return compare(v.schema, a, b) })
	return typed[T](found)
}

func compare(s *nb.Schema, a, b model.Model) int {
	return cmp.Or(cmp.Compare(s.Label(a), s.Label(b)), cmp.Compare(s.Ref(a).UUID, s.Ref(b).UUID))
}

// cell is a non-empty column of a row: a string, int or bool, a sorted []string, or a map of strings to strings or
// integers.
type cell struct {
	column string
	value  any
}

// cells lists a row's non-empty columns except _uuid, sorted by name.
func cells(m model.Model) []cell {
	v := reflect.ValueOf(m).Elem()
	var out []cell
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Tag.Get("ovsdb")
		if f.Kind() == reflect.Pointer {
			if f.IsNil() {
				continue
			}
			f = f.Elem() // an optional column may be set to the zero value
		} else if f.IsZero() {
			continue
		}
		switch x := f.Interface().(type) {
		case []string:
			if len(x) > 0 {
				out = append(out, cell{name, slices.Sorted(slices.Values(x))})
			}
		case map[string]string:
			if len(x) > 0 {
				out = append(out, cell{name, x})
			}
		case map[string]int:
			if len(x) > 0 {
				out = append(out, cell{name, x})
			}
		default:
			if f.Kind() == reflect.String {
				out = append(out, cell{name, f.String()})
			} else {
				out = append(out, cell{name, x})
			}
		}
	}
	out = slices.DeleteFunc(out, func(c cell) bool { return c.column == "_uuid" })
	slices.SortFunc(out, func(a, b cell) int { return cmp.Compare(a.column, b.column) })
	return out
}

func (v *view) switchPorts(ls *nbdb.LogicalSwitch) []*nbdb.LogicalSwitchPort {
	return members[nbdb.LogicalSwitchPort](v, nbdb.LogicalSwitchPortTable, ls.Ports)
}

func (v *view) routerPorts(lr *nbdb.LogicalRouter) []*nbdb.LogicalRouterPort {
	return members[nbdb.LogicalRouterPort](v, nbdb.LogicalRouterPortTable, lr.Ports)
}
