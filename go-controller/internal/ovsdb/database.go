package ovsdb

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

const (
	firstRetry   = 100 * time.Millisecond // between attempts to connect; doubles
	lastRetry    = 500 * time.Millisecond // an election takes a second or two
	repeatLog    = 30 * time.Second       // the same failure
	compareEvery = 5 * time.Minute        // the copy and the server
)

// Database keeps a Session open.
type Database struct {
	config config.OVSDB
	schema *nb.Schema
	log    *slog.Logger
	signal chan struct{}

	mu      sync.Mutex
	session *Session
	failure error
	last    string // the server of the last session: the next one tries the others first
}

// New is a database that is not connected yet: Run connects it.
func New(c config.OVSDB, schema *nb.Schema, log *slog.Logger) *Database {
	return &Database{config: c, schema: schema, log: log, signal: make(chan struct{}, 1)}
}

// Signal delivers a value when there is a new Session, when one was lost, or when owners are dirty. Values merge.
func (d *Database) Signal() <-chan struct{} { return d.signal }

// Session is the current connection, nil while there is none. A transaction that ends with the connection returns to a
// caller for whom there is none any more.
func (d *Database) Session() *Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session == nil || d.session.lost() != nil {
		return nil
	}
	return d.session
}

// Failure is why there is no Session; nil when there is one.
func (d *Database) Failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session != nil {
		return d.session.lost()
	}
	return d.failure
}

func (d *Database) wake() {
	select {
	case d.signal <- struct{}{}:
	default:
	}
}

func (d *Database) set(s *Session, failure error) {
	d.mu.Lock()
	d.session, d.failure = s, failure
	d.mu.Unlock()
	d.wake()
}

// Run keeps a Session open until ctx ends. It logs a failure when it is new, and again every repeatLog while it lasts.
func (d *Database) Run(ctx context.Context) {
	retry := firstRetry
	var logged time.Time
	var last string
	for ctx.Err() == nil {
		started := time.Now()
		err := d.runSession(ctx)
		d.set(nil, err)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > lastRetry {
			retry = firstRetry
		}
		if err.Error() != last || time.Since(logged) > repeatLog {
			d.log.Warn("northbound database not connected, trying again", "error", err)
			last, logged = err.Error(), time.Now()
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
		retry = min(2*retry, lastRetry)
	}
}

// runSession connects, and returns when the connection is lost.
func (d *Database) runSession(ctx context.Context) error {
	cl, err := connect(ctx, d.servers(), d.schema, d.wake)
	if err != nil {
		return err
	}
	defer cl.Close()
	d.last = cl.Address()
	s := newSession(d.schema, cl)
	defer s.end() // before cl.Close, which ends calls under way
	d.log.Info("northbound database connected", "endpoint", cl.Address(), "owners", len(s.Owners()))
	d.set(s, nil)
	return d.watch(ctx, s)
}

func (d *Database) watch(ctx context.Context, s *Session) error {
	echo := time.NewTicker(echoInterval)
	defer echo.Stop()
	compared := time.Now()
	suspect := 0 // how often the copy has differed in a row
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.conn.Done():
			return s.lost()
		case <-echo.C:
		}
		if err := d.alive(ctx, s); err != nil {
			return err
		}
		if time.Since(compared) < compareEvery && suspect == 0 {
			continue
		}
		compared = time.Now()
		err := s.CompareWithServer(ctx)
		if suspect++; err == nil {
			suspect = 0
		}
		if suspect == suspicions {
			return err
		}
	}
}

// suspicions is after how many comparisons in a row that differ the copy is at fault. Changes under way make some
// differ.
const suspicions = 5

// errLost is a reason why a Session ends.
const errLost = sessionError("the connection was lost")

type sessionError string

func (e sessionError) Error() string { return string(e) }
