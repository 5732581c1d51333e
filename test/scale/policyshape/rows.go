package policyshape

import (
	"crypto/sha1"
	"fmt"
)

// operation is one of RFC 7047, section 5.2.
type operation = map[string]any

const (
	northbound  = "OVN_Northbound"
	southbound  = "OVN_Southbound"
	openvswitch = "Open_vSwitch"
)

// uuidOf derives the UUID of a row from its table and name, so that operations can name rows without asking for them.
func uuidOf(table, name string) string {
	h := sha1.Sum([]byte(table + "/" + name))
	h[6], h[8] = h[6]&0x0f|0x50, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

func ref(table, name string) any { return []any{"uuid", uuidOf(table, name)} }

func refs(table string, names ...string) any {
	all := make([]any, 0, len(names))
	for _, n := range names {
		all = append(all, ref(table, n))
	}
	return []any{"set", all}
}

func words(values ...string) any {
	all := make([]any, 0, len(values))
	for _, v := range values {
		all = append(all, v)
	}
	return []any{"set", all}
}

func pairs(keysAndValues ...string) any {
	var all []any
	for i := 0; i < len(keysAndValues); i += 2 {
		all = append(all, []any{keysAndValues[i], keysAndValues[i+1]})
	}
	return []any{"map", all}
}

func insert(table, name string, row map[string]any) operation {
	return operation{"op": "insert", "table": table, "uuid": uuidOf(table, name), "row": row}
}

func remove(table, name string) operation {
	return operation{"op": "delete", "table": table, "where": isRow(table, name)}
}

// mutate inserts values into a set, or deletes them (mutator "insert" or "delete").
func mutate(table, name, column, mutator string, values any) operation {
	return operation{"op": "mutate", "table": table, "where": isRow(table, name),
		"mutations": []any{[]any{column, mutator, values}}}
}

func isRow(table, name string) any { return []any{[]any{"_uuid", "==", ref(table, name)}} }

// bump increments nb_cfg: ovn-northd copies it to the Southbound database with what else it has computed, and
// ovn-controller to its own row when Open vSwitch has all flows.
func bump() operation {
	return operation{"op": "mutate", "table": "NB_Global", "where": []any{},
		"mutations": []any{[]any{"nb_cfg", "+=", 1}}}
}
