package replica

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// Table is a table to copy.
type Table struct {
	Name    string
	Columns []string
	Row     model.Model // an empty row: a pointer to a struct whose fields have tags such as `ovsdb:"name"`
}

// Sink is told of the rows of a Copy, by the goroutine of the connection. It must return soon. nil functions are not
// called.
type Sink struct {
	// Load takes the n rows that are there at the start. It must not ask the Copy, which is locked meanwhile.
	Load func(n int, rows iter.Seq[model.Model])
	// Change takes each change since: before is nil for an insert, after for a deletion.
	Change func(before, after model.Model)
}

// Copy is the monitored tables of a database. A row is never modified: one that changes is replaced. So whoever has
// got a row may keep it, and must not modify it either.
type Copy struct {
	sink   Sink
	reader reader // of the goroutine of the connection
	mu     sync.RWMutex
	tables map[string]*table
}

func newCopy(sink Sink) *Copy {
	return &Copy{sink: sink, tables: map[string]*table{}, reader: reader{seed: maphash.MakeSeed()}}
}

// name is what the server calls a monitor.
type name struct {
	Database string `json:"databaseName"`
	ID       string `json:"id"`
}

// nothing is the ID of no transaction: a monitor since then begins with everything.
const nothing = "00000000-0000-0000-0000-000000000000"

// Monitor copies tables of the connection's database.
func (c *Conn) Monitor(ctx context.Context, tables []Table, sink Sink) (*Copy, error) {
	return c.monitor(ctx, c.database, ovsdb.ConditionalMonitorSinceRPC, tables, sink)
}

// monitor begins a monitor with one of the methods of ovsdb-server(7).
func (c *Conn) monitor(
	ctx context.Context, database, method string, tables []Table, sink Sink,
) (*Copy, error) {
	out := newCopy(sink)
	requests := map[string]ovsdb.MonitorRequest{}
	for _, t := range tables {
		layout, err := newTable(t)
		if err != nil {
			return nil, err
		}
		out.tables[t.Name] = layout
		requests[t.Name] = ovsdb.MonitorRequest{Columns: t.Columns, Select: ovsdb.NewDefaultMonitorSelect()}
	}
	called := name{database, uuid.NewString()}
	params := ovsdb.NewMonitorArgs(database, called, requests)
	if method == ovsdb.ConditionalMonitorSinceRPC {
		params = append(params, nothing)
	}
	c.mu.Lock()
	c.monitors[called.ID] = out
	c.mu.Unlock()
	if _, err := c.call(ctx, method, params, out.load); err != nil {
		return nil, err
	}
	return out, nil
}

// load reads the answer to a monitor. It is the rows, or an array with two other values before them.
func (y *Copy) load(d *jsontext.Decoder) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.reader.uuids = map[string]string{}
	defer func() { y.reader.uuids = nil }()
	if d.PeekKind() != '[' {
		return y.loadTables(d)
	}
	n := 0
	err := elements(d, func(i int) error {
		if n++; i < 2 {
			return d.SkipValue()
		}
		return y.loadTables(d)
	})
	if err == nil && n != 3 {
		err = fmt.Errorf("the answer to a monitor has %d values, want 3", n)
	}
	return err
}

func (y *Copy) loadTables(d *jsontext.Decoder) error {
	err := y.updates(d, func(t *table, id string, _, after model.Model) { t.rows[id] = after })
	if err != nil || y.sink.Load == nil {
		return err
	}
	n := 0
	for _, t := range y.tables {
		n += len(t.rows)
	}
	y.sink.Load(n, y.all)
	return nil
}

// all yields every row.
func (y *Copy) all(yield func(model.Model) bool) {
	for _, t := range y.tables {
		for _, row := range t.rows {
			if !yield(row) {
				return
			}
		}
	}
}

// change is what happened to a row.
type change struct {
	table         *table
	id            string
	before, after model.Model
}

// update reads the params of an update, and applies it: the monitor's name, with update3 the ID of a transaction, and
// the rows.
func (c *Conn) update(d *jsontext.Decoder) error {
	var y *Copy
	return elements(d, func(i int) error {
		switch {
		case i == 0:
			return c.called(d, &y)
		case d.PeekKind() == '{' && y != nil:
			return y.update(d)
		}
		return d.SkipValue()
	})
}

// called reads the name of a monitor, and finds its copy.
func (c *Conn) called(d *jsontext.Decoder, y **Copy) error {
	return object(d, func(member []byte) error {
		if string(member) != "id" {
			return d.SkipValue()
		}
		id, err := readText(d)
		c.mu.Lock()
		defer c.mu.Unlock()
		*y = c.monitors[id]
		return err
	})
}

// update reads changes of rows. Readers see all of them, or none.
func (y *Copy) update(d *jsontext.Decoder) error {
	var changes []change
	err := y.updates(d, func(t *table, id string, before, after model.Model) {
		changes = append(changes, change{t, id, before, after})
	})
	if err != nil {
		return err
	}
	y.mu.Lock()
	for _, ch := range changes {
		if ch.after == nil {
			delete(ch.table.rows, ch.id)
		} else {
			ch.table.rows[ch.id] = ch.after
		}
	}
	y.mu.Unlock()
	for _, ch := range changes {
		if y.sink.Change != nil {
			y.sink.Change(ch.before, ch.after)
		}
	}
	return nil
}

// updates reads <table-updates2> of ovsdb-server(7).
func (y *Copy) updates(d *jsontext.Decoder, take func(t *table, id string, before, after model.Model)) error {
	return object(d, func(name []byte) error {
		t := y.tables[string(name)]
		if t == nil {
			return d.SkipValue()
		}
		return object(d, func(name []byte) error {
			id := y.reader.uuid(name)
			return object(d, func(kind []byte) error {
				before := t.rows[id]
				after, err := y.reader.row(d, t, id, y.reader.text(kind), before)
				if err != nil {
					return fmt.Errorf("row %s of table %s: %w", id, t.name, err)
				}
				take(t, id, before, after)
				return nil
			})
		})
	})
}

// Row is a row, nil when there is none.
func (y *Copy) Row(table, id string) model.Model {
	y.mu.RLock()
	defer y.mu.RUnlock()
	if t := y.tables[table]; t != nil {
		return t.rows[id]
	}
	return nil
}

// Rows lists the rows of a table, in no order.
func (y *Copy) Rows(table string) []model.Model {
	y.mu.RLock()
	defer y.mu.RUnlock()
	t := y.tables[table]
	if t == nil {
		return nil
	}
	out := make([]model.Model, 0, len(t.rows))
	for _, m := range t.rows {
		out = append(out, m)
	}
	return out
}

// Len is the number of rows of a table.
func (y *Copy) Len(table string) int {
	y.mu.RLock()
	defer y.mu.RUnlock()
	if t := y.tables[table]; t != nil {
		return len(t.rows)
	}
	return 0
}
