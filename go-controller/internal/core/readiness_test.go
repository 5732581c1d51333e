package core_test

import (
	"reflect"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// readinessOf are those patches that are no annotations.
func readinessOf(patches []allocate.Patch) (out []allocate.Patch) {
	for _, p := range patches {
		if len(p.Taints) > 0 || p.Status != nil {
			out = append(out, p)
		}
	}
	return out
}

// A Node loses the taint, and gets the condition, when its agent is ready, whatever comes first. Nothing is written for
// a Node that needs nothing, nor for one whose agent says nothing.
func TestReadiness(t *testing.T) {
	taints := []cluster.Taint{{At: 2, JSON: "{}"}}
	node := func(ready, available bool, taints ...cluster.Taint) *cluster.Node {
		return &cluster.Node{Name: "n", UID: "u", AgentReady: ready, Available: available, Taints: taints}
	}
	ref := node(false, false).Ref()
	untaint := allocate.Patch{Ref: ref, UID: "u", Taints: taints}
	condition := allocate.Patch{Ref: ref, UID: "u"}
	condition.Status = &allocate.Status{Conditions: []cluster.Condition{cluster.NodeAvailable()}}
	w := newWorld(t)
	for _, step := range []struct {
		what string
		seen *cluster.Node
		want []allocate.Patch
	}{
		{"registered", node(false, false, taints...), nil},
		{"the agent is ready", node(true, false, taints...), []allocate.Patch{untaint, condition}},
		{"the same", node(true, false, taints...), nil},
		{"the condition is written", node(true, true, taints...), []allocate.Patch{untaint}},
		{"the taint is gone", node(true, true), nil},
		{"a cloud's controller says the opposite", node(true, false), []allocate.Patch{condition}},
		{"somebody puts a taint", node(true, true, taints...), []allocate.Patch{untaint}},
		{"the agent's annotation is removed", node(false, false, taints...), nil},
	} {
		r := w.Step([]cluster.Event{{Ref: ref, New: step.seen}})
		if got := readinessOf(r.Patches); !reflect.DeepEqual(got, step.want) {
			t.Errorf("%s: patches %+v, want %+v", step.what, got, step.want)
		}
	}
	byHand := &cluster.Node{Name: "h", ByHand: true, AgentReady: true}
	if got := readinessOf(w.Step([]cluster.Event{{Ref: byHand.Ref(), New: byHand}}).Patches); len(got) > 0 {
		t.Errorf("a node without a Node object: patches %+v", got)
	}
}

// A master that starts does what another left undone, and nothing before it knows everything.
func TestReadinessAtStart(t *testing.T) {
	s := nb.NewSchema()
	c := core.New(config.DefaultCluster(), s, all.Translators(s))
	n := &cluster.Node{Name: "n", UID: "u", AgentReady: true, Available: true, Taints: []cluster.Taint{{JSON: "{}"}}}
	if got := c.Step([]cluster.Event{{Ref: n.Ref(), New: n}}).Patches; len(got) > 0 {
		t.Errorf("before the start: patches %+v", got)
	}
	if got := readinessOf(c.Start().Patches); len(got) != 1 || len(got[0].Taints) != 1 {
		t.Errorf("at the start: patches %+v, want that of the taint", got)
	}
}
