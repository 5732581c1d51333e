package ovsdb

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// wire is the operations of plans as JSON, one a line.
func wire(t *testing.T, plans ...nb.Plan) string {
	t.Helper()
	var lines []string
	for _, o := range operations(nb.NewSchema(), plans) {
		b, err := json.Marshal(o.wireOperation)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	return strings.Join(lines, "\n")
}

// A row that goes is taken out of a weak slot only when something else changes in the slot's row: the server does the
// rest by itself.
func TestImpliedMemberships(t *testing.T) {
	const a, b = "5c4e9a52-7d1b-5f6b-9d0a-2b9f3c1d7a54", "6f0c2f39-7f0e-5f6b-9d0a-2b9f3c1d7a54"
	key := nb.Key{Table: nbdb.LogicalSwitchPortTable, Owner: nb.Owner{Kind: names.KindPod, Name: "a/b"}}
	group := nb.Ref{Table: nbdb.PortGroupTable, UUID: "361d5832-3cba-55e0-986a-dcedd83d75f9"}
	ports := nb.Slot{In: group, Column: "ports"}
	gone := nb.Plan{Rows: []nb.RowChange{{Verb: nb.Delete, Key: key, UUID: a}},
		Members: []nb.Membership{{Slot: ports, Key: key, UUID: a, Remove: true, Implied: true}}}
	if got := wire(t, gone); got != "" {
		t.Errorf("a port that goes:\n%s\nwant nothing about its group", got)
	}
	where := `,"where":[["_uuid","==",["uuid","` + group.UUID + `"]]]}`
	told := `{"op":"mutate","table":"Port_Group","mutations":[["ports","delete",["uuid","` + a + `"]]]` + where
	other := nb.Plan{Members: []nb.Membership{{Slot: ports, Key: key, UUID: b, Remove: true}}}
	both := `{"op":"mutate","table":"Port_Group","mutations":[["ports","delete",["set",[["uuid","` + a +
		`"],["uuid","` + b + `"]]]]]` + where
	if got := wire(t, gone, other); got != both {
		t.Errorf("another port leaves the group:\n%s\nwant\n%s", got, both)
	}
	renamed := nb.Plan{Rows: []nb.RowChange{{Verb: nb.Update, Key: nb.Key{Table: group.Table}, UUID: group.UUID,
		Columns: []nb.ColumnChange{{Column: "name", Old: "x", New: "y"}}}}}
	if got := wire(t, gone, renamed); !strings.Contains(got, told) {
		t.Errorf("the group is renamed:\n%s\nwant\n%s among it", got, told)
	}
}

// References are on the wire as such, in sets and alone.
func TestReferencesOnTheWire(t *testing.T) {
	const a = "5c4e9a52-7d1b-5f6b-9d0a-2b9f3c1d7a54"
	row := nb.RowChange{Verb: nb.Insert, Key: nb.Key{Table: nbdb.LogicalSwitchPortTable}, UUID: a}
	row.Columns = []nb.ColumnChange{
		{Column: "dhcpv4_options", New: a, UUIDs: true},
		{Column: "mirror_rules", Add: []string{a}, UUIDs: true},
		{Column: "name", New: a},
	}
	p := nb.Plan{Rows: []nb.RowChange{row}}
	want := `{"op":"insert","table":"Logical_Switch_Port","row":{"dhcpv4_options":["uuid","` + a +
		`"],"mirror_rules":["uuid","` + a + `"],"name":"` + a + `"},"uuid":"` + a + `"}`
	if got := wire(t, p); got != want {
		t.Errorf("insert:\n%s\nwant\n%s", got, want)
	}
	p.Rows[0].Verb = nb.Update
	p.Rows[0].Columns = []nb.ColumnChange{
		{Column: "dhcpv4_options", Old: a, UUIDs: true}, {Column: "ha_chassis_group", New: a, UUIDs: true}}
	want = `"row":{"dhcpv4_options":["set",[]],"ha_chassis_group":["uuid","` + a + `"]}`
	if got := wire(t, p); !strings.Contains(got, want) {
		t.Errorf("update:\n%s\nwant\n%s in it", got, want)
	}
}
