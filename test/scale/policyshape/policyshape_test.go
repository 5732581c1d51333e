package policyshape

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func small(shape Shape) *cluster {
	return newCluster(Size{Switches: 20, Pods: 30, Policies: 300}, shape)
}

func TestSelectors(t *testing.T) {
	l := small(Groups)
	for s, pods := range l.selectors {
		nodes := map[int]bool{}
		distinct := map[pod]bool{}
		for _, p := range pods {
			nodes[p.node], distinct[p] = true, true
		}
		if len(nodes) != perSelector || len(distinct) != len(pods) || len(pods) < perSelector || len(pods) > 2*perSelector {
			t.Errorf("selector %d has pods %v: want %d to %d, on %d switches", s, pods, perSelector, 2*perSelector, perSelector)
		}
	}
	if !slices.EqualFunc(l.selectors, small(Sets).selectors, slices.Equal[[]pod]) {
		t.Error("the shapes have different selectors")
	}
}

func TestShapes(t *testing.T) {
	for shape, want := range map[Shape]string{
		Groups: "outport == @sel_00002 && ip4.src == {$sel_00003_v4, $sel_00004_v4} && tcp.dst == {80}",
		Sets: "outport == @pods && ip4.dst == $sel_00002_v4 && ip4.src == {$sel_00003_v4, $sel_00004_v4} && " +
			"tcp.dst == {80}",
	} {
		ops := small(shape).addPolicy("p", 2, [2]int{3, 4}, 80)
		if got := ops[0]["row"].(map[string]any)["match"]; got != want {
			t.Errorf("%s: match %q, want %q", shape, got, want)
		}
	}
}

// TestRounds checks that a round undoes in the sets what it has done, so that later rounds measure the same.
func TestRounds(t *testing.T) {
	for _, shape := range []Shape{Groups, Sets} {
		l := small(shape)
		sum := map[string]int{}
		for _, s := range l.round(1) {
			for _, o := range s.ops {
				if o["table"] != addressSets || o["op"] != "mutate" {
					continue
				}
				m := o["mutations"].([]any)[0].([]any)
				key, err := json.Marshal([]any{o["where"], m[2]})
				if err != nil {
					t.Fatal(err)
				}
				sum[string(key)] += map[string]int{insertion: 1, deletion: -1}[m[1].(string)]
			}
		}
		if len(sum) == 0 {
			t.Errorf("%s: a round changes no address set", shape)
		}
		for key, n := range sum {
			if n != 0 {
				t.Errorf("%s: %s was inserted %d times more than deleted", shape, key, n)
			}
		}
	}
}

func TestMedian(t *testing.T) {
	got := median([]Sample{{Northd: 3, Flows: -7}, {Northd: 9, Flows: 5, NorthdAnew: true}, {Northd: 4, NorthdAnew: true}})
	if want := (Sample{Northd: 4, NorthdAnew: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	r := Result{Version: "26.09.0", Shape: Sets, Size: Size{Policies: 1000}, Flows: 1}
	again := r
	again.Flows, again.Events = 2, map[string]Sample{podMore: {Northd: 7 * time.Millisecond, NorthdAnew: true}}
	other := r
	other.Shape, other.Failure = Groups, "out of patience"
	for _, r := range []Result{r, again, other} {
		if err := Append(path, r); err != nil {
			t.Fatal(err)
		}
	}
	results, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 2 || results[0].Shape != Groups || results[1].Flows != 2 {
		t.Errorf("%+v, want that of groups and the later one of sets", results)
	}
	table := Table(results)
	for _, want := range []string{"ms | 26.09.0 groups | 26.09.0 sets |", "switch | – | 7* |",
		"1000 groups, ended early: out of patience"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
}
