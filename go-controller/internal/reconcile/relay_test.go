package reconcile

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// relay stands between a client and an ovsdb-server and counts what passes.
type relay struct {
	Remote string // what the client connects to, "unix:PATH"

	server string
	cut    func(message []byte) bool // nil: none
	mu     sync.Mutex
	passed wire
	open   []net.Conn
	ended  bool
	done   sync.WaitGroup
}

// wire is what has passed a relay.
type wire struct {
	Transactions []transaction // that have been answered, in that order; not those on _Server, which clients look at
	Notified     int           // bytes of the server's notifications of changes
	Changed      int           // rows in these notifications, but for freedRow
	Received     int           // bytes from the server, all told
	Sent         int           // bytes to the server, all told
}

// transaction is a request to transact (RFC 7047 section 4.1.3).
type transaction struct {
	Operations []json.RawMessage // as they were sent, without those on freedRow
	Request    int               // bytes, without these operations
	Answer     int               // bytes
}

// startRelay puts a relay before the server at remote, "unix:PATH", until the test ends. A client's message for which
// cut is true ends its connection instead of reaching the server; cut may be nil.
func startRelay(t testing.TB, remote string, cut func(message []byte) bool) *relay {
	t.Helper()
	dir, err := os.MkdirTemp("", "nbtest") // of a short path, as a unix socket needs (108 bytes, unix(7))
	if err != nil {
		t.Fatalf("making a directory for the relay's socket: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing %s: %v", dir, err)
		}
	})
	socket := filepath.Join(dir, "relay.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatalf("listening for what is to be relayed: %v", err)
	}
	r := &relay{Remote: "unix:" + socket, server: strings.TrimPrefix(remote, "unix:"), cut: cut}
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
func (r *relay) Wire() wire {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.passed
	w.Transactions = append([]transaction(nil), w.Transactions...)
	return w
}

// end closes what is open and waits until nothing runs any more.
func (r *relay) end() {
	r.mu.Lock()
	r.ended = true
	for _, c := range r.open {
		_ = c.Close() // the other side may have been first
	}
	r.mu.Unlock()
	r.done.Wait()
}

func (r *relay) accept(l net.Listener) {
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
		pending := &pendingTransactions{byID: map[string]transaction{}}
		r.done.Go(func() {
			r.pass(client, server, func(m []byte) bool {
				r.request(pending, m)
				return r.cut == nil || !r.cut(m)
			})
		})
		r.done.Go(func() { r.pass(server, client, func(m []byte) bool { r.answer(pending, m); return true }) })
	}
}

// pass hands on message by message, each after it was counted, so that nobody
// acts on what is not counted yet.
func (r *relay) pass(from io.Reader, to net.Conn, count func(message []byte) (goOn bool)) {
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
	byID map[string]transaction
}

func (r *relay) request(p *pendingTransactions, message []byte) {
	var m struct {
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
		ID     json.RawMessage   `json:"id"`
	}
	r.mu.Lock()
	r.passed.Sent += len(message)
	r.mu.Unlock()
	if json.Unmarshal(message, &m) != nil || m.Method != "transact" || len(m.Params) == 0 ||
		string(m.Params[0]) == `"_Server"` {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	tx := transaction{Request: len(message)}
	for _, op := range m.Params[1:] {
		if strings.Contains(string(op), freedRow()) {
			tx.Request -= len(op) + len(",")
			continue
		}
		tx.Operations = append(tx.Operations, op)
	}
	p.byID[string(m.ID)] = tx
}

// freedRow is the UUID of the record of what was freed lately. What a change costs does not include it: it is written
// with whatever comes next, and a minute later an entry goes in the same way.
func freedRow() string { return names.ClusterRow(nbdb.AddressSetTable, names.FreedAddressSet) }

func (r *relay) answer(p *pendingTransactions, message []byte) {
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
	r.passed.Received += len(message)
	if strings.HasPrefix(m.Method, "update") && len(m.Params) > 0 {
		r.passed.Notified += len(message)
		r.passed.Changed += rows(m.Params[len(m.Params)-1])
	}
	if ok {
		t.Answer = len(message)
		r.passed.Transactions = append(r.passed.Transactions, t)
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
		delete(t, freedRow())
		n += len(t)
	}
	return n
}

func TestRelay(t *testing.T) {
	r := startRelay(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]), nil)
	testkit.Run(t, "ovn-nbctl", "--no-leader-only", "--db="+r.Remote, "ls-add", "a", "--", "lsp-add", "a", "p")
	testkit.Run(t, "ovn-nbctl", "--no-leader-only", "--db="+r.Remote, "list", "Logical_Switch")
	w := r.Wire()
	if len(w.Transactions) != 1 {
		t.Fatalf("%d transactions, want one: %+v", len(w.Transactions), w.Transactions)
	}
	tx, bytes, inserts := w.Transactions[0], 0, 0
	for _, op := range tx.Operations {
		bytes += len(op)
		inserts += strings.Count(string(op), `"op":"insert"`)
	}
	// In an empty database ovn-nbctl makes the row of NB_Global too.
	if inserts != 3 || tx.Request <= bytes || tx.Answer == 0 || w.Sent < tx.Request || w.Received < w.Notified+tx.Answer {
		t.Errorf("%d inserts, %d bytes of operations, want 3 and fewer bytes than in the request of %d; "+
			"an answer of %d, %d sent, %d received",
			inserts, bytes, tx.Request, tx.Answer, w.Sent, w.Received)
	}
	if w.Changed != 3 || w.Notified == 0 {
		t.Errorf("%d rows and %d bytes were notified, want 3 rows", w.Changed, w.Notified)
	}
}
