package ovsdb

import (
	"reflect"

	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// models is the row types that the client library fills for one server. The library refuses a type with a column that
// the server lacks. So a table that has such columns gets a struct type of its own. It differs from nbdb's only in the
// tags, which these columns don't have: the library ignores fields without a tag, and Go converts between such types
// without a copy.
type models struct {
	schema  *nb.Schema
	types   map[string]reflect.Type       // by table: the struct type, where it is not nbdb's
	nbdb    map[reflect.Type]reflect.Type // from a pointer to one of types to the pointer to nbdb's
	lacking map[string][]string           // columns by table
}

// modelsFor finds out which columns of ours the server lacks.
func modelsFor(schema *nb.Schema, server ovsdb.DatabaseSchema) models {
	ms := models{schema, map[string]reflect.Type{}, map[reflect.Type]reflect.Type{}, map[string][]string{}}
	for _, table := range schema.Tables() {
		lacking := map[string]bool{}
		for _, c := range schema.Newer(table) {
			if t := server.Table(table); t != nil && t.Column(c) == nil {
				lacking[c] = true
				ms.lacking[table] = append(ms.lacking[table], c)
			}
		}
		if len(lacking) == 0 {
			continue
		}
		pointer := reflect.TypeOf(schema.NewModel(table))
		fields := reflect.VisibleFields(pointer.Elem())
		for i := range fields {
			if lacking[fields[i].Tag.Get("ovsdb")] {
				fields[i].Tag = ""
			}
		}
		ms.types[table] = reflect.StructOf(fields)
		ms.nbdb[reflect.PointerTo(ms.types[table])] = pointer
	}
	return ms
}

// all is an empty row of every table, by table, for the client library.
func (ms models) all() map[string]model.Model {
	out := map[string]model.Model{}
	for _, table := range ms.schema.Tables() {
		out[table] = ms.schema.NewModel(table)
		if t := ms.types[table]; t != nil {
			out[table] = reflect.New(t).Interface()
		}
	}
	return out
}

// row is a row from the client library as nbdb's type.
func (ms models) row(m model.Model) model.Model {
	if len(ms.types) == 0 || m == nil {
		return m
	}
	if pointer := ms.nbdb[reflect.TypeOf(m)]; pointer != nil {
		return reflect.ValueOf(m).Convert(pointer).Interface()
	}
	return m
}
