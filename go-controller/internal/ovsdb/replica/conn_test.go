package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// schema is the answer of a scripted server to get_schema.
const schema = `{"name":"D","version":"1.0.0","tables":{}}`

// script is a server that answers each request with the messages that it returns. ID stands for the request's id.
type script func(method string, params []json.RawMessage) string

// serve starts a server and connects to it.
func serve(t *testing.T, s script) (*Conn, net.Conn) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	accepted, ended := make(chan net.Conn, 1), make(chan struct{})
	go func() {
		defer close(ended)
		server, err := l.Accept()
		if err != nil {
			return
		}
		accepted <- server
		answer(server, s)
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	c, err := Dial(t.Context(), "unix:"+socket, nil, "D")
	if err != nil {
		t.Fatal(err)
	}
	server := <-accepted
	t.Cleanup(func() { c.Close(); server.Close() })
	return c, server
}

func answer(server net.Conn, s script) {
	for d := json.NewDecoder(server); ; {
		var m struct {
			Method string
			Params []json.RawMessage
			ID     json.RawMessage
		}
		if d.Decode(&m) != nil {
			return
		}
		text := `{"id":ID,"result":` + schema + `,"error":null}`
		if m.Method != "get_schema" {
			text = s(m.Method, m.Params)
		}
		if _, err := server.Write([]byte(strings.ReplaceAll(text, "ID", string(m.ID)))); err != nil {
			return
		}
	}
}

type thing struct {
	UUID    string            `ovsdb:"_uuid"`
	Name    string            `ovsdb:"name"`
	Size    int               `ovsdb:"size"`
	On      bool              `ovsdb:"on"`
	Maybe   *string           `ovsdb:"maybe"`
	Tag     *int              `ovsdb:"tag"`
	Up      *bool             `ovsdb:"up"`
	Members []string          `ovsdb:"members"`
	Pairs   map[string]string `ovsdb:"pairs"`
	Counts  map[string]int    `ovsdb:"counts"`
}

func things() []Table {
	return []Table{{Name: "T", Row: &thing{},
		Columns: []string{"name", "size", "on", "maybe", "tag", "up", "members", "pairs", "counts"}}}
}

// full is a row with a value in each column, as JSON.
const full = `{"name":"a\"é\u0041","size":-3,"on":true,"maybe":["set",["x"]],"tag":7,"up":["set",[false]],` +
	`"members":["set",[["uuid","u1"],["uuid","u2"]]],"pairs":["map",[["k","v"],["l",""]]],"counts":["map",[["n",4]]],` +
	`"unknown":["set",[]]}`

func fullThing() *thing {
	x, seven, no := "x", 7, false
	return &thing{UUID: "r", Name: `a"éA`, Size: -3, On: true, Maybe: &x, Tag: &seven, Up: &no,
		Members: []string{"u1", "u2"}, Pairs: map[string]string{"k": "v", "l": ""}, Counts: map[string]int{"n": 4}}
}

// monitored begins a monitor whose answer is the text.
func monitored(t *testing.T, text string, sink Sink) (*Copy, error) {
	t.Helper()
	c, _ := serve(t, func(method string, params []json.RawMessage) string {
		if method == "monitor_cond_since" && len(params) == 4 {
			return text
		}
		return `{"id":ID,"result":[],"error":null}`
	})
	return c.Monitor(t.Context(), things(), sink)
}

// same fails unless the copy has these rows, as JSON.
func same(t *testing.T, y *Copy, want ...*thing) {
	t.Helper()
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var got, wanted []string
	for _, row := range y.Rows("T") {
		got = append(got, text(row))
	}
	for _, row := range want {
		wanted = append(wanted, text(row))
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) || y.Len("T") != len(want) {
		t.Errorf("rows %v, want %v", got, wanted)
	}
}

// Members of a message may come in any order, and strings may be written in any way.
func TestMonitor(t *testing.T) {
	rows := `[false,"0",{"T":{"r":{"initial":` + full + `},"s":{"initial":{}}},"Other":{"q":{"initial":{}}}}]`
	for _, answer := range []string{
		`{"id":ID,"result":` + rows + `,"error":null}`,
		`{"error":null,"result":` + rows + `,"id":ID}`,
		` {"result" : ` + rows + ` , "more":[{}], "error":null,"id":ID} `,
	} {
		var loaded []string
		announced := 0
		y, err := monitored(t, answer, Sink{Load: func(n int, rows iter.Seq[model.Model]) {
			for row := range rows {
				loaded, announced = append(loaded, row.(*thing).UUID), n
			}
		}})
		if err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		same(t, y, fullThing(), &thing{UUID: "s"})
		if slices.Sort(loaded); announced != 2 || !slices.Equal(loaded, []string{"r", "s"}) {
			t.Errorf("%v were loaded, and %d announced", loaded, announced)
		}
		if y.Row("T", "s") == nil || y.Row("T", "q") != nil || y.Row("Other", "q") != nil || y.Rows("Other") != nil {
			t.Error("rows that are not there are, or the other way round")
		}
	}
}

func TestMonitorRefused(t *testing.T) {
	for answer, want := range map[string]string{
		`{"id":ID,"result":null,"error":"no such thing"}`:                                                "no such thing",
		`{"id":ID,"error":{"error":"bad","details":"very"},"result":null}`:                               "bad: very",
		`{"id":ID,"result":[false,"0",{"T":{"r":{"initial":{"size":"x"}}}}],"error":null}`:               "T: column size",
		`{"id":ID,"result":[false,"0",{"T":{"r":{"initial":{"on":"x"}}}}],"error":null}`:                 "column on",
		`{"id":ID,"result":[false,"0",{"T":{"r":{"initial":{"tag":["x",1]}}}}],"error":null}`:            `kind "x"`,
		`{"id":ID,"result":[false,"0",{"T":{"r":{"initial":{"pairs":["map",[["a"]]]}}}}],"error":null}`:  "a pair",
		`{"id":ID,"result":[false,"0",{"T":{"r":{"initial":{"name":["set",["a","b"]]}}}}],"error":null}`: "2 values",
		`{"id":ID,"result":[false,"0",{"T":{"r":{"renamed":{}}}}],"error":null}`:                         "not there for",
		`{"id":ID,"result":[false,"0",{"T":{"r":{"initial":{}},"r":{"initial":{}}}}],"error":null}`:      "there already",
		`{"id":ID,"result":7,"error":null}`:                                                              "want",
		`x`:                                                                                              "invalid character",
	} {
		_, err := monitored(t, answer, Sink{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", answer, err, want)
		}
	}
}

// initially answers a monitor with one row, and notes its id.
func initially(row string, id *string) script {
	return func(_ string, params []json.RawMessage) string {
		var n struct{ ID string }
		if json.Unmarshal(params[1], &n) != nil {
			return "x"
		}
		*id = n.ID
		return `{"id":ID,"result":[false,"0",{"T":{"r":{"initial":` + row + `}}}],"error":null}`
	}
}

// An update of every kind leads to the same as the server has, and rows that were handed out stay as they were.
func TestUpdate(t *testing.T) {
	type event struct{ before, after string }
	var events []event
	name := func(row model.Model) string {
		if row == nil {
			return ""
		}
		return row.(*thing).Name
	}
	changed := make(chan struct{}, 9)
	id := ""
	c, server := serve(t, initially(full, &id))
	y, err := c.Monitor(t.Context(), things(), Sink{Change: func(before, after model.Model) {
		events = append(events, event{name(before), name(after)})
		changed <- struct{}{}
	}})
	if err != nil {
		t.Fatal(err)
	}
	first := y.Row("T", "r")
	send := func(format string) {
		t.Helper()
		if _, err := fmt.Fprintf(server, format, id); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		case <-c.Done():
			t.Fatal(c.Err())
		}
	}
	send(`{"id":null,"method":"update3","params":[{"databaseName":"D","id":"%s"},"1",{"T":{"r":{"modify":{"name":"b",` +
		`"maybe":["set",[]],"tag":8,"members":["set",[["uuid","u1"],["uuid","u3"]]],` +
		`"pairs":["map",[["k","v"],["l","w"],["m","x"]]],"counts":["map",[["n",4],["o",5]]]}}}}]}`)
	eight, no := 8, false
	second := &thing{UUID: "r", Name: "b", Size: -3, On: true, Tag: &eight, Up: &no, Members: []string{"u2", "u3"},
		Pairs: map[string]string{"l": "w", "m": "x"}, Counts: map[string]int{"o": 5}}
	same(t, y, second)
	send(`{"params":[{"databaseName":"D","id":"%s"},{"T":{"s":{"insert":{"name":"c"}}}}],"method":"update2","id":null}`)
	same(t, y, second, &thing{UUID: "s", Name: "c"})
	send(`{"method":"update2","params":[{"databaseName":"D","id":"%s"},{"T":{"r":{"delete":null}}}],"id":null}`)
	same(t, y, &thing{UUID: "s", Name: "c"})
	if want := []event{{`a"éA`, "b"}, {"", "c"}, {"b", ""}}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
	same(t, &Copy{tables: map[string]*table{"T": {rows: map[string]model.Model{"r": first}}}}, fullThing())
}

// What does not fit the copy ends the connection: the next one reads everything.
func TestUpdateThatDoesNotFit(t *testing.T) {
	for _, rows := range []string{
		`{"T":{"s":{"modify":{}}}}`, `{"T":{"s":{"delete":null}}}`, `{"T":{"r":{"insert":{}}}}`, `{"T":7}`,
		`{"T":{"r":{"modify":{"size":["set",[1,2]]}}}}`,
	} {
		id := ""
		c, server := serve(t, initially(`{}`, &id))
		if _, err := c.Monitor(t.Context(), things(), Sink{}); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(server, `{"method":"update2","params":[{"id":"%s"},%s],"id":null}`, id, rows)
		<-c.Done()
		if err := c.Echo(t.Context()); !errors.Is(err, c.Err()) {
			t.Errorf("%s: an echo then: %v, want %v", rows, err, c.Err())
		}
	}
}

// A request of the server is answered. What nobody waits for is passed over.
func TestRequestsOfTheServer(t *testing.T) {
	answered := make(chan string, 1)
	c, server := serve(t, func(method string, _ []json.RawMessage) string {
		if method == "" {
			answered <- "yes"
			return ""
		}
		return `{"id":99,"result":1,"error":null}{"id":"x","result":1,"error":null}{"method":"locked","params":["l"],` +
			`"id":null}{"id":ID,"result":[],"error":null}`
	})
	if err := c.Echo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Write([]byte(`{"id":"echo","method":"echo","params":[]}`)); err != nil {
		t.Fatal(err)
	}
	<-answered
}

// A server that reads nothing holds up a request only as long as its context allows. Half a message spoils the
// connection.
func TestServerThatDoesNotRead(t *testing.T) {
	stopped, reading := make(chan struct{}), make(chan struct{})
	c, server := serve(t, func(string, []json.RawMessage) string { close(stopped); <-reading; return "" })
	defer close(reading)
	asked := make(chan error, 1)
	go func() { asked <- c.Echo(t.Context()) }()
	<-stopped
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() {
		large := ovsdb.Operation{Op: ovsdb.OperationComment, Table: strings.Repeat("x", 1<<20)}
		_, err := c.Transact(ctx, large, large)
		sent <- err
	}()
	if _, err := server.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel() // part of the message has been sent
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Errorf("a request that is not read: %v, want %v", err, context.Canceled)
	}
	<-c.Done()
	if err := <-asked; err == nil {
		t.Error("a call succeeded without an answer")
	}
	if err := c.Echo(t.Context()); err == nil {
		t.Error("the connection was used again")
	}
}

// A request whose time is up before it is sent leaves the connection as it was.
func TestTimeIsUpBeforeSending(t *testing.T) {
	c, _ := serve(t, func(string, []json.RawMessage) string { return `{"id":ID,"result":[],"error":null}` })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Transact(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a request after its time: %v, want %v", err, context.Canceled)
	}
	if err := c.Echo(t.Context()); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// A call that is given up does not end the connection. One under way ends with it.
func TestCallsEnd(t *testing.T) {
	c, server := serve(t, func(string, []json.RawMessage) string { return "" })
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan error, 1)
	go func() { cancelled <- c.Echo(ctx) }()
	cancel()
	if err := <-cancelled; !errors.Is(err, context.Canceled) || c.Err() != nil {
		t.Errorf("a call that was given up: %v; the connection: %v", err, c.Err())
	}
	lost := make(chan error, 1)
	go func() { lost <- c.Echo(t.Context()) }()
	server.Close()
	if err := <-lost; err == nil {
		t.Error("a call succeeded without an answer")
	}
}

func TestDialFails(t *testing.T) {
	for address, want := range map[string]string{
		"unix:/nonexistent/s": "no such file", "tcp:127.0.0.1:1": "refused", "http:x": `address "http:x"`,
		"": "want unix:PATH",
	} {
		if _, err := Dial(t.Context(), address, nil, "D"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	if _, err := Dial(t.Context(), remote, nil, "D"); err == nil || !strings.Contains(err.Error(), "unknown database") {
		t.Errorf("a database that the server does not have: %v", err)
	}
}

// A column without a field of its own, or with a field of another type, is an error before anything is read.
func TestTableWithoutField(t *testing.T) {
	type other struct {
		UUID string    `ovsdb:"_uuid"`
		Real []float64 `ovsdb:"real"`
	}
	for _, column := range []string{"real", "none"} {
		if _, err := newTable(Table{Name: "T", Columns: []string{column}, Row: &other{}}); err == nil ||
			!strings.Contains(err.Error(), "column "+column) {
			t.Errorf("column %s: %v", column, err)
		}
	}
}
