package replica

import (
	"maps"
	"reflect"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/ovsdb/jsonrpc"
)

// decoder makes rows of what the server sends. Strings in maps that it has just met are not allocated again: keys, and
// values that come for many rows in turn.
type decoder struct{ known map[string]*pair }

// pair is a key and the last value that came with it.
type pair struct{ key, value string }

// knownMax bounds the keys that are remembered.
const knownMax = 1000

// change reads one <row-update2>.
func (d decoder) change(r *jsonrpc.Reader, t *table, uuid string) Change {
	c := Change{Table: t.name, UUID: uuid, Before: t.rows[uuid]}
	r.Object(func(kind []byte) {
		switch {
		case string(kind) == "initial" || string(kind) == "insert":
			c.After = d.inserted(r, t, uuid)
		case c.Before == nil:
			r.Fail("an update of a row that is there, or a new one: " + t.name + " " + uuid)
		case string(kind) == "modify":
			c.After = d.modified(r, t, c.Before)
		case string(kind) == "delete":
			r.Raw()
		default:
			r.Fail("the update of a row")
		}
	})
	return c
}

// inserted reads a row. Columns that have their default are left out.
func (d decoder) inserted(r *jsonrpc.Reader, t *table, uuid string) model.Model {
	m := reflect.New(t.row)
	v := m.Elem()
	v.Field(t.uuid).SetString(uuid)
	d.columns(r, t, func(i int) { d.value(r, v.Field(i).Addr().Interface()) })
	return m.Interface()
}

// modified reads what differs from the row that was there.
func (d decoder) modified(r *jsonrpc.Reader, t *table, before model.Model) model.Model {
	m := reflect.New(t.row)
	v := m.Elem()
	v.Set(reflect.ValueOf(before).Elem())
	d.columns(r, t, func(i int) { d.difference(r, v.Field(i).Addr().Interface()) })
	return m.Interface()
}

// columns reads a <row>: column calls for each column with the number of its field.
func (d decoder) columns(r *jsonrpc.Reader, t *table, column func(field int)) {
	r.Object(func(name []byte) {
		if i, ok := t.columns[string(name)]; ok {
			column(i)
		} else {
			r.Raw()
		}
	})
}

// value reads the value of a column (RFC 7047 section 5.1) into a field.
func (d decoder) value(r *jsonrpc.Reader, field any) {
	switch f := field.(type) {
	case *string:
		each(r, func() { *f = r.Text() })
	case *int:
		*f = r.Int()
	case *bool:
		*f = r.Bool()
	case **string:
		*f = optional(r, r.Text)
	case **int:
		*f = optional(r, r.Int)
	case **bool:
		*f = optional(r, r.Bool)
	case *[]string:
		*f = members(r)
	case *map[string]string:
		d.pairs(r, func(key []byte) { put(f, d.key(key), d.text(key, r)) })
	case *map[string]int:
		d.pairs(r, func(key []byte) { put(f, d.key(key), r.Int()) })
	default:
		r.Fail("a column of another type")
	}
}

// difference reads what became of the value of a column into its field. What a set has and the difference has, too, is
// removed; likewise pairs of a map. Other values are new ones.
func (d decoder) difference(r *jsonrpc.Reader, field any) {
	switch f := field.(type) {
	case *[]string:
		*f = toggled(*f, members(r))
	case *map[string]string:
		*f = changed(*f, func(m map[string]string) { d.pairs(r, func(key []byte) { toggle(m, d.key(key), d.text(key, r)) }) })
	case *map[string]int:
		*f = changed(*f, func(m map[string]int) { d.pairs(r, func(key []byte) { toggle(m, d.key(key), r.Int()) }) })
	default:
		d.value(r, field)
	}
}

// each calls read for each member of a set. A set with one member is written as that member.
func each(r *jsonrpc.Reader, read func()) {
	if !r.IsArray() {
		read()
		return
	}
	n, set := 0, false
	r.Array(func() {
		switch n++; {
		case n == 1:
			set = string(r.Bytes()) == "set"
		case set:
			r.Array(func() { reference(r, read) })
		default:
			read() // the UUID of a reference
		}
	})
}

// reference reads a member of a set, of a reference only the UUID.
func reference(r *jsonrpc.Reader, read func()) {
	if !r.IsArray() {
		read()
		return
	}
	n := 0
	r.Array(func() {
		if n++; n == 1 {
			r.Bytes()
		} else {
			read()
		}
	})
}

// optional reads a column with at most one value, nil when it has none.
func optional[V any](r *jsonrpc.Reader, read func() V) (out *V) {
	each(r, func() {
		v := read()
		out = &v
	})
	return out
}

// members reads a set, in order.
func members(r *jsonrpc.Reader) (out []string) {
	each(r, func() { out = append(out, r.Text()) })
	if !slices.IsSorted(out) {
		slices.Sort(out)
	}
	return out
}

// toggled is what is in one of two sets and not in both.
func toggled(a, b []string) []string {
	out := make([]string, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			out, a = append(out, a[0]), a[1:]
		case a[0] > b[0]:
			out, b = append(out, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// pairs reads a map. read is called for each pair, and reads the value.
func (d decoder) pairs(r *jsonrpc.Reader, read func(key []byte)) {
	n := 0
	r.Array(func() {
		if n++; n == 1 {
			r.Bytes()
			return
		}
		r.Array(func() {
			var key []byte
			i := 0
			r.Array(func() {
				if i++; i == 1 {
					key = r.Bytes()
				} else {
					read(key)
				}
			})
		})
	})
}

// put writes a pair into a map, which it makes.
func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}

// changed is a map after change.
func changed[V any](m map[string]V, change func(map[string]V)) map[string]V {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]V{}
	}
	change(out)
	return out
}

// toggle removes a pair that is there, and writes one that is not.
func toggle[V comparable](m map[string]V, key string, value V) {
	if have, ok := m[key]; ok && have == value {
		delete(m, key)
	} else {
		m[key] = value
	}
}

// key is a key as a string.
func (d decoder) key(key []byte) string {
	if p := d.known[string(key)]; p != nil {
		return p.key
	}
	if len(d.known) >= knownMax {
		clear(d.known)
	}
	p := &pair{key: string(key)}
	d.known[p.key] = p
	return p.key
}

// text reads the value of a key.
func (d decoder) text(key []byte, r *jsonrpc.Reader) string {
	value, p := r.Bytes(), d.known[string(key)]
	switch {
	case p == nil:
		return string(value)
	case p.value != string(value):
		p.value = string(value)
	}
	return p.value
}
