package replica_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb/replica"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// shadow is what the events of a Copy say of it.
type shadow struct {
	mu   sync.Mutex
	rows map[string]model.Model // by table and UUID
	errs []string
}

func key(m model.Model) string {
	table, _ := strings.CutPrefix(reflect.TypeOf(m).String(), "*nbdb.")
	return table + " " + reflect.ValueOf(m).Elem().FieldByName("UUID").String()
}

func (s *shadow) load(_ int, rows iter.Seq[model.Model]) {
	for m := range rows {
		s.change(nil, m)
	}
}

func (s *shadow) change(before, after model.Model) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := ""
	for _, m := range []model.Model{before, after} {
		if m != nil {
			k = key(m)
		}
	}
	if s.rows[k] != before {
		s.errs = append(s.errs, "an event that begins with another "+k)
	}
	if s.rows[k] = after; after == nil {
		delete(s.rows, k)
	}
}

// content is rows as text, sorted. Sets have no order, and an empty one may be nil.
func content(t *testing.T, rows []model.Model) []string {
	t.Helper()
	var out []string
	for _, m := range rows {
		now := model.Clone(m)
		v := reflect.ValueOf(now).Elem()
		for i := range v.NumField() {
			switch f := v.Field(i); {
			case (f.Kind() == reflect.Slice || f.Kind() == reflect.Map) && f.Len() == 0:
				f.SetZero()
			case f.Kind() == reflect.Slice:
				slices.Sort(f.Interface().([]string))
			}
		}
		b, err := json.Marshal(now)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, key(m)+" "+string(b))
	}
	slices.Sort(out)
	return out
}

func uuid(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }

func set(of any) any {
	out, _ := ovsdb.NewOvsSet(of)
	return out
}

// random is a random value for each of some columns of a table.
func random(r *rand.Rand, table string) ovsdb.Row {
	text := func() any { return []string{"", "a", "\"\\é☃", strings.Repeat("long ", 30)}[r.IntN(4)] }
	texts := func() any { return set([]string{"x", "y", "z"}[:r.IntN(4)]) }
	pairs := func() any {
		m, _ := ovsdb.NewOvsMap(map[any]any{"k": text(), fmt.Sprint("l", r.IntN(3)): text()})
		return m
	}
	columns := map[string]map[string]func() any{
		nbdb.LogicalSwitchTable: {"name": text, "other_config": pairs, "external_ids": pairs},
		nbdb.LogicalSwitchPortTable: {"addresses": texts, "port_security": texts, "options": pairs, "type": text,
			"tag": func() any { return set([]int{1 + r.IntN(9)}[:r.IntN(2)]) }},
		nbdb.ACLTable: {"priority": func() any { return r.IntN(9) }, "log": func() any { return r.IntN(2) == 0 },
			"name": func() any { return set([]string{"n"}[:r.IntN(2)]) }, "options": pairs},
	}
	row := ovsdb.Row{}
	for _, c := range slices.Sorted(maps.Keys(columns[table])) { // so that r alone decides
		if r.IntN(2) == 0 {
			row[c] = columns[table][c]()
		}
	}
	return row
}

// home is the switch that lists all ports and ACLs: a row that nothing lists is deleted.
const home = "00000999-0000-4000-8000-000000000000"

func on(op, table, id string) ovsdb.Operation {
	return ovsdb.Operation{Op: op, Table: table, Where: []ovsdb.Condition{
		{Column: "_uuid", Function: ovsdb.ConditionEqual, Value: ovsdb.UUID{GoUUID: id}}}}
}

// change is a random transaction on a few rows. The server may refuse it.
func change(r *rand.Rand) []ovsdb.Operation {
	n := r.IntN(3)
	table := []string{nbdb.LogicalSwitchPortTable, nbdb.ACLTable, nbdb.LogicalSwitchTable}[n]
	id := uuid(100*n + r.IntN(6))
	row := random(r, table)
	switch verb := r.IntN(4); {
	case verb > 1:
		op := on(ovsdb.OperationUpdate, table, id)
		op.Row = row
		return []ovsdb.Operation{op}
	case table == nbdb.LogicalSwitchTable && verb == 0:
		return []ovsdb.Operation{on(ovsdb.OperationDelete, table, id)}
	}
	insert := ovsdb.Operation{Op: ovsdb.OperationInsert, Table: table, UUID: id, Row: row}
	column, how := "ports", ovsdb.MutateOperationInsert
	switch table {
	case nbdb.LogicalSwitchTable:
		return []ovsdb.Operation{insert}
	case nbdb.LogicalSwitchPortTable:
		row["name"] = id
	case nbdb.ACLTable:
		column = "acls"
		row["action"], row["direction"], row["match"], row["priority"] = "drop", "to-lport", "ip4", 1
	}
	var ops []ovsdb.Operation
	if r.IntN(2) == 0 {
		ops = append(ops, insert)
	} else {
		how = ovsdb.MutateOperationDelete
	}
	list := on(ovsdb.OperationMutate, nbdb.LogicalSwitchTable, home)
	list.Mutations = []ovsdb.Mutation{{Column: column, Mutator: how, Value: set([]ovsdb.UUID{{GoUUID: id}})}}
	return append(ops, list)
}

// A copy has what the client library's cache has, after any changes. Its events tell all of them. Rows that were handed
// out stay as they were.
func TestLikeTheLibrary(t *testing.T) {
	for ovn, file := range testkit.NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			remote := testkit.StartOVSDB(t, file)
			tables := map[string]model.Model{nbdb.LogicalSwitchTable: &nbdb.LogicalSwitch{},
				nbdb.LogicalSwitchPortTable: &nbdb.LogicalSwitchPort{}}
			schema := nb.NewSchema()
			var copied []replica.Table
			for name, row := range tables {
				copied = append(copied, replica.Table{Name: name, Columns: schema.Monitored(name), Row: row})
			}
			copied = append(copied, replica.Table{Name: nbdb.ACLTable, Row: &nbdb.ACL{},
				Columns: []string{"priority", "log", "name", "options", "match"}})
			library := connectLibrary(t, remote, tables)
			conn, err := replica.Dial(t.Context(), remote, nil, "OVN_Northbound")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			begin := ovsdb.Operation{Op: ovsdb.OperationInsert, Table: nbdb.LogicalSwitchTable, UUID: home,
				Row: ovsdb.Row{"name": "home"}}
			if results, err := conn.Transact(t.Context(), begin); err != nil || results[0].Error != "" {
				t.Fatal(results, err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			apply := func() {
				for range 300 {
					if _, err := conn.Transact(t.Context(), change(r)...); err != nil {
						t.Fatal(err)
					}
				}
			}
			apply() // so that there is something to load
			seen := &shadow{rows: map[string]model.Model{}}
			y, err := conn.Monitor(t.Context(), copied, replica.Sink{Load: seen.load, Change: seen.change})
			if err != nil {
				t.Fatal(err)
			}
			kept := map[string][]model.Model{}
			before := map[string][]string{}
			for name := range tables {
				kept[name] = y.Rows(name)
				before[name] = content(t, kept[name])
			}
			apply()
			for name := range tables {
				if now := content(t, kept[name]); !slices.Equal(now, before[name]) {
					t.Errorf("rows that were handed out have changed:\n%s\nwant\n%s", now, before[name])
				}
				testkit.Eventually(t, "the library has the same", func() string {
					var theirs []model.Model
					for _, m := range library.Cache().Table(name).Rows() {
						theirs = append(theirs, m)
					}
					ours, want := content(t, y.Rows(name)), content(t, theirs)
					if len(ours) == 0 || !slices.Equal(ours, want) {
						return fmt.Sprintf("%d rows:\n%s\nwant %d:\n%s", len(ours), strings.Join(ours, "\n"), len(want),
							strings.Join(want, "\n"))
					}
					return ""
				})
			}
			seen.mu.Lock()
			defer seen.mu.Unlock()
			for _, m := range seen.rows {
				table := map[string]string{"LogicalSwitch": nbdb.LogicalSwitchTable, "ACL": nbdb.ACLTable,
					"LogicalSwitchPort": nbdb.LogicalSwitchPortTable}[strings.Fields(key(m))[0]]
				if y.Row(table, strings.Fields(key(m))[1]) != m {
					seen.errs = append(seen.errs, "the events end with another "+key(m))
				}
			}
			if all := y.Len(nbdb.LogicalSwitchTable) + y.Len(nbdb.LogicalSwitchPortTable) + y.Len(nbdb.ACLTable); len(
				seen.rows) != all || len(seen.errs) > 0 {
				t.Errorf("the events tell of %d rows, want %d: %s", len(seen.rows), all, seen.errs)
			}
		})
	}
}

// connectLibrary has the client library monitor our columns of tables.
func connectLibrary(t *testing.T, remote string, tables map[string]model.Model) client.Client {
	t.Helper()
	db, err := model.NewClientDBModel("OVN_Northbound", tables)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewOVSDBClient(db, client.WithEndpoint(remote))
	if err == nil {
		err = c.Connect(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var options []client.MonitorOption
	for name, m := range tables {
		v := reflect.ValueOf(m).Elem()
		var fields []any
		for _, column := range nb.NewSchema().Monitored(name) {
			for i := range v.NumField() {
				if v.Type().Field(i).Tag.Get("ovsdb") == column {
					fields = append(fields, v.Field(i).Addr().Interface())
				}
			}
		}
		options = append(options, client.WithTable(m, fields...))
	}
	if _, err := c.Monitor(t.Context(), c.NewMonitor(options...)); err != nil {
		t.Fatal(err)
	}
	return c
}
