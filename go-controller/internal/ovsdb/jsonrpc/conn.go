package jsonrpc

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// answerTimeout limits how long the server may take to read our answer to its echo.
const answerTimeout = 10 * time.Second

// errClosed is why a connection has ended that Close ended.
var errClosed = errors.New("the connection is closed")

// Notify takes a notification. After an error the connection ends.
type Notify func(method string, params *Reader) error

// Conn is a connection. What the server sends is handled one by one, in the order in which it comes.
type Conn struct {
	conn   net.Conn
	notify Notify
	done   chan struct{} // closed when the connection has ended
	read   sync.WaitGroup

	writing sync.Mutex

	mu    sync.Mutex
	last  uint64           // the id of the last request
	calls map[uint64]*call // under way, by id
	err   error            // why the connection has ended
}

// call is a request whose answer has not been handled yet.
type call struct {
	receive func(*Reader) error
	done    chan error // has room for the outcome
}

// Dial connects with a server, and calls notify with its notifications. keys is for ssl: remotes.
func Dial(ctx context.Context, remote string, keys *tls.Config, notify Notify) (*Conn, error) {
	conn, err := dial(ctx, remote, keys)
	if err != nil {
		return nil, err
	}
	c := &Conn{conn: conn, notify: notify, done: make(chan struct{}), calls: map[uint64]*call{}}
	c.read.Go(func() { c.end(c.serve()) })
	return c, nil
}

func dial(ctx context.Context, remote string, keys *tls.Config) (net.Conn, error) {
	network, address, _ := strings.Cut(remote, ":")
	switch network {
	case "unix", "tcp":
		return (&net.Dialer{}).DialContext(ctx, network, address)
	case "ssl":
		return (&tls.Dialer{Config: keys}).DialContext(ctx, "tcp", address)
	}
	return nil, fmt.Errorf("connecting to %q: want unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT", remote)
}

// Done is closed when the connection has ended. Err then tells why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection has ended, nil while it lasts.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection. Nothing is received when it has returned. It must not be called while something is.
func (c *Conn) Close() {
	c.end(errClosed)
	c.read.Wait()
}

// end ends the connection and the calls under way, unless it has ended.
func (c *Conn) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = why
	_ = c.conn.Close() // nothing more is expected of it
	for id, call := range c.calls {
		delete(c.calls, id)
		call.done <- why
	}
	close(c.done)
}

// Call sends a request. receive reads the result before anything that the server sends after it is handled.
func (c *Conn) Call(ctx context.Context, method string, params []any, receive func(result *Reader) error) error {
	call := &call{receive, make(chan error, 1)}
	c.mu.Lock()
	c.last++
	id := c.last
	if c.err != nil {
		defer c.mu.Unlock()
		return c.err
	}
	c.calls[id] = call
	c.mu.Unlock()
	deadline, _ := ctx.Deadline()
	if err := c.write(deadline, request{method, params, id}); err != nil {
		c.end(err)
	}
	select {
	case err := <-call.done:
		return err
	case <-ctx.Done():
		if c.take(id) != nil {
			return fmt.Errorf("waiting for the answer to %s: %w", method, ctx.Err())
		}
		return <-call.done // the answer is being received
	}
}

// take is the call of an id, which it forgets; nil when there is none.
func (c *Conn) take(id uint64) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[id]
	delete(c.calls, id)
	return call
}

type request struct {
	Method string `json:"method"`
	Params []any  `json:"params"`
	ID     uint64 `json:"id"`
}

// write sends a message, whole or with an error. The zero deadline is none.
func (c *Conn) write(deadline time.Time, message any) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.conn.SetWriteDeadline(deadline); err != nil {
		return fmt.Errorf("writing to the server: %w", err)
	}
	if err := json.NewEncoder(c.conn).Encode(message); err != nil {
		return fmt.Errorf("writing to the server: %w", err)
	}
	return nil
}

// serve handles what the server sends until the connection ends, and tells why it does.
func (c *Conn) serve() error {
	in := stream{from: c.conn}
	for {
		message, err := in.next()
		if err == nil {
			err = c.handle(message)
		}
		if err != nil {
			return fmt.Errorf("reading from the server: %w", err)
		}
	}
}

// handle handles one message: an answer, a notification or a request.
func (c *Conn) handle(message []byte) error {
	var method string
	field := map[string][]byte{}
	r := NewReader(message)
	r.Object(func(key []byte) {
		if string(key) == "method" {
			method = r.Text()
		} else {
			field[string(key)] = r.Raw()
		}
	})
	switch {
	case r.Err() != nil:
		return r.Err()
	case method == "echo":
		answer := map[string]any{"id": json.RawMessage(field["id"]), "result": json.RawMessage(field["params"]), "error": nil}
		return c.write(time.Now().Add(answerTimeout), answer)
	case method != "":
		return c.notify(method, NewReader(field["params"]))
	}
	id, err := strconv.ParseUint(string(field["id"]), 10, 64)
	if err != nil {
		return fmt.Errorf("an answer with id %s, want the id of a request", field["id"])
	}
	if call := c.take(id); call != nil {
		call.done <- call.answered(field["result"], field["error"])
	}
	return nil
}

// answered hands over an answer.
func (c *call) answered(result, failure []byte) error {
	if failure != nil && string(failure) != "null" {
		return fmt.Errorf("the server answers %s", failure)
	}
	return c.receive(NewReader(result))
}

// A buffer begins with bufferSize bytes. One of more than bufferKept is given back once its message has been handled.
const (
	bufferSize = 64 << 10
	bufferKept = 1 << 20
)

// stream cuts what comes into messages.
type stream struct {
	from       io.Reader
	buf        []byte
	start, end int // of what has come and has not been handed out
}

// next is the next message, which is valid until the next call.
func (s *stream) next() ([]byte, error) {
	if s.start == s.end && len(s.buf) > bufferKept {
		s.buf, s.start, s.end = nil, 0, 0
	}
	var value nesting
	for at := s.start; ; {
		if n := value.end(s.buf[at:s.end]); n >= 0 {
			from := s.start
			s.start = at + n
			return s.buf[from:s.start], nil
		}
		s.end = copy(s.buf, s.buf[s.start:s.end])
		s.start, at = 0, s.end
		if s.end == len(s.buf) {
			s.buf = append(s.buf, make([]byte, max(bufferSize, len(s.buf)))...)
		}
		n, err := s.from.Read(s.buf[s.end:])
		if s.end += n; n == 0 && err != nil {
			return nil, err
		}
	}
}
