package ovsdbwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
)

// Client is a connection to a server. Its methods may be called concurrently.
type Client struct {
	conn net.Conn

	mu      sync.Mutex
	encoder *json.Encoder
	next    int
	waiting map[int]chan message
	failure error // set when the read loop has ended
	ended   chan struct{}
	rows    func(table string, rows map[string]RowUpdate)
}

// RowUpdate is a row of an update2 notification (ovsdb-server(7)). One member is set, or none if the row was deleted.
type RowUpdate struct{ Initial, Insert, Modify json.RawMessage }

// New has the columns of a row that was there already or has come, nil for any other.
func (u RowUpdate) New() json.RawMessage {
	if u.Insert != nil {
		return u.Insert
	}
	return u.Initial
}

// Content has the columns of a row that is new, or those that have changed. It is nil if the row was deleted.
func (u RowUpdate) Content() json.RawMessage {
	if u.Modify != nil {
		return u.Modify
	}
	return u.New()
}

// message is a JSON-RPC 1.0 request, notification or response.
type message struct {
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// Dial connects to a server on a unix socket.
func Dial(socket string) (*Client, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connecting to ovsdb-server: %w", err)
	}
	c := &Client{conn: conn, encoder: json.NewEncoder(conn), waiting: map[int]chan message{}, ended: make(chan struct{})}
	go c.read()
	return c, nil
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Ended returns a channel that is closed when the connection has ended.
func (c *Client) Ended() <-chan struct{} { return c.ended }

// call sends a request and waits for its response.
func (c *Client) call(method string, params any) (json.RawMessage, error) {
	answer := make(chan message, 1)
	c.mu.Lock()
	if c.failure != nil {
		c.mu.Unlock()
		return nil, c.failure
	}
	c.next++
	id := c.next
	c.waiting[id] = answer
	err := c.encoder.Encode(map[string]any{"method": method, "params": params, "id": id})
	c.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("sending %s: %w", method, err)
	}
	m, ok := <-answer
	switch {
	case !ok:
		return nil, fmt.Errorf("waiting for the answer to %s: %w", method, c.failure)
	case len(m.Error) > 0 && string(m.Error) != "null":
		return nil, fmt.Errorf("%s was refused: %s", method, m.Error)
	}
	return m.Result, nil
}

// read handles all messages of the server until the connection ends.
func (c *Client) read() {
	dec := json.NewDecoder(c.conn)
	for {
		var m message
		if err := dec.Decode(&m); err != nil {
			c.end(fmt.Errorf("reading from ovsdb-server: %w", err))
			return
		}
		if err := c.take(m); err != nil {
			c.end(err)
			return
		}
	}
}

func (c *Client) take(m message) error {
	switch m.Method {
	case "":
		return c.answer(m)
	case "echo":
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.encoder.Encode(map[string]any{"result": m.Params, "error": nil, "id": m.ID})
	case "update2":
		var params [2]json.RawMessage
		if err := json.Unmarshal(m.Params, &params); err != nil {
			return fmt.Errorf("reading an update: %w", err)
		}
		return c.update(params[1])
	}
	return nil
}

func (c *Client) answer(m message) error {
	var id int
	if err := json.Unmarshal(m.ID, &id); err != nil {
		return fmt.Errorf("reading the id of an answer: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch, ok := c.waiting[id]; ok {
		delete(c.waiting, id)
		ch <- m
	}
	return nil
}

// end fails all pending requests.
func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = errors.Join(err, c.conn.Close())
	close(c.ended)
	for id, ch := range c.waiting {
		delete(c.waiting, id)
		close(ch)
	}
}

// Transact sends operations as one transaction (RFC 7047, section 4.1.3). It is an error if an operation fails.
func (c *Client) Transact(database string, operations ...any) error {
	result, err := c.call("transact", append([]any{database}, operations...))
	if err != nil {
		return err
	}
	var results []struct{ Error, Details string }
	if err := json.Unmarshal(result, &results); err != nil {
		return fmt.Errorf("reading the result of a transaction: %w", err)
	}
	for i, r := range results {
		if r.Error != "" {
			return fmt.Errorf("operation %d of the transaction: %s: %s", i, r.Error, r.Details)
		}
	}
	return nil
}

// Monitor calls rows for every change of the given columns of a table: first for the existing rows, and then for
// changes in their order, from another goroutine. A connection can have one monitor.
func (c *Client) Monitor(database, table string, columns []string,
	rows func(table string, rows map[string]RowUpdate)) error {
	c.mu.Lock()
	c.rows = rows
	c.mu.Unlock()
	result, err := c.call("monitor_cond",
		[]any{database, "rows", map[string]any{table: []any{map[string]any{"columns": columns}}}})
	if err != nil {
		return err
	}
	return c.update(result)
}

func (c *Client) update(raw json.RawMessage) error {
	var tables map[string]map[string]RowUpdate
	if err := json.Unmarshal(raw, &tables); err != nil {
		return fmt.Errorf("reading an update: %w", err)
	}
	c.mu.Lock()
	rows := c.rows
	c.mu.Unlock()
	for table, updates := range tables {
		rows(table, updates)
	}
	return nil
}
