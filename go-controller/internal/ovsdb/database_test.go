package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb/replica"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// open runs a Database until the test ends.
func open(t *testing.T, addresses ...string) *Database {
	t.Helper()
	d := New(config.OVSDB{Addresses: addresses}, nb.NewSchema(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { defer wg.Done(); d.Run(ctx) }()
	t.Cleanup(func() { cancel(); wg.Wait() })
	return d
}

func session(t *testing.T, d *Database) *Session {
	t.Helper()
	testkit.Eventually(t, "a session", func() string {
		if d.Session() == nil {
			return fmt.Sprint(d.Failure())
		}
		return ""
	})
	return d.Session()
}

func owner() nb.Owner { return nb.Owner{Kind: names.KindNode, Name: "n1"} }

// rows is a switch with a port.
func rows(s *nb.Schema, addresses ...string) []nb.Row {
	key := func(table, role string) nb.Key { return nb.Key{Table: table, Owner: owner(), Role: role} }
	sw := &nbdb.LogicalSwitch{UUID: names.NodeRow(nbdb.LogicalSwitchTable, "n1", names.RoleSwitch, ""), Name: "n1"}
	port := &nbdb.LogicalSwitchPort{UUID: names.NodeRow(nbdb.LogicalSwitchPortTable, "n1", names.RoleManagement, ""),
		Name: "k8s-n1", Addresses: addresses}
	return []nb.Row{s.NewRow(key(nbdb.LogicalSwitchTable, names.RoleSwitch), sw),
		s.NewRow(key(nbdb.LogicalSwitchPortTable, names.RoleManagement), port, nb.Slot{In: s.Ref(sw), Column: "ports"})}
}

func plan(t *testing.T, s *Session, want []nb.Row) nb.Plan {
	t.Helper()
	p, err := s.schema.Plan(s.View(), owner(), want, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A server that accepts connections and says nothing, as one that is stopped or behind a broken switch does, keeps
// nobody from reaching the next.
func TestAServerThatHangsDoesNotHideTheOthers(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	sock := filepath.Join(strings.TrimSuffix(strings.TrimPrefix(remote, "unix:"), "db.sock"), "hung.sock")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := session(t, open(t, "unix:"+sock, "unix:/nonexistent.sock", remote))
	if got := s.conn.Address(); got != remote {
		t.Errorf("connected to %s, want %s", got, remote)
	}
}

func TestFailureNamesEveryServer(t *testing.T) {
	d := open(t, "unix:/nonexistent/a.sock", "tcp:127.0.0.1:1")
	testkit.Eventually(t, "a failure", func() string {
		if d.Failure() == nil {
			return "no failure"
		}
		return ""
	})
	for _, want := range []string{"connecting to the Northbound database", "unix:/nonexistent/a.sock: ", "no such file",
		"tcp:127.0.0.1:1: ", "refused"} {
		if got := d.Failure().Error(); !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("failure %q, want one line with %q", got, want)
		}
	}
}

// Raft is at-least-once: a transaction that was carried out may come again. Derived UUIDs make the second a duplicate,
// and a look at the database then finds nothing to do.
func TestTheSameTransactionTwice(t *testing.T) {
	s := session(t, open(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])))
	want := rows(s.schema, "0a:58:0a:f4:00:02 10.244.0.2")
	p := plan(t, s, want)
	if out, err := s.Transact(t.Context(), []nb.Plan{p}); err != nil || len(out.Lost) != 0 {
		t.Fatalf("first time: %v, lost %v", err, out.Lost)
	}
	_, err := s.Transact(t.Context(), []nb.Plan{p})
	if !IsRejected(err) || !strings.Contains(err.Error(), "duplicate") {
		t.Errorf("second time: %v, want a duplicate to be refused", err)
	}
	if again := plan(t, s, want); !again.Empty() {
		t.Errorf("afterwards there is still to do:\n%s", again)
	}
	if n := s.copy.Len(nbdb.LogicalSwitchTable); n != 1 {
		t.Errorf("%d switches, want 1", n)
	}
}

// An update of a row that somebody deleted in the meantime succeeds in OVSDB and does nothing: its owner is told of as
// lost.
func TestLostOwnersAreTold(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	s := session(t, open(t, remote))
	if _, err := s.Transact(t.Context(), []nb.Plan{plan(t, s, rows(s.schema, "a"))}); err != nil {
		t.Fatal(err)
	}
	update := plan(t, s, rows(s.schema, "b"))
	testkit.Run(t, "ovn-nbctl", "--db="+remote, "ls-del", "n1")
	out, err := s.Transact(t.Context(), []nb.Plan{update})
	if err != nil || len(out.Lost) != 1 || out.Lost[0] != owner() {
		t.Fatalf("lost %v, error %v, want %v lost", out.Lost, err, owner())
	}
	testkit.Eventually(t, "the owner is dirty, and its rows are planned anew", func() string {
		if p := plan(t, s, rows(s.schema, "b")); len(p.Rows) != 2 || p.Rows[0].Verb != nb.Insert {
			return p.String()
		}
		return ""
	})
}

// The switch of a node that was set up by hand is known under a stand-in, too.
func TestByHandUnderStandIn(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	s := session(t, open(t, remote))
	want := rows(s.schema, "a")
	want[0].Model.(*nbdb.LogicalSwitch).ExternalIDs[names.ByHandKey] = "record"
	for _, uuid := range []string{byHandSwitch("n1"), names.StandIn(byHandSwitch("n1"), 1)} {
		if _, err := s.Transact(t.Context(), []nb.Plan{plan(t, s, want)}); err != nil {
			t.Fatal(err)
		}
		record, ok := s.ByHandRecord("n1")
		if all := s.ByHand(); !ok || record != "record" || len(all) != 1 || all["n1"] != record {
			t.Errorf("records %v, of n1 %q, %v; want one", all, record, ok)
		}
		if at := s.schema.Ref(s.ByHandSwitch("n1")); at.UUID != uuid {
			t.Errorf("the switch is at %s, want %s", at.UUID, uuid)
		}
		testkit.Run(t, "ovn-nbctl", "--db="+remote, "ls-del", "n1")
		testkit.Eventually(t, "the switch is gone", func() string {
			if s.ByHandSwitch("n1") != nil || !s.index.spentNow(uuid) {
				return "still there"
			}
			return ""
		})
	}
	if record, ok := s.ByHandRecord("n1"); ok {
		t.Errorf("a node that is gone has record %q", record)
	}
}

// A copy that is not what the server has is noticed.
func TestCompareWithServer(t *testing.T) {
	s := session(t, open(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])))
	if _, err := s.Transact(t.Context(), []nb.Plan{plan(t, s, rows(s.schema, "a"))}); err != nil {
		t.Fatal(err)
	}
	if err := s.CompareWithServer(t.Context()); err != nil {
		t.Errorf("nothing differs, but: %v", err)
	}
	copied := s.copy
	for _, other := range []string{"", "11111111-1111-4111-8111-111111111111"} {
		s.copy = withSwitch(t, other)
		problem := "Logical_Switch has 1 rows there, 0 here"
		if other != "" {
			problem = s.schema.Ref(copied.Rows(nbdb.LogicalSwitchTable)[0]).UUID
		}
		if err := s.CompareWithServer(t.Context()); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("a copy with switch %q: %v, want %q", other, err, problem)
		}
	}
}

// withSwitch is a copy of a database that has a switch with this UUID, or none for "".
func withSwitch(t *testing.T, uuid string) *replica.Copy {
	t.Helper()
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	s := session(t, open(t, remote))
	if uuid != "" {
		op := ovsdb.Operation{Op: ovsdb.OperationInsert, Table: nbdb.LogicalSwitchTable, UUID: uuid,
			Row: ovsdb.Row{"name": "another"}}
		if _, err := s.send(t.Context(), []operation{{op, nil, -1}}); err != nil {
			t.Fatal(err)
		}
	}
	return s.copy
}

// A transaction under way ends with the session instead of holding up its end.
func TestTransactEndsWithTheSession(t *testing.T) {
	s := session(t, open(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])))
	s.end()
	if _, err := s.Transact(t.Context(), []nb.Plan{plan(t, s, rows(s.schema, "a"))}); !errors.Is(err, context.Canceled) {
		t.Errorf("a transaction in a session that ended: %v, want it cancelled", err)
	}
}
