package ovsdb

import (
	"encoding/json"
	"testing"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// Values are on the wire what libovsdb's types are.
func TestWireValues(t *testing.T) {
	const a, b = "5c4e9a52-7d1b-5f6b-9d0a-2b9f3c1d7a54", "6f0c2f39-7f0e-5f6b-9d0a-2b9f3c1d7a54"
	ua, ub := ovsdb.UUID{GoUUID: a}, ovsdb.UUID{GoUUID: b}
	for what, c := range map[string]struct{ got, want any }{
		"a reference":        {uuidValue(a), ua},
		"no members":         {setValue(nil, false), ovsdb.OvsSet{}},
		"no references":      {setValue(nil, true), ovsdb.OvsSet{}},
		"a member":           {setValue([]string{"x"}, false), ovsdb.OvsSet{GoSet: []any{"x"}}},
		"members":            {setValue([]string{"x", `"<é>`}, false), ovsdb.OvsSet{GoSet: []any{"x", `"<é>`}}},
		"a member reference": {setValue([]string{a}, true), ovsdb.OvsSet{GoSet: []any{ua}}},
		"references":         {setValue([]string{a, b}, true), ovsdb.OvsSet{GoSet: []any{ua, ub}}},
		"no keys":            {mapValue(map[string]string{}), ovsdb.OvsMap{}},
		"a key":              {mapValue(map[string]string{"k": "v"}), ovsdb.OvsMap{GoMap: map[any]any{"k": "v"}}},
		"a number":           {mapValue(map[string]int{"k": 1}), ovsdb.OvsMap{GoMap: map[any]any{"k": 1}}},
	} {
		got, err := json.Marshal(c.got)
		want, err2 := json.Marshal(c.want)
		if err != nil || err2 != nil || string(got) != string(want) {
			t.Errorf("%s: %s (%v), want %s (%v)", what, got, err, want, err2)
		}
	}
}
