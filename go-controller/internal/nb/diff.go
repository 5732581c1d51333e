package nb

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// SameColumns tells whether two versions of a row are the same in every column of ours. Slots don't count.
func (s *Schema) SameColumns(before, after model.Model) bool {
	t, b := s.of(before)
	if t == nil {
		return false
	}
	_, a := s.of(after)
	return !slices.ContainsFunc(t.cols, func(c column) bool { return !c.same(b.Field(c.field), a.Field(c.field)) })
}

// same tells whether two values from a database are equal. A set there has no duplicates, so its length usually shows a
// change without sorting.
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
	d := ColumnChange{Column: c.name, UUIDs: c.table != ""}
	switch c.form {
	case set:
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

// list is the value of a set column. It is read through its address because Interface of the value itself would
// allocate.
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

// setDiff is the members that only want has and those that only have has, both sorted and without duplicates. Sets may
// have a member for every pod of a namespace; usually they are sorted already.
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

// sorted is the members in order: l itself when it is sorted already.
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
	return strings.HasPrefix(k, names.KeyPrefix) && !slices.Contains(names.RecordKeys(), k) ||
		slices.Contains(names.ClassicKeys(), k)
}
