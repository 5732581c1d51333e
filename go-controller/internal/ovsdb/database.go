package ovsdb

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

const (
	firstRetry   = 100 * time.Millisecond // between attempts to connect; doubles
	lastRetry    = 500 * time.Millisecond // an election takes a second or two
	repeatLog    = 30 * time.Second       // the same failure
	compareEvery = 5 * time.Minute        // the cache and the server
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

// Session is the current connection, nil while there is none.
func (d *Database) Session() *Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.session
}

// Failure is why there is no Session; nil when there is one.
func (d *Database) Failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
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
	var dropped atomic.Bool
	cl, err := connect(ctx, d.servers(), d.schema, logr.New(&sink{log: d.log, dropped: &dropped}))
	if err != nil {
		return err
	}
	defer cl.Close()
	lost, ended := make(chan struct{}), make(chan struct{})
	defer close(ended)
	go func() { // libovsdb notifies only those who wait at that moment
		select {
		case <-cl.DisconnectNotify():
			close(lost)
		case <-ended:
		}
	}()
	d.last = cl.CurrentEndpoint()
	s := newSession(d.schema, cl, d.wake)
	defer s.end()        // before cl.Close, which waits for calls under way
	dropped.Store(false) // newSession has read from the cache what was dropped before
	d.log.Info("northbound database connected", "endpoint", cl.CurrentEndpoint(), "owners", len(s.Owners()))
	d.set(s, nil)
	return d.watch(ctx, s, lost, &dropped)
}

func (d *Database) watch(ctx context.Context, s *Session, lost <-chan struct{}, dropped *atomic.Bool) error {
	echo := time.NewTicker(echoInterval)
	defer echo.Stop()
	compared := time.Now()
	suspect := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-lost:
			return errLost
		case <-echo.C:
		}
		if !s.client.Connected() {
			return errLost
		}
		if err := d.alive(ctx, s); err != nil {
			return err
		}
		if dropped.Load() {
			return errDropped
		}
		if time.Since(compared) < compareEvery && !suspect {
			continue
		}
		compared = time.Now()
		err := s.CompareWithServer(ctx)
		if err != nil && suspect {
			return err
		}
		suspect = err != nil
	}
}

// Reasons why a Session ends.
const (
	errLost    = sessionError("the connection was lost")
	errDropped = sessionError("the client library dropped notifications: reading everything again")
)

type sessionError string

func (e sessionError) Error() string { return string(e) }

// sink receives what libovsdb logs. It passes messages on at debug level, and notes when libovsdb drops notifications:
// libovsdb reports that only in its log.
type sink struct {
	log     *slog.Logger
	dropped *atomic.Bool
}

func (k *sink) Init(logr.RuntimeInfo)          {}
func (k *sink) Enabled(level int) bool         { return level <= 2 }
func (k *sink) WithValues(...any) logr.LogSink { return k }
func (k *sink) WithName(string) logr.LogSink   { return k }
func (k *sink) Info(_ int, msg string, _ ...any) {
	if strings.Contains(msg, "dropping event") {
		k.dropped.Store(true)
		return
	}
	k.log.Debug("libovsdb", "message", msg)
}
func (k *sink) Error(err error, msg string, _ ...any) {
	k.log.Debug("libovsdb", "message", msg, "error", err)
}
