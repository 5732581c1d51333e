package replica

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// reader reads values of columns (RFC 7047 section 5.1).
type reader struct {
	uuids   map[string]string // of rows, while everything is read; nil later
	shared  [4096]string      // texts that came not long ago
	seed    maphash.Seed
	atoms   []string // of the value that is being read
	members []string // of the last set of this row: a port's port_security repeats its addresses
}

// shareMax is the longest text for which an equal one is looked for.
const shareMax = 64

// text is a text as a string. Keys and the names of nodes, kinds and roles come again and again: one copy is enough.
func (r *reader) text(b []byte) string {
	if len(b) == 0 || len(b) > shareMax {
		return string(b)
	}
	slot := &r.shared[maphash.Bytes(r.seed, b)%uint64(len(r.shared))]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

// uuid is the UUID of a row. A row and those that list it share one copy.
func (r *reader) uuid(b []byte) string {
	if r.uuids == nil {
		return string(b)
	}
	s, ok := r.uuids[string(b)]
	if !ok {
		s = string(b)
		r.uuids[s] = s
	}
	return s
}

// decodable tells whether column has a case for a field.
func decodable(field any) bool {
	switch field.(type) {
	case *string, *int, *bool, **string, **int, **bool, *[]string, *map[string]string, *map[string]int:
		return true
	}
	return false
}

// column reads a value into the field of a column. A difference says which members of a set come and go, and which
// pairs of a map come, change and go (ovsdb-server(7), "Update2 Notification"); of other columns it is the new value.
func (r *reader) column(d *jsontext.Decoder, field any, difference bool) (err error) {
	switch to := field.(type) {
	case *map[string]string:
		if err = r.pairs(d); err == nil {
			*to, err = altered(*to, r.atoms, func(s string) (string, error) { return s, nil })
		}
		return err
	case *map[string]int:
		if err = r.pairs(d); err == nil {
			*to, err = altered(*to, r.atoms, strconv.Atoi)
		}
		return err
	}
	if err := r.set(d); err != nil {
		return err
	}
	switch to := field.(type) {
	case *[]string:
		*to = r.strings(*to, difference)
	case *string:
		*to, err = one(r.atoms, func(s string) (string, error) { return s, nil })
	case *int:
		*to, err = one(r.atoms, strconv.Atoi)
	case *bool:
		*to, err = one(r.atoms, strconv.ParseBool)
	case **string:
		*to, err = optional(r.atoms, func(s string) (string, error) { return s, nil })
	case **int:
		*to, err = optional(r.atoms, strconv.Atoi)
	case **bool:
		*to, err = optional(r.atoms, strconv.ParseBool)
	}
	return err
}

// set reads a set, or the only member of one, into atoms.
func (r *reader) set(d *jsontext.Decoder) error {
	r.atoms = r.atoms[:0]
	if d.PeekKind() != '[' {
		return r.atom(d)
	}
	kind, err := r.begin(d)
	switch {
	case err != nil:
		return err
	case kind == "uuid":
		return r.endUUID(d)
	case kind != "set":
		return fmt.Errorf("a value of kind %q: want a set", kind)
	}
	if err := elements(d, func(int) error { return r.atom(d) }); err != nil {
		return err
	}
	return token(d, ']')
}

// pairs reads a map into atoms: key, value, key, value.
func (r *reader) pairs(d *jsontext.Decoder) error {
	r.atoms = r.atoms[:0]
	kind, err := r.begin(d)
	if err == nil && kind != "map" {
		err = fmt.Errorf("a value of kind %q: want a map", kind)
	}
	if err != nil {
		return err
	}
	err = elements(d, func(int) error {
		n := len(r.atoms)
		err := elements(d, func(int) error { return r.atom(d) })
		if err == nil && len(r.atoms) != n+2 {
			err = errors.New("a pair of a map does not have two values")
		}
		return err
	})
	if err != nil {
		return err
	}
	return token(d, ']')
}

// begin reads the beginning of a value in brackets, up to its kind.
func (r *reader) begin(d *jsontext.Decoder) (kind string, err error) {
	if err := token(d, '['); err != nil {
		return "", err
	}
	v, err := d.ReadValue()
	return r.text(text(v)), err
}

// atom reads a value that is no set and no map.
func (r *reader) atom(d *jsontext.Decoder) error {
	if d.PeekKind() != '[' {
		v, err := d.ReadValue()
		r.atoms = append(r.atoms, r.text(text(v)))
		return err
	}
	kind, err := r.begin(d)
	if err == nil && kind != "uuid" {
		err = fmt.Errorf("a value of kind %q within another: want a uuid", kind)
	}
	if err != nil {
		return err
	}
	return r.endUUID(d)
}

// endUUID reads what follows the kind of a UUID.
func (r *reader) endUUID(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	r.atoms = append(r.atoms, r.uuid(text(v)))
	return token(d, ']')
}

// one is the only atom.
func one[T any](atoms []string, parse func(string) (T, error)) (value T, err error) {
	if len(atoms) != 1 {
		return value, fmt.Errorf("%d values: want one", len(atoms))
	}
	return parse(atoms[0])
}

// optional is the only atom, nil when there is none.
func optional[T any](atoms []string, parse func(string) (T, error)) (*T, error) {
	if len(atoms) == 0 {
		return nil, nil
	}
	value, err := one(atoms, parse)
	return &value, err
}

// strings is the set in atoms, or what a set is after their difference.
func (r *reader) strings(was []string, difference bool) []string {
	switch {
	case difference:
		return symmetricDifference(was, r.atoms)
	case len(r.atoms) == 0:
		return nil
	case !slices.Equal(r.members, r.atoms):
		r.members = slices.Clone(r.atoms)
	}
	return r.members
}

// symmetricDifference is the members of a set without those that go, and with those that come: a new, sorted list. A
// server sends sets of text and of UUIDs in that order. Whoever compares two sorted sets need not sort them, and an
// address set of 10,000 members changes with every batch of pods.
func symmetricDifference(set, difference []string) []string {
	if !slices.IsSorted(set) {
		set = slices.Sorted(slices.Values(set))
	}
	out := make([]string, 0, len(set)+len(difference))
	for _, m := range slices.Sorted(slices.Values(difference)) {
		i, goes := slices.BinarySearch(set, m)
		out = append(out, set[:i]...)
		set = set[i:]
		if goes {
			set = set[1:]
		} else {
			out = append(out, m)
		}
	}
	return append(out, set...)
}

// altered is a copy of a map with the pairs that come or change, and without those that the map has with that value.
func altered[V comparable](was map[string]V, pairs []string, parse func(string) (V, error)) (map[string]V, error) {
	out := make(map[string]V, len(was)+len(pairs)/2)
	maps.Copy(out, was)
	for i := 0; i+1 < len(pairs); i += 2 {
		value, err := parse(pairs[i+1])
		if err != nil {
			return nil, err
		}
		if had, there := was[pairs[i]]; there && had == value {
			delete(out, pairs[i])
		} else {
			out[pairs[i]] = value
		}
	}
	return out, nil
}
