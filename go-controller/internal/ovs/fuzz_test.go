package ovs

import (
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// Flows that are read are not changed when they are wanted, and no input panics.
func FuzzParseFlows(f *testing.F) {
	f.Add(" cookie=0x4e42, table=0, priority=100,ip,in_port=1,nw_dst=10.244.0.0/16 actions=ct(commit,zone=64000),NORMAL\n")
	f.Add("NXST_FLOW reply (xid=0x4):\n priority=1 actions=drop\n idle_timeout=5, actions=output:2\n")
	f.Add("table=x, actions=")
	f.Fuzz(func(t *testing.T, dump string) {
		flows, err := parseFlows(dump)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		flows = slices.DeleteFunc(flows, func(f hostplan.Flow) bool {
			f.Match = sortedFields(f.Match)
			twice := seen[f.Key()]
			seen[f.Key()] = true
			return twice
		})
		want := hostplan.Flows{List: slices.Clone(flows)}
		if changes, script := diffFlows(want, flows); len(changes) != 0 || script != "" {
			t.Errorf("flows of %q differ from themselves: %v", dump, changes)
		}
	})
}
