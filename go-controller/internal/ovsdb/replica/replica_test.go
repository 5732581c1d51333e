package replica

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/ovsdb/jsonrpc"
)

// row has a column of every form.
type row struct {
	UUID     string            `ovsdb:"_uuid" json:"-"`
	Text     string            `ovsdb:"text"`
	Number   int               `ovsdb:"number"`
	Yes      bool              `ovsdb:"yes"`
	MayText  *string           `ovsdb:"may_text" json:",omitempty"`
	MayInt   *int              `ovsdb:"may_int" json:",omitempty"`
	MayYes   *bool             `ovsdb:"may_yes" json:",omitempty"`
	Set      []string          `ovsdb:"set" json:",omitempty"`
	Map      map[string]string `ovsdb:"map" json:",omitempty"`
	Numbers  map[string]int    `ovsdb:"numbers" json:",omitempty"`
	Unwanted string            `ovsdb:"unwanted"`
}

func replica() *Replica {
	c := New()
	c.Add("T", &row{}, "text", "number", "yes", "may_text", "may_int", "may_yes", "set", "map", "numbers")
	return c
}

func apply(c *Replica, updates string) ([]Change, error) {
	return c.Apply(jsonrpc.NewReader([]byte(updates)))
}

// update is a change of row u.
func update(t *testing.T, c *Replica, kind, columns string) Change {
	t.Helper()
	changes, err := apply(c, `{"T":{"u":{"`+kind+`":`+columns+`}}}`)
	if err != nil || len(changes) != 1 {
		t.Fatalf("%s of %s: %v, %v", kind, columns, changes, err)
	}
	return changes[0]
}

func text(row any) string {
	b, err := json.Marshal(row)
	return fmt.Sprint(string(b), err)
}

// Columns of all forms come, change and go (ovsdb-server(7), "Update2 Notification").
func TestColumns(t *testing.T) {
	for _, c := range []struct{ insert, modify, want string }{
		{`{}`, `{}`, `{"Text":"","Number":0,"Yes":false,"Unwanted":""}`},
		{`{"text":"a","number":1,"yes":true,"unwanted":"x"}`, `{}`, `{"Text":"a","Number":1,"Yes":true,"Unwanted":""}`},
		{`{"text":"a","number":1,"yes":true}`, `{"text":"\"é\\","number":-7,"yes":false}`,
			`{"Text":"\"é\\","Number":-7,"Yes":false,"Unwanted":""}`},
		{`{"text":["uuid","a"]}`, `{"text":["uuid","b"]}`, `{"Text":"b","Number":0,"Yes":false,"Unwanted":""}`},
		{`{"may_text":"a","may_int":1,"may_yes":true}`, `{"may_text":["set",["b"]],"may_int":0,"may_yes":["set",[]]}`,
			`{"Text":"","Number":0,"Yes":false,"MayText":"b","MayInt":0,"Unwanted":""}`},
		{`{"may_text":["uuid","a"]}`, `{"may_text":["set",[["uuid","b"]]]}`,
			`{"Text":"","Number":0,"Yes":false,"MayText":"b","Unwanted":""}`},
		{`{"set":["set",["d","b"]]}`, `{"set":["set",["a","b","c"]]}`,
			`{"Text":"","Number":0,"Yes":false,"Set":["a","c","d"],"Unwanted":""}`},
		{`{"set":["uuid","a"]}`, `{"set":["set",[["uuid","b"],["uuid","a"]]]}`,
			`{"Text":"","Number":0,"Yes":false,"Set":["b"],"Unwanted":""}`},
		{`{"set":"a"}`, `{"set":"a"}`, `{"Text":"","Number":0,"Yes":false,"Unwanted":""}`},
		{`{"map":["map",[["a","1"],["b","2"],["c","3"]]],"numbers":["map",[["a",1]]]}`,
			`{"map":["map",[["a","1"],["b","4"],["d","3"]]],"numbers":["map",[["b",2]]]}`,
			`{"Text":"","Number":0,"Yes":false,"Map":{"b":"4","c":"3","d":"3"},"Numbers":{"a":1,"b":2},"Unwanted":""}`},
	} {
		r := replica()
		inserted := update(t, r, "insert", c.insert)
		was := text(inserted.After)
		modified := update(t, r, "modify", c.modify)
		if got, want := text(modified.After), c.want+"<nil>"; got != want {
			t.Errorf("%s, then %s:\n%s\nwant\n%s", c.insert, c.modify, got, want)
		}
		if modified.Before != inserted.After || text(inserted.After) != was {
			t.Errorf("%s, then %s: what was is %s, want %s", c.insert, c.modify, text(inserted.After), was)
		}
		if r.Row("T", "u") != modified.After || r.Row("T", "u").(*row).UUID != "u" {
			t.Errorf("the row is %v", r.Row("T", "u"))
		}
		gone := update(t, r, "delete", "null")
		if gone.Before != modified.After || gone.After != nil || r.Row("T", "u") != nil || len(r.Rows("T")) != 0 {
			t.Errorf("a row that is deleted: %+v, %v are left", gone, r.Rows("T"))
		}
	}
}

// Values of maps that are often the same are one value; the rows' own are their own.
func TestKnownValues(t *testing.T) {
	c := replica()
	const updates = `{"T":{"u":{"initial":{"map":["map",[["a","1"],["b","1"]]]}},
		"v":{"initial":{"map":["map",[["a","1"],["b","2"]]]}}}}`
	if _, err := apply(c, updates); err != nil {
		t.Fatal(err)
	}
	for uuid, want := range map[string]string{"u": "map[a:1 b:1]", "v": "map[a:1 b:2]"} {
		if got := fmt.Sprint(c.Row("T", uuid).(*row).Map); got != want {
			t.Errorf("row %s has %s, want %s", uuid, got, want)
		}
	}
}

// Of updates that can't be right nothing is done.
func TestWrongUpdates(t *testing.T) {
	for _, updates := range []string{
		`[]`, `{"T":[]}`, `{"T":{"v":{}`, `{"other":{}}`, `{"T":{"v":{"modify":{}}}}`, `{"T":{"v":{"delete":null}}}`,
		`{"T":{"u":{"renamed":{}}}}`, `{"T":{"u":{"modify":{"text":1}}}}`, `{"T":{"u":{"modify":{"number":"1"}}}}`,
		`{"T":{"u":{"modify":{"number":1.5}}}}`, `{"T":{"u":{"modify":{"yes":"true"}}}}`,
		`{"T":{"u":{"modify":{"set":["map",[]]}}}}`,
		`{"T":{"u":{"modify":{"set":["set",[["set",["a"]]]]}}}}`, `{"T":{"u":{"modify":{"map":[["a"]]}}}}`,
		`{"T":{"u":{"modify":{"map":"a"}}}}`, `{"T":{"u":{"modify":{"may_int":["set",["a"]]}}}}`,
	} {
		c := replica()
		update(t, c, "initial", `{"text":"a"}`)
		before := c.Row("T", "u")
		changes, err := apply(c, strings.Replace(updates, `{"T":{`, `{"T":{"w":{"insert":{}},`, 1))
		if err == nil || len(changes) != 0 || c.Row("T", "u") != before || len(c.Rows("T")) != 1 {
			t.Errorf("%s: %v, %v, rows %v", updates, changes, err, c.Rows("T"))
		}
	}
}
