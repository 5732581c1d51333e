package replica

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/ovsdb/jsonrpc"
)

// uuidColumn is the column that every row has.
const uuidColumn = "_uuid"

// Change is a row that came (Before is nil), changed, or went (After is nil).
type Change struct {
	Table, UUID   string
	Before, After model.Model
}

// Replica is a copy of some columns of some tables. Rows that it hands out must not be changed.
type Replica struct {
	decoder decoder
	tables  map[string]*table

	mu sync.RWMutex // of the tables' rows. Only Apply writes them, and it reads them without
}

type table struct {
	name    string
	row     reflect.Type   // a struct
	uuid    int            // field of _uuid
	columns map[string]int // fields of the columns
	rows    map[string]model.Model
}

// New is an empty Replica. It has no tables yet.
func New() *Replica {
	return &Replica{decoder: decoder{known: map[string]*pair{}}, tables: map[string]*table{}}
}

// Add adds a table with rows like row, a pointer to a struct whose fields have the names of columns in tags.
func (c *Replica) Add(name string, row model.Model, columns ...string) {
	t := &table{name: name, row: reflect.TypeOf(row).Elem(), columns: map[string]int{}, rows: map[string]model.Model{}}
	for i := range t.row.NumField() {
		switch column := t.row.Field(i).Tag.Get("ovsdb"); {
		case column == uuidColumn:
			t.uuid = i
		case slices.Contains(columns, column):
			t.columns[column] = i
		}
	}
	c.tables[name] = t
}

// Requests is what to ask a server to monitor (ovsdb-server(7), "Monitor_Cond").
func (c *Replica) Requests() map[string]any {
	out := map[string]any{}
	for name, t := range c.tables {
		out[name] = []any{map[string]any{"columns": slices.Sorted(maps.Keys(t.columns))}}
	}
	return out
}

// Row is a row, nil when there is none.
func (c *Replica) Row(table, uuid string) model.Model {
	t := c.tables[table]
	if t == nil {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return t.rows[uuid]
}

// Rows is the rows of a table, by UUID.
func (c *Replica) Rows(table string) map[string]model.Model {
	t := c.tables[table]
	if t == nil {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return maps.Clone(t.rows)
}

// Apply reads <table-updates2> (ovsdb-server(7), "Update2 Notification"), and tells what changed. What it says holds
// for readers as a whole. After an error nothing has changed.
func (c *Replica) Apply(r *jsonrpc.Reader) ([]Change, error) {
	var changes []Change
	r.Object(func(name []byte) {
		t := c.tables[string(name)]
		if t == nil {
			r.Fail("updates of a table that is monitored")
			return
		}
		r.Object(func(uuid []byte) { changes = append(changes, c.decoder.change(r, t, string(uuid))) })
	})
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("reading changes in the database: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range changes {
		if rows := c.tables[ch.Table].rows; ch.After == nil {
			delete(rows, ch.UUID)
		} else {
			rows[ch.UUID] = ch.After
		}
	}
	return changes, nil
}
