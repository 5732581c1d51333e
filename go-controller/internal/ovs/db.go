package ovs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-logr/logr"
	"github.com/ovn-kubernetes/libovsdb/cache"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/vswitchdb"
)

// How long one attempt to connect may take, and how long a connection may be
// silent before the server is asked whether it is still there.
const (
	connectTimeout = 5 * time.Second
	idleTimeout    = 20 * time.Second
	maxReconnect   = 2 * time.Second
)

// ErrNoRoot says that the database has no Open_vSwitch row yet.
var ErrNoRoot = errors.New("the Open_vSwitch table is empty: run `ovs-vsctl --no-wait init`")

// DB is the connection to the local Open_vSwitch database.
type DB struct {
	client  client.Client
	changed chan struct{}
	wake    sync.Map // by name of an Interface: a chan struct{}, closed and removed at its next change
}

// Open connects to address (unix:PATH, tcp:HOST:PORT) and reads the database.
// The connection heals by itself until Close; the first one must succeed.
func Open(ctx context.Context, address string, log *slog.Logger) (*DB, error) {
	dbModel, err := model.NewClientDBModel(Database, models())
	if err != nil {
		return nil, fmt.Errorf("building the database model: %w", err)
	}
	bo := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(maxReconnect), backoff.WithMaxElapsedTime(0))
	logger := logr.FromSlogHandler(log.Handler())
	c, err := client.NewOVSDBClient(dbModel, client.WithEndpoint(address), client.WithLogger(&logger),
		client.WithInactivityCheck(idleTimeout, connectTimeout, bo))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", address, err)
	}
	d := &DB{client: c, changed: make(chan struct{}, 1)}
	if err := d.connect(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("connecting to the Open vSwitch database at %s: %w", address, err)
	}
	return d, nil
}

func (d *DB) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := d.client.Connect(ctx); err != nil {
		return err
	}
	d.client.Cache().AddEventHandler(d)
	root, bridge := &vswitchdb.OpenvSwitch{}, &vswitchdb.Bridge{}
	port, iface, ssl := &vswitchdb.Port{}, &vswitchdb.Interface{}, &vswitchdb.SSL{}
	// It monitors only the columns in use: the statistics of every interface change
	// every few seconds, and ovn-controller keeps its notes in the bridge's
	// external_ids.
	monitor := d.client.NewMonitor(
		client.WithTable(root, &root.Bridges, &root.ExternalIDs, &root.OVSVersion, &root.SSL),
		client.WithTable(ssl, &ssl.PrivateKey, &ssl.Certificate, &ssl.CaCert, &ssl.ExternalIDs),
		client.WithTable(bridge, &bridge.Name, &bridge.Ports, &bridge.FailMode, &bridge.DatapathType),
		client.WithTable(port, &port.Name, &port.Interfaces, &port.Tag),
		client.WithTable(iface, &iface.Name, &iface.Type, &iface.MAC, &iface.MTURequest, &iface.ExternalIDs, &iface.Ofport,
			&iface.Error, &iface.Options),
	)
	_, err := d.client.Monitor(ctx, monitor)
	return err
}

// Close ends the connection.
func (d *DB) Close() { d.client.Close() }

// Connected tells whether the server answers at this moment. (The client's own
// Connected stays true while it reconnects.)
func (d *DB) Connected() bool { return d.client.CurrentEndpoint() != "" }

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
		if c, ok := d.wake.LoadAndDelete(i.Name); ok {
			close(c.(chan struct{}))
		}
	}
	if podsOnly(before, after) {
		return
	}
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

// table is a table's cache; nil while there is none.
func (d *DB) table(name string) *cache.RowCache {
	if c := d.client.Cache(); c != nil {
		return c.Table(name)
	}
	return nil
}

// rows is a table as it is now; the rows must not be modified.
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
// Without an error all results are there and none has failed.
func (d *DB) submit(ctx context.Context, ops ...ovsdb.Operation) ([]ovsdb.OperationResult, error) {
	results, err := d.client.Transact(ctx, ops...)
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
