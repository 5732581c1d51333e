package ovs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/ovn-kubernetes/libovsdb/cache"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/vswitchdb"
)

// ErrNoRoot says that the database has no Open_vSwitch row yet.
var ErrNoRoot = errors.New("the Open_vSwitch table is empty: run `ovs-vsctl --no-wait init`")

// DB is the connection to the local Open_vSwitch database, and a copy of it.
type DB struct {
	address string
	log     *slog.Logger
	changed chan struct{}
	wake    sync.Map // by name of an Interface: a chan struct{}, closed and removed at its next change
	end     context.CancelFunc
	ended   chan struct{} // closed when nothing of the connection runs any more

	mu       sync.Mutex
	link     *link
	replaced chan struct{} // closed when another link takes the place of this one
}

// Open connects to address (unix:PATH, tcp:HOST:PORT) and reads the database. A connection that is lost is replaced
// until Close; the first one must succeed.
func Open(ctx context.Context, address string, log *slog.Logger) (*DB, error) {
	d := &DB{address: address, log: log, changed: make(chan struct{}, 1), ended: make(chan struct{}),
		replaced: make(chan struct{})}
	l, err := newLink(ctx, address, d, log)
	if err != nil {
		return nil, err
	}
	d.link = l
	ctx, d.end = context.WithCancel(context.Background())
	go d.keep(ctx)
	return d, nil
}

// current is the link, and a channel that is closed when another takes its place.
func (d *DB) current() (*link, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.link, d.replaced
}

// replace puts another link in the place of a lost one. Anything may have changed in between.
func (d *DB) replace(l *link) {
	d.mu.Lock()
	d.link = l
	close(d.replaced)
	d.replaced = make(chan struct{})
	d.mu.Unlock()
	d.wake.Range(func(name, _ any) bool {
		d.wakeUp(name.(string))
		return true
	})
	d.announce()
}

// Close ends the connection.
func (d *DB) Close() {
	d.end()
	<-d.ended
}

// Connected tells whether the server is connected at this moment.
func (d *DB) Connected() bool {
	l, _ := d.current()
	return l.up()
}

// Changed delivers a value after a change of anything that a plan may contain. One
// value may stand for several changes.
func (d *DB) Changed() <-chan struct{} { return d.changed }

// OnAdd implements cache.EventHandler.
func (d *DB) OnAdd(_ string, row model.Model) { d.event(row, row) }

// OnUpdate implements cache.EventHandler.
func (d *DB) OnUpdate(_ string, before, after model.Model) { d.event(before, after) }

// OnDelete implements cache.EventHandler.
func (d *DB) OnDelete(_ string, row model.Model) { d.event(row, row) }

var _ cache.EventHandler = (*DB)(nil)

// event wakes those who wait for interfaces. It also starts a pass of the agent, unless
// the change is a pod port's.
func (d *DB) event(before, after model.Model) {
	if i, ok := after.(*vswitchdb.Interface); ok {
		d.wakeUp(i.Name)
	}
	if !podsOnly(before, after) {
		d.announce()
	}
}

func (d *DB) wakeUp(name string) {
	if c, ok := d.wake.LoadAndDelete(name); ok {
		close(c.(chan struct{}))
	}
}

func (d *DB) announce() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// podsOnly tells whether a change can't matter to the node's own rows: a pod's
// interface, or a port that was added to a bridge or removed from it.
func podsOnly(before, after model.Model) bool {
	switch a := after.(type) {
	case *vswitchdb.Interface:
		return a.ExternalIDs[names.IfaceSandbox] != ""
	case *vswitchdb.Bridge:
		b, ok := before.(*vswitchdb.Bridge)
		return ok && b != a && b.Name == a.Name && b.DatapathType == a.DatapathType && value(b.FailMode) == value(a.FailMode)
	case *vswitchdb.Port:
		return true // its Interface comes and goes with it
	}
	return false
}

// nextEvent is closed at the next change of the interface of this name.
func (d *DB) nextEvent(name string) <-chan struct{} {
	c, _ := d.wake.LoadOrStore(name, make(chan struct{}))
	return c.(chan struct{})
}

// root is the one row of the Open_vSwitch table.
func (d *DB) root() (*vswitchdb.OpenvSwitch, error) {
	for _, r := range d.rows(vswitchdb.OpenvSwitchTable) {
		return r.(*vswitchdb.OpenvSwitch), nil
	}
	return nil, ErrNoRoot
}

// table is the copy of a table; nil if the server has no such table.
func (d *DB) table(name string) *cache.RowCache {
	l, _ := d.current()
	return l.copy.Table(name)
}

// api makes operations.
func (d *DB) api() client.Client {
	l, _ := d.current()
	return l
}

// rows is a table as it is now, or as it was when the connection was lost. The rows must not be modified.
func (d *DB) rows(table string) map[string]model.Model {
	if t := d.table(table); t != nil {
		return t.RowsShallow()
	}
	return nil
}

// lookup finds a row by one of its table's indexes: the name.
func lookup[T model.Model](d *DB, table string, key T) (row T, ok bool) {
	t := d.table(table)
	if t == nil {
		return row, false
	}
	_, m, err := t.RowByModel(key)
	if err != nil {
		return row, false
	}
	row, ok = m.(T)
	return row, ok
}

func (d *DB) bridge(name string) (*vswitchdb.Bridge, bool) {
	return lookup(d, vswitchdb.BridgeTable, &vswitchdb.Bridge{Name: name})
}

func (d *DB) port(name string) (*vswitchdb.Port, bool) {
	return lookup(d, vswitchdb.PortTable, &vswitchdb.Port{Name: name})
}

func (d *DB) iface(name string) (*vswitchdb.Interface, bool) {
	return lookup(d, vswitchdb.InterfaceTable, &vswitchdb.Interface{Name: name})
}

// transact sends the operations as one transaction. Every operation must succeed, and
// every mutate or update must find its row. OVSDB itself counts an operation that finds
// none as a success (RFC 7047 section 5.2.4).
func (d *DB) transact(ctx context.Context, ops []ovsdb.Operation) error {
	if len(ops) == 0 {
		return nil
	}
	results, err := d.submit(ctx, ops...)
	if err != nil {
		return err
	}
	for i, op := range ops {
		if (op.Op == ovsdb.OperationMutate || op.Op == ovsdb.OperationUpdate) && results[i].Count == 0 {
			return fmt.Errorf("the %s row to change is gone; trying again will read the new state", op.Table)
		}
	}
	return nil
}

// submit sends the operations as one transaction and returns the result of each.
// Without an error all results are there and none has failed. While there is no connection it waits for one.
func (d *DB) submit(ctx context.Context, ops ...ovsdb.Operation) ([]ovsdb.OperationResult, error) {
	l, err := d.connected(ctx)
	if err != nil {
		return nil, fmt.Errorf("sending %d operations to Open vSwitch: %w", len(ops), err)
	}
	results, err := l.Transact(ctx, ops...)
	if err != nil {
		return nil, fmt.Errorf("sending %d operations to Open vSwitch: %w", len(ops), err)
	}
	if opErrs, err := ovsdb.CheckOperationResults(results, ops); err != nil {
		for _, e := range opErrs {
			err = fmt.Errorf("%w: %w", err, e)
		}
		return nil, err
	}
	return results, nil
}

// connected waits until there is a connection.
func (d *DB) connected(ctx context.Context) (*link, error) {
	for {
		l, replaced := d.current()
		if l.up() {
			return l, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: there is no connection to %s", ctx.Err(), d.address)
		case <-d.ended:
			return nil, client.ErrNotConnected
		case <-replaced:
		}
	}
}

// operations collects what the API functions of libovsdb return.
type operations struct {
	list []ovsdb.Operation
	err  error
}

func (o *operations) add(list []ovsdb.Operation, err error) {
	o.list = append(o.list, list...)
	o.err = errors.Join(o.err, err)
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
