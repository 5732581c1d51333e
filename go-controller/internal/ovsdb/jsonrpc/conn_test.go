package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// server is the other side of a connection.
type server struct {
	t    *testing.T
	conn net.Conn
	in   *json.Decoder
}

// pair connects with a server. Notifications go to the channel, and are refused when they say "wrong".
func pair(t *testing.T) (*Conn, server, chan string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	notified := make(chan string, 10)
	c, err := Dial(t.Context(), "unix:"+path, nil, func(method string, params *Reader) error {
		notified <- method + string(params.Raw())
		if method == "wrong" {
			return errors.New("a wrong notification")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return c, server{t, conn, json.NewDecoder(conn)}, notified
}

func (s server) send(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.conn, text); err != nil {
		s.t.Fatal(err)
	}
}

func (s server) receive() string {
	s.t.Helper()
	var m json.RawMessage
	if err := s.in.Decode(&m); err != nil {
		s.t.Fatal(err)
	}
	return string(m)
}

// calling makes a call that keeps its result. It returns the outcome.
func calling(c *Conn, ctx context.Context, result *string) chan error {
	out := make(chan error, 1)
	go func() {
		out <- c.Call(ctx, "transact", []any{"db", 1}, func(r *Reader) error {
			*result = string(r.Raw())
			return nil
		})
	}()
	return out
}

// What comes before an answer has been handled when the call returns, in whatever parts it comes.
func TestInOrder(t *testing.T) {
	c, s, notified := pair(t)
	var result string
	done := calling(c, t.Context(), &result)
	if got, want := s.receive(), `{"method":"transact","params":["db",1],"id":1}`; got != want {
		t.Errorf("the request is %s, want %s", got, want)
	}
	long := `"` + strings.Repeat(`\\\"}`, bufferKept) + `"`
	for _, part := range []string{`{"id":null,"method":"upd`, `ate2","params":[`, long[:9], long[9:],
		`]}{"result":[{"a`, `":"\"}"}],`, `"error":null,"id":1}{"method":"update2",`, `"params":[2],"id":null}`} {
		s.send(part)
	}
	if err := <-done; err != nil || result != `[{"a":"\"}"}]` {
		t.Errorf("the result is %s (%v)", result, err)
	}
	if got := <-notified; got != "update2["+long+"]" {
		t.Errorf("a notification of %d bytes is handled before the answer, want one of %d", len(got), len(long))
	}
	if got := <-notified; got != "update2[2]" {
		t.Errorf("the notification %s", got)
	}
}

func TestEcho(t *testing.T) {
	_, s, _ := pair(t)
	s.send(`{"id":"echo","method":"echo","params":["x"]}`)
	if got, want := s.receive(), `{"error":null,"id":"echo","result":["x"]}`; got != want {
		t.Errorf("the answer is %s, want %s", got, want)
	}
}

// An error of the server ends the call alone.
func TestErrorOfTheServer(t *testing.T) {
	c, s, _ := pair(t)
	var result string
	done := calling(c, t.Context(), &result)
	s.receive()
	s.send(`{"id":1,"result":null,"error":{"error":"unknown database"}}`)
	if err := <-done; err == nil || !strings.Contains(err.Error(), `{"error":"unknown database"}`) || result != "" {
		t.Errorf("the call ends with %v, result %s", err, result)
	}
	if c.Err() != nil {
		t.Errorf("the connection ends with %v", c.Err())
	}
}

// An answer that comes too late is dropped.
func TestCancelledCall(t *testing.T) {
	c, s, notified := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	var result string
	done := calling(c, ctx, &result)
	s.receive()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ends with %v", err)
	}
	s.send(`{"id":1,"result":1,"error":null}{"id":null,"method":"next","params":[]}`)
	if got := <-notified; got != "next[]" || result != "" {
		t.Errorf("%s comes next, result %q", got, result)
	}
}

// Whatever ends the connection ends the calls under way and those to come.
func TestTheEnd(t *testing.T) {
	for what, c := range map[string]struct {
		end  func(*Conn, server)
		want string
	}{
		"closed here":            {func(c *Conn, _ server) { c.Close() }, errClosed.Error()},
		"closed there":           {func(_ *Conn, s server) { s.conn.Close() }, "EOF"},
		"not JSON":               {func(_ *Conn, s server) { s.send(`]`) }, "reading JSON"},
		"no object":              {func(_ *Conn, s server) { s.send(`["a"]`) }, "reading JSON"},
		"an unwanted answer":     {func(_ *Conn, s server) { s.send(`{"id":"x"}`) }, "want the id of a request"},
		"a refused notification": {func(_ *Conn, s server) { s.send(`{"method":"wrong"}`) }, "a wrong notification"},
	} {
		t.Run(what, func(t *testing.T) {
			conn, s, _ := pair(t)
			var result string
			done := calling(conn, t.Context(), &result)
			s.receive()
			c.end(conn, s)
			errs := []error{<-done, <-calling(conn, t.Context(), &result)}
			if <-conn.Done(); slices.ContainsFunc(append(errs, conn.Err()), func(err error) bool {
				return err == nil || !strings.Contains(err.Error(), c.want)
			}) {
				t.Errorf("calls end with %v, the connection with %v; want %s", errs, conn.Err(), c.want)
			}
		})
	}
}
