package ovsdbwire_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
	"github.com/northbound-net/northbound/test/scale/process"
)

const database = "OVN_Northbound"

type object map[string]any

// serve starts an ovsdb-server with an empty database.
func serve(t *testing.T) (socket, file string) {
	t.Helper()
	dir := t.TempDir()
	file, socket = filepath.Join(dir, "nb.db"), filepath.Join(dir, "nb.sock")
	if out, err := exec.Command("ovsdb-tool", "create", file,
		"/usr/share/ovn/ovn-nb.ovsschema").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server, err := process.Find("ovsdb-server", "openvswitch-common")
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start("ovsdb-server", filepath.Join(dir, "log"), server, "--no-chdir", "--unixctl="+
		filepath.Join(dir, "ctl"), "--remote=punix:"+socket, file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(10 * time.Second); err != nil {
			t.Error(err)
		}
	})
	return socket, file
}

func dial(t *testing.T, socket string) *ovsdbwire.Client {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		c, err := ovsdbwire.Dial(socket)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func insert(name string) object {
	return object{"op": "insert", "table": "Logical_Switch", "row": object{"name": name}}
}

// TestClient writes, watches and counts rows.
func TestClient(t *testing.T) {
	socket, file := serve(t)
	writer, watcher := dial(t, socket), dial(t, socket)
	if err := writer.Transact(database, insert("before")); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen []string
	heard := make(chan struct{}, 16)
	err := watcher.Monitor(database, "Logical_Switch", []string{"name"},
		func(_ string, rows map[string]ovsdbwire.RowUpdate) {
			mu.Lock()
			defer mu.Unlock()
			for _, u := range rows {
				switch {
				case u.Initial != nil:
					seen = append(seen, "initial "+string(u.Initial))
				case u.Insert != nil:
					seen = append(seen, "insert "+string(u.Insert))
				default:
					seen = append(seen, "other")
				}
			}
			heard <- struct{}{}
		})
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Transact(database, insert("a"), insert("b")); err != nil {
		t.Fatal(err)
	}
	<-heard
	<-heard
	mu.Lock()
	slices.Sort(seen)
	if want := []string{`initial {"name":"before"}`, `insert {"name":"a"}`, `insert {"name":"b"}`}; !slices.Equal(seen,
		want) {
		t.Errorf("saw %q, want %q", seen, want)
	}
	mu.Unlock()
	log := ovsdbwire.OpenLog(file)
	records(t, log, 3) // the schema and two transactions
	if err := writer.Transact(database, insert("c")); err != nil {
		t.Fatal(err)
	}
	records(t, log, 4)
	err = writer.Transact(database, insert("d"), object{"op": "insert", "table": "Logical_Switch",
		"row": object{"no_such_column": "e"}})
	if err == nil || !strings.Contains(err.Error(), "no_such_column") {
		t.Errorf("error %v, want one about the column no_such_column", err)
	}
	records(t, log, 4)
}

func records(t *testing.T, l *ovsdbwire.Log, want int) {
	t.Helper()
	if got, err := l.Records(); err != nil || got != want {
		t.Errorf("%d records, %v, want %d", got, err, want)
	}
}
