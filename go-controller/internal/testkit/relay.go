package testkit

import (
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Relay stands between a client and an ovsdb-server and counts what passes.
type Relay struct {
	Remote string // what the client connects to, "unix:PATH"
	// Cut, unless nil, tells which messages of a client end its connection instead of reaching the server.
	Cut func(message []byte) bool

	server string
	mu     sync.Mutex
	wire   Wire
	open   []net.Conn
	ended  bool
	done   sync.WaitGroup
}

// Wire is what has passed a Relay.
type Wire struct {
	Transactions []Transaction // that have been answered, in that order; not those on _Server, which clients look at
	Notified     int           // bytes of the server's notifications of changes
	Changed      int           // rows in these notifications
	Received     int           // bytes from the server, all told
	Sent         int           // bytes to the server, all told
}

// Transaction is a request to transact (RFC 7047 section 4.1.3).
type Transaction struct {
	Operations []json.RawMessage // as they were sent
	Request    int               // bytes
	Answer     int               // bytes
}

// StartRelay puts a Relay before the server at remote, "unix:PATH", until the
// test ends.
func StartRelay(t testing.TB, remote string) *Relay {
	t.Helper()
	socket := filepath.Join(runDir(t), "relay.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatalf("listening for what is to be relayed: %v", err)
	}
	r := &Relay{Remote: "unix:" + socket, server: strings.TrimPrefix(remote, "unix:")}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("closing a relay: %v", err)
		}
		r.end()
	})
	r.done.Go(func() { r.accept(l) })
	return r
}

// Wire is what has passed so far.
func (r *Relay) Wire() Wire {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.wire
	w.Transactions = append([]Transaction(nil), w.Transactions...)
	return w
}

// end closes what is open and waits until nothing runs any more.
func (r *Relay) end() {
	r.mu.Lock()
	r.ended = true
	for _, c := range r.open {
		_ = c.Close() // the other side may have been first
	}
	r.mu.Unlock()
	r.done.Wait()
}

func (r *Relay) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return // the test has ended
		}
		server, err := net.Dial("unix", r.server)
		if err != nil {
			_ = client.Close() // which tells the client
			continue
		}
		r.mu.Lock()
		r.open = append(r.open, client, server)
		if r.ended {
			_, _ = client.Close(), server.Close()
		}
		r.mu.Unlock()
		pending := &pendingTransactions{byID: map[string]Transaction{}}
		r.done.Go(func() {
			r.pass(client, server, func(m []byte) bool {
				r.request(pending, m)
				return r.Cut == nil || !r.Cut(m)
			})
		})
		r.done.Go(func() { r.pass(server, client, func(m []byte) bool { r.answer(pending, m); return true }) })
	}
}

// pass hands on message by message, each after it was counted, so that nobody
// acts on what is not counted yet.
func (r *Relay) pass(from io.Reader, to net.Conn, count func(message []byte) (goOn bool)) {
	d := json.NewDecoder(from)
	for {
		var m json.RawMessage
		if err := d.Decode(&m); err != nil {
			break
		}
		if !count(m) {
			break
		}
		if _, err := to.Write(m); err != nil {
			break
		}
	}
	_ = to.Close() // the other direction may have been first
}

// pendingTransactions are those of one connection that have no answer yet.
type pendingTransactions struct {
	mu   sync.Mutex
	byID map[string]Transaction
}

func (r *Relay) request(p *pendingTransactions, message []byte) {
	var m struct {
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
		ID     json.RawMessage   `json:"id"`
	}
	r.mu.Lock()
	r.wire.Sent += len(message)
	r.mu.Unlock()
	if json.Unmarshal(message, &m) != nil || m.Method != "transact" || len(m.Params) == 0 ||
		string(m.Params[0]) == `"_Server"` {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byID[string(m.ID)] = Transaction{Operations: m.Params[1:], Request: len(message)}
}

func (r *Relay) answer(p *pendingTransactions, message []byte) {
	var m struct {
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
		ID     json.RawMessage   `json:"id"`
	}
	if json.Unmarshal(message, &m) != nil {
		return
	}
	p.mu.Lock()
	t, ok := p.byID[string(m.ID)]
	ok = ok && m.Method == ""
	if ok {
		delete(p.byID, string(m.ID))
	}
	p.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wire.Received += len(message)
	if strings.HasPrefix(m.Method, "update") && len(m.Params) > 0 {
		r.wire.Notified += len(message)
		r.wire.Changed += rows(m.Params[len(m.Params)-1])
	}
	if ok {
		t.Answer = len(message)
		r.wire.Transactions = append(r.wire.Transactions, t)
	}
}

// rows counts the rows in the <table-updates> of a notification (RFC 7047
// section 4.1.6; ovsdb-server(7), "Update2 Notification").
func rows(updates json.RawMessage) int {
	var tables map[string]map[string]json.RawMessage
	if json.Unmarshal(updates, &tables) != nil {
		return 0
	}
	n := 0
	for _, t := range tables {
		n += len(t)
	}
	return n
}
