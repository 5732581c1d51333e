package ovsdb

import (
	"errors"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A sequence number is followed once the column of the follower has it, or a higher one. The database's server waits.
func TestSequence(t *testing.T) {
	for ovn, schema := range testkit.NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			remote := testkit.StartOVSDB(t, schema)
			s := session(t, open(t, remote))
			if _, err := s.RaiseSequence(t.Context()); !errors.Is(err, errNotFilled) {
				t.Fatalf("without a row of NB_Global: %v", err)
			}
			nbctl := func(args ...string) string {
				t.Helper()
				return testkit.Run(t, "ovn-nbctl", append([]string{"--db=" + remote, "--no-wait"}, args...)...)
			}
			nbctl("init")
			if _, err := s.RaiseSequence(t.Context()); !errors.Is(err, errNotFilled) {
				t.Fatalf("in a database that is not filled: %v", err)
			}
			if err := s.MarkFilled(t.Context()); err != nil {
				t.Fatal(err)
			}
			q, err := s.RaiseSequence(t.Context())
			if err != nil || q.Number != 2 {
				t.Fatalf("raised to %d, %v, want 2", q.Number, err)
			}
			for _, by := range []Follower{Northd, Controllers} {
				if err := s.Followed(t.Context(), q, by, 10*time.Millisecond); !errors.Is(err, ErrBehind) {
					t.Errorf("%s has not followed: %v", by, err)
				}
				followed := make(chan error, 1)
				go func() { followed <- s.Followed(t.Context(), q, by, time.Minute) }()
				// Others may raise the number, too: it then goes past the one that is waited for.
				nbctl("set", "NB_Global", ".", string(by)+"=7")
				if err := <-followed; err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Raise(t.Context(), epoch(t, s), Epoch{Number: 1, Leader: "a"}, routerPlan(t, s)); err != nil {
				t.Fatal(err)
			}
			if q, err := s.RaiseSequence(t.Context()); err != nil || q.Number != 3 {
				t.Errorf("the leader raised to %d, %v, want 3", q.Number, err)
			}
			nbctl("set", "Logical_Router", "r", "external_ids:"+names.EpochKey+"=2")
			if _, err := s.RaiseSequence(t.Context()); !errors.Is(err, ErrFenced) {
				t.Errorf("a leader that was replaced: %v", err)
			}
		})
	}
}

// A sequence number may be raised while the loop raises the epoch.
func TestSequenceBesideEpoch(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	s := session(t, open(t, remote))
	testkit.Run(t, "ovn-nbctl", "--db="+remote, "--no-wait", "init")
	if err := s.MarkFilled(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Raise(t.Context(), epoch(t, s), Epoch{Number: 1, Leader: "a"}, routerPlan(t, s)); err != nil {
		t.Fatal(err)
	}
	raised := make(chan error, 1)
	go func() {
		var errs []error
		for range 50 {
			if _, err := s.RaiseSequence(t.Context()); err != nil && !errors.Is(err, ErrFenced) {
				errs = append(errs, err)
			}
		}
		raised <- errors.Join(errs...)
	}()
	for n := range uint64(50) {
		if _, err := s.Raise(t.Context(), epoch(t, s), Epoch{Number: n + 2, Leader: "a"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-raised; err != nil {
		t.Error(err)
	}
}
