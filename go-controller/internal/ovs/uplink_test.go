package ovs

import (
	"context"
	"strings"
	"testing"

	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// answering is a connection over which the server gives these results, which a
// healthy one would not.
type answering struct {
	client.Client
	results []ovsdb.OperationResult
}

func (a answering) Transact(_ context.Context, ops ...ovsdb.Operation) ([]ovsdb.OperationResult, error) {
	return a.results[:min(len(a.results), len(ops))], nil
}

// An answer that is cut short, or has an operation that failed, is an error that
// says which.
func TestAnswersThatAreNone(t *testing.T) {
	db, vsctl := open(t)
	vsctl("init")
	testkit.Eventually(t, "the Open_vSwitch row", func() string {
		if _, err := db.root(); err != nil {
			return err.Error()
		}
		return ""
	})
	healthy, _ := db.current()
	over := func(l *link) {
		db.mu.Lock()
		defer db.mu.Unlock()
		db.link = l
	}
	defer over(healthy)
	if bridge, others, err := db.UplinkOf(t.Context(), "eth0"); bridge != "" || len(others) != 0 || err != nil {
		t.Errorf("in an empty database eth0 is on %q with %v, %v", bridge, others, err)
	}
	failed := []ovsdb.OperationResult{{Error: "constraint violation", Details: "no such row"}, {}, {}}
	for what, ask := range map[string]func() error{
		"asking Open vSwitch for its bridges: ":   func() error { _, _, err := db.UplinkOf(t.Context(), "eth0"); return err },
		"asking ovs-vswitchd to follow: ":         func() error { return db.Settle(t.Context()) },
		"asking Open vSwitch for Bridge breth0: ": func() error { _, err := db.Uplink(t.Context(), "breth0"); return err },
		"": func() error { return db.transact(t.Context(), make([]ovsdb.Operation, 2)) },
	} {
		for _, c := range []struct {
			results []ovsdb.OperationResult
			want    string
		}{
			{nil, "but only 0 results received"},
			{failed, "constraint violation: no such row"},
		} {
			over(&link{answering{healthy, c.results}, healthy.copy})
			if err := ask(); err == nil || !strings.HasPrefix(err.Error(), what) || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "%!") {
				t.Errorf("with %v: %v, want %q and %q", c.results, err, what, c.want)
			}
		}
	}
}
