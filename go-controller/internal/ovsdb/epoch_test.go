package ovsdb

import (
	"errors"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// routerPlan inserts a cluster router.
func routerPlan(t *testing.T, s *Session) []nb.Plan {
	t.Helper()
	o := nb.Owner{Kind: names.KindCluster, Name: names.ClusterOwner}
	p, err := s.schema.Plan(s.View(), o, []nb.Row{s.schema.NewRow(
		nb.Key{Table: nbdb.LogicalRouterTable, Owner: o, Role: names.RoleRouter},
		&nbdb.LogicalRouter{UUID: names.ClusterRow(nbdb.LogicalRouterTable, names.RoleRouter), Name: "r",
			ExternalIDs: map[string]string{names.KeyClusterRouter: "yes"}})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return []nb.Plan{p}
}

func epoch(t *testing.T, s *Session) Epoch {
	t.Helper()
	e, err := s.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Every transaction of a session waits on the epoch that it raised. After another session has raised it, nothing is
// committed.
func TestFencing(t *testing.T) {
	for ovn, schema := range testkit.NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			remote := testkit.StartOVSDB(t, schema)
			a, b := session(t, open(t, remote)), session(t, open(t, remote))
			none, unseen := epoch(t, b), routerPlan(t, b)
			if _, err := a.Raise(t.Context(), epoch(t, a), Epoch{Number: 1, Leader: "a"}, nil); err == nil {
				t.Error("an epoch was raised without a router")
			}
			if _, err := a.Raise(t.Context(), epoch(t, a), Epoch{Number: 1, Leader: "a"}, routerPlan(t, a)); err != nil {
				t.Fatal(err)
			}
			if e := epoch(t, a); e.Number != 1 || e.Leader != "a" {
				t.Fatalf("the epoch is %d of %q", e.Number, e.Leader)
			}
			if _, err := b.Raise(t.Context(), none, Epoch{Number: 1, Leader: "b"}, unseen); !errors.Is(err, ErrFenced) {
				t.Fatalf("raised over a router that was not seen: %v", err)
			}
			first := plan(t, a, rows(a.schema, "0a:00:00:00:00:01"))
			out, err := a.Transact(t.Context(), []nb.Plan{first})
			if want := len(operations(a.schema, []nb.Plan{first})); err != nil || out.Ops != want {
				t.Fatalf("%d operations, want %d: %v", out.Ops, want, err)
			}
			testkit.Eventually(t, "the other session's cache", func() string {
				if epoch(t, b).Number != 1 {
					return "no epoch"
				}
				return ""
			})
			seen := epoch(t, a)
			if _, err := b.Raise(t.Context(), epoch(t, b), Epoch{Number: 2, Leader: "b"}, nil); err != nil {
				t.Fatal(err)
			}
			_, err = a.Transact(t.Context(), []nb.Plan{plan(t, a, rows(a.schema, "0a:00:00:00:00:02"))})
			if !errors.Is(err, ErrFenced) || IsRejected(err) {
				t.Errorf("a fenced transaction: %v", err)
			}
			if _, err := a.Raise(t.Context(), seen, Epoch{Number: 3, Leader: "a"}, nil); !errors.Is(err, ErrFenced) {
				t.Errorf("raised over an epoch that was not seen: %v", err)
			}
			if _, err := b.Transact(t.Context(), []nb.Plan{plan(t, b, rows(b.schema, "0a:00:00:00:00:03"))}); err != nil {
				t.Error(err)
			}
		})
	}
}

// What reads or sets up by hand waits on nothing: it raises no epoch.
func TestNoEpochNoWait(t *testing.T) {
	a := session(t, open(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])))
	p := plan(t, a, rows(a.schema, "0a:00:00:00:00:01"))
	if _, err := a.Transact(t.Context(), []nb.Plan{p}); err != nil {
		t.Error(err)
	}
	if waits := a.unchanged(); len(waits) != 0 {
		t.Errorf("a session that raised no epoch waits on %v", waits)
	}
}
