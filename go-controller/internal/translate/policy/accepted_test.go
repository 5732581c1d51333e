package policy_test

import (
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// The condition of a ClusterNetworkPolicy says whether all its rules do what they say, and why not.
func TestAccepted(t *testing.T) {
	accept := cluster.TieredRule{Action: cluster.Accept, PolicyRule: everybody()}
	long := cluster.Problem{Reason: "Long", Message: strings.Repeat("x", 3000)}
	tooLong := cluster.Problem{Reason: "Long", Message: strings.Repeat("x", 4095) + strings.Repeat("é", 500)}
	for what, c := range map[string]struct {
		problems []cluster.Problem
		rival    bool
		noTiers  bool
		want     cluster.Condition
	}{
		"all is well":       {nil, false, false, cluster.Condition{True: true, Reason: "Accepted", Message: "all rules are"}},
		"the same priority": {nil, true, false, cluster.Condition{True: true, Reason: "PriorityClash", Message: "spec.prio"}},
		"unknown fields": {[]cluster.Problem{{Reason: "A", Message: "a"}, {Reason: "B", Message: "b"}}, true, false,
			cluster.Condition{Reason: "A", Message: "a; b"}},
		"no tiers": {[]cluster.Problem{{Reason: "A", Message: "a"}}, true, true,
			cluster.Condition{Reason: "TiersMissing", Message: "the Northbound database has no tiers"}},
		"too much to say": {[]cluster.Problem{long, long, long}, false, false,
			cluster.Condition{Reason: "Long", Message: long.Message + "; and 2 more"}},
		"one thing too long to say": {[]cluster.Problem{tooLong, long}, false, false,
			cluster.Condition{Reason: "Long", Message: strings.Repeat("x", 4095) + "; and 1 more"}},
	} {
		p := ruled("p", 1, accept)
		p.Problems = c.problems
		events := []cluster.Event{{Ref: p.Ref(), New: p}}
		if c.rival {
			rival := ruled("rival", 2, accept)
			events = append(events, cluster.Event{Ref: rival.Ref(), New: rival})
		}
		made := core.New(config.DefaultCluster(), theSchema(), all.Translators(theSchema()))
		made.State.WithoutTiers = c.noTiers
		made.Step(events)
		rows, err := made.Rows(nb.Owner{Kind: names.KindClusterPolicy, Name: "p"})
		if err != nil || rows.Judged == nil || rows.Judged.Ref != p.Ref() || rows.Judged.UID != "u" {
			t.Fatalf("%s: %+v, %v", what, rows.Judged, err)
		}
		got := rows.Judged.Conditions[0]
		if got.Type != "Accepted" || got.True != c.want.True || got.Reason != c.want.Reason ||
			!strings.HasPrefix(got.Message, c.want.Message) {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
}
