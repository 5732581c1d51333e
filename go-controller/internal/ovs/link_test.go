package ovs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// relay stands between a DB and a real server.
type relay struct {
	address string // unix:PATH
	server  string

	mu     sync.Mutex
	silent bool // nothing passes any more, and new connections are refused
	open   []net.Conn
	done   sync.WaitGroup
}

func startRelay(t *testing.T, server string) *relay {
	t.Helper()
	socket := t.TempDir() + "/relay.sock"
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: "unix:" + socket, server: strings.TrimPrefix(server, "unix:")}
	r.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			r.take(c)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.cut()
		r.done.Wait()
	})
	return r
}

func (r *relay) take(c net.Conn) {
	s, err := net.Dial("unix", r.server)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.silent {
		_ = s.Close()
	}
	if err != nil || r.silent {
		_ = c.Close()
		return
	}
	r.open = append(r.open, c, s)
	for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
		r.done.Go(func() { _, _ = io.Copy(relayed{way[0], r}, way[1]) })
	}
}

// relayed is one end of a connection. What is written to it is lost while the relay is silent.
type relayed struct {
	net.Conn
	relay *relay
}

func (e relayed) Write(p []byte) (int, error) {
	if e.relay.isSilent() {
		return len(p), nil
	}
	return e.Conn.Write(p)
}

func (r *relay) isSilent() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silent
}

func (r *relay) setSilent(silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = silent
}

// cut ends all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.open {
		_ = c.Close() // the other side may have been first
	}
	r.open = nil
}

// lines is a log that tests read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// linked is a database with a bridge, and a connection to it through a relay.
func linked(t *testing.T) (*DB, *relay, *lines, func(args ...string)) {
	t.Helper()
	remote := testkit.StartOVSDB(t, testkit.VSwitchSchema())
	vsctl := func(args ...string) {
		testkit.Run(t, "ovs-vsctl", append([]string{"--db=" + remote, "--no-wait"}, args...)...)
	}
	vsctl("init", "--", "add-br", "br-int")
	r, log := startRelay(t, remote), &lines{}
	db, err := Open(t.Context(), r.address, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, r, log, vsctl
}

// ask asks for nothing in particular.
func ask(ctx context.Context, db *DB) error {
	_, err := db.submit(ctx, ovsdb.Operation{Op: ovsdb.OperationSelect, Table: Database, Where: []ovsdb.Condition{}})
	return err
}

func connected(t *testing.T, db *DB, want bool) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprint("connected: ", want), func() string {
		if got := db.Connected(); got != want {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// While the connection is lost, what was read stays. What waits for an interface, or for a place to send operations,
// goes on with the next connection, and sees what happened in between.
func TestConnectionLost(t *testing.T) {
	db, r, log, vsctl := linked(t)
	for i := range 10 {
		r.setSilent(true)
		r.cut()
		connected(t, db, false)
		if _, ok := db.bridge("br-int"); !ok {
			t.Fatal("without a connection, the bridge is not there")
		}
		woken := db.nextEvent("never-seen")
		sent := make(chan error, 1)
		go func() { sent <- ask(t.Context(), db) }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := ask(ctx, db); err == nil || !strings.Contains(err.Error(), "there is no connection to "+r.address) {
			t.Errorf("what is sent without a connection: %v", err)
		}
		cancel()
		name := fmt.Sprint("br", i)
		vsctl("add-br", name)
		r.setSilent(false)
		connected(t, db, true)
		if _, ok := db.bridge(name); !ok {
			t.Errorf("the bridge that was added in between is not there")
		}
		for what, got := range map[string]<-chan struct{}{"who waits for an interface": woken, "the agent": db.Changed()} {
			select {
			case <-got:
			case <-time.After(5 * time.Second):
				t.Errorf("%s is not told of the new connection", what)
			}
		}
		if err := <-sent; err != nil {
			t.Errorf("what waited for the connection: %v", err)
		}
	}
	for _, want := range []string{"the connection was lost", "connected again"} {
		if n := strings.Count(log.String(), want); n != 10 {
			t.Errorf("%d lines with %q, want 10:\n%s", n, want, log)
		}
	}
}

// A server that does not answer counts as lost. Close does not wait for it.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	db, r, log, _ := linked(t)
	r.setSilent(true)
	end := time.Now().Add(3 * (echoEvery + connectTimeout))
	for db.Connected() {
		if time.Now().After(end) {
			t.Fatal("still connected")
		}
		<-time.After(lookEvery)
	}
	if want := "the server does not answer"; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %q:\n%s", want, log)
	}
	db.Close()
	if err := ask(t.Context(), db); err == nil || !strings.Contains(err.Error(), "not connected") {
		t.Errorf("what is sent after Close: %v", err)
	}
}
