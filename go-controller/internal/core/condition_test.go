package core_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// judged is a ClusterNetworkPolicy whose object has a generation and conditions.
func judged(generation int64, conditions string, own cluster.Condition, problems ...cluster.Problem,
) *cluster.TieredPolicy {
	p := &cluster.TieredPolicy{Name: "p", UID: "u", Tier: cluster.AdminTier, Problems: problems,
		Observed: cluster.Observed{Generation: generation, Conditions: conditions}}
	if own.Type != "" {
		p.Observed.Own = []cluster.Condition{own}
	}
	return p
}

// see hands an event of an object to the core, and returns the patches and what was planned.
func (w *world) see(o cluster.Object) (patches []allocate.Patch, planned int) {
	w.t.Helper()
	r := w.Step([]cluster.Event{{Ref: o.Ref(), New: o}})
	b := w.Plan(w.db, r.Dirty, nil)
	if err := w.db.Apply(b.Plans...); err != nil {
		w.t.Fatal(err)
	}
	return append(r.Patches, w.Conditions(b, slices.Concat(b.Done, r.Dirty))...), len(r.Dirty)
}

// A condition is written when the object has another or none, once; its echo concerns no owner.
func TestConditions(t *testing.T) {
	w := newWorld(t)
	wrong := cluster.Problem{Reason: "UnknownPolicyField", Message: "spec.more"}
	accepted := cluster.Condition{Type: "Accepted", True: true, Reason: "Accepted", Message: "all rules are in effect",
		Generation: 1}
	refused := cluster.Condition{Type: "Accepted", Reason: "UnknownPolicyField", Message: "spec.more", Generation: 2}
	for i, step := range []struct {
		what    string
		seen    *cluster.TieredPolicy
		want    *cluster.Condition
		planned bool
	}{
		{"a new policy", judged(1, "", cluster.Condition{}), &accepted, true},
		{"the same event, before the write", judged(1, "", cluster.Condition{}), nil, false},
		{"the echo", judged(1, "a", accepted), nil, false},
		{"somebody removes it", judged(1, "", cluster.Condition{}), &accepted, false},
		{"the echo", judged(1, "b", accepted), nil, false},
		{"somebody adds another", judged(1, "c", accepted), nil, false},
		{"an unknown field", judged(2, "c", accepted, wrong), &refused, true},
		{"an earlier write was too late", judged(2, "d", accepted, wrong), &refused, false},
		{"the echo", judged(2, "e", refused, wrong), nil, false},
	} {
		patches, planned := w.see(step.seen)
		if (planned > 0) != step.planned {
			t.Errorf("%d: %s: %d owners are dirty", i, step.what, planned)
		}
		if step.want == nil {
			if len(patches) > 0 {
				t.Errorf("%d: %s: patches %+v", i, step.what, patches)
			}
			continue
		}
		want := allocate.Status{Conditions: []cluster.Condition{*step.want}, Found: step.seen.Observed}
		if len(patches) != 1 || !reflect.DeepEqual(patches[0].Status, &want) || patches[0].UID != "u" ||
			patches[0].Ref != step.seen.Ref() {
			t.Errorf("%d: %s: patches %+v, want the status %+v", i, step.what, patches, want)
		}
	}
	w.drop(judged(2, "e", refused, wrong))
	if patches, _ := w.see(judged(1, "", cluster.Condition{})); len(patches) != 1 {
		t.Errorf("another policy of the name: patches %+v", patches)
	}
}

// Before a changed policy is judged, nothing is written: what held for the earlier one is not said of it.
func TestConditionOfAnEarlierGeneration(t *testing.T) {
	w := newWorld(t)
	w.see(judged(1, "", cluster.Condition{}))
	wrong := cluster.Problem{Reason: "UnknownPolicyField", Message: "spec.more"}
	for _, seen := range []*cluster.TieredPolicy{judged(2, "", cluster.Condition{}, wrong),
		judged(2, "a", cluster.Condition{}, wrong)} {
		if r := w.Step([]cluster.Event{{Ref: seen.Ref(), New: seen}}); len(r.Patches) > 0 {
			t.Errorf("patches %+v before the policy was judged", r.Patches)
		}
	}
}

// A master that starts writes no condition that is there.
func TestConditionsAfterRestart(t *testing.T) {
	w := newWorld(t)
	own := cluster.Condition{Type: "Accepted", True: true, Reason: "Accepted", Message: "all rules are in effect",
		Generation: 7}
	if patches, planned := w.see(judged(7, "a", own)); len(patches) > 0 || planned == 0 {
		t.Errorf("patches %+v of %d owners", patches, planned)
	}
}

// A policy is not accepted before its rows are in the database, and never for what it said before.
func TestConditionsFollowTheRows(t *testing.T) {
	w := newWorld(t)
	p := judged(1, "", cluster.Condition{})
	r := w.Step([]cluster.Event{{Ref: p.Ref(), New: p}})
	b := w.Plan(w.db, r.Dirty, nil)
	if patches := w.Conditions(b, nil); len(patches) > 0 {
		t.Errorf("patches %+v before any row was written", patches)
	}
	again := w.Plan(w.db, r.Dirty, nil)
	if patches := w.Conditions(again, r.Dirty); len(patches) != 1 {
		t.Errorf("patches %+v, want one", patches)
	}
	changed := judged(2, "", cluster.Condition{}, cluster.Problem{Reason: "UnknownPolicyField", Message: "spec.more"})
	w.Step([]cluster.Event{{Ref: changed.Ref(), New: changed}})
	if patches := w.Conditions(b, r.Dirty); len(patches) > 0 {
		t.Errorf("patches %+v for what the policy said before", patches)
	}
}
