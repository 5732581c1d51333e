package replica

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// ErrClosed says that a connection was closed by its user.
const ErrClosed = endError("the connection is closed")

type endError string

func (e endError) Error() string { return string(e) }

// Conn is a connection to one ovsdb-server, for one of its databases.
type Conn struct {
	address  string
	database string
	schema   ovsdb.DatabaseSchema
	net      net.Conn
	sending  sync.Mutex // held while a message is written
	done     chan struct{}
	closed   chan struct{} // closed when the goroutine of receive has ended

	mu       sync.Mutex
	err      error // why the connection has ended
	lastID   uint64
	calls    map[uint64]*call
	monitors map[string]*Copy // by the id in the monitor's name
}

// call is a request that waits for its answer.
type call struct {
	answered chan struct{}
	// stream reads the result where it stands in the connection; nil when result is to have it.
	stream func(*jsontext.Decoder) error
	result jsontext.Value
	err    error
}

// Dial connects to the server at an address such as "unix:/run/ovn/ovnnb_db.sock", "tcp:[::1]:6641" or
// "ssl:10.0.0.1:6641", and reads the schema of a database. ctx bounds that alone.
func Dial(ctx context.Context, address string, keys *tls.Config, database string) (*Conn, error) {
	raw, err := dial(ctx, address, keys)
	if err != nil {
		return nil, fmt.Errorf("opening a connection: %w", err)
	}
	c := &Conn{address: address, database: database, net: raw, done: make(chan struct{}), closed: make(chan struct{}),
		calls: map[uint64]*call{}, monitors: map[string]*Copy{}}
	go c.receive()
	answer, err := c.call(ctx, "get_schema", []any{database}, nil)
	if err == nil {
		err = unmarshal(answer, &c.schema)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("reading the schema of database %s: %w", database, err)
	}
	return c, nil
}

func dial(ctx context.Context, address string, keys *tls.Config) (net.Conn, error) {
	kind, where, _ := strings.Cut(address, ":")
	var d net.Dialer
	switch kind {
	case "unix":
		return d.DialContext(ctx, "unix", where)
	case "tcp":
		return d.DialContext(ctx, "tcp", where)
	case "ssl":
		return (&tls.Dialer{Config: keys}).DialContext(ctx, "tcp", where)
	}
	return nil, fmt.Errorf("address %q: want unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT", address)
}

// Address is the address of the server.
func (c *Conn) Address() string { return c.address }

// Schema is the server's schema of the database.
func (c *Conn) Schema() ovsdb.DatabaseSchema { return c.schema }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection has ended; nil while it has not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection, and returns when nothing of it runs any more.
func (c *Conn) Close() {
	c.fail(ErrClosed)
	<-c.closed
}

// fail ends the connection, and all calls under way with it.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	_ = c.below().Close() // the server may have closed it
	for id, waiting := range c.calls {
		delete(c.calls, id)
		waiting.end(err)
	}
	close(c.done)
}

// below is the connection below TLS. To close TLS writes first, which a server that does not read holds up.
func (c *Conn) below() net.Conn {
	if t, ok := c.net.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c.net
}

func (w *call) end(err error) {
	w.err = err
	close(w.answered)
}

// Echo returns when the server has answered.
func (c *Conn) Echo(ctx context.Context) error {
	_, err := c.call(ctx, "echo", ovsdb.NewEchoArgs(), nil)
	return err
}

// Transact carries out operations. When it returns, copies show what they did: the server sends its update of a monitor
// before the answer.
func (c *Conn) Transact(ctx context.Context, ops ...ovsdb.Operation) ([]ovsdb.OperationResult, error) {
	answer, err := c.call(ctx, "transact", ovsdb.NewTransactArgs(c.database, ops...), nil)
	if err != nil {
		return nil, err
	}
	var out []ovsdb.OperationResult
	if err := unmarshal(answer, &out); err != nil {
		return nil, fmt.Errorf("reading the results of %d operations: %w", len(ops), err)
	}
	return out, nil
}

// unmarshal reads a value that the library decodes. It does not expect all that a server may send.
func unmarshal(raw []byte, to any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed: %v", p)
		}
	}()
	return json.Unmarshal(raw, to)
}

// request and response are the messages that are sent (RFC 7047 section 4).
type request struct {
	Method string `json:"method"`
	Params any    `json:"params"`
	ID     uint64 `json:"id"`
}

type response struct {
	ID     jsontext.Value `json:"id"`
	Result jsontext.Value `json:"result"`
	Error  any            `json:"error"`
}

// call sends a request and waits for its answer.
func (c *Conn) call(
	ctx context.Context, method string, params any, stream func(*jsontext.Decoder) error,
) (jsontext.Value, error) {
	w := &call{answered: make(chan struct{}), stream: stream}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return nil, c.err
	}
	c.lastID++
	id := c.lastID
	c.calls[id] = w
	c.mu.Unlock()
	if err := c.send(ctx, request{method, params, id}); err != nil {
		c.forget(id)
		return nil, err
	}
	select {
	case <-w.answered:
		return w.result, w.err
	case <-ctx.Done():
		c.forget(id)
		return nil, ctx.Err()
	}
}

// forget removes a call that is under way, and tells whether it was there: whoever removes it may end it.
func (c *Conn) forget(id uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there := c.calls[id]
	delete(c.calls, id)
	return there
}

// send writes a message. One that is not written whole when ctx ends has spoilt the connection.
func (c *Conn) send(ctx context.Context, message any) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(message); err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(expired)
		_ = c.net.SetWriteDeadline(time.Unix(1, 0)) // it fails when the connection has ended, which the write tells
	})
	_, err := c.net.Write(b.Bytes())
	if !stop() {
		<-expired
		_ = c.net.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		err = errors.Join(ctx.Err(), fmt.Errorf("writing a message: %w", err))
		c.fail(err)
	}
	return err
}
