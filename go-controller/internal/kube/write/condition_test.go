package write

import (
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// A patch of a status keeps the conditions of others, and applies only to what was found.
func TestStatusBody(t *testing.T) {
	const (
		other = `{"lastTransitionTime":"2020-01-01T00:00:00Z","message":"","more":{"a":[1]},"reason":"R",` +
			`"status":"True","type":"Other"}`
		mine = `{"lastTransitionTime":"2021-01-01T00:00:00+01:00","message":"old","reason":"Old","status":"False",` +
			`"type":"Accepted"}`
		kept = `{"lastTransitionTime":"2021-01-01T00:00:00+01:00","message":"m","observedGeneration":3,"reason":"R",` +
			`"status":"False","type":"Accepted"}`
		uid = `[{"op":"test","path":"/metadata/uid","value":"u"},`
	)
	accepted := cluster.Condition{Type: "Accepted", Reason: "R", Message: "m", Generation: 3}
	for found, want := range map[string]string{
		"[" + mine + "," + other + "]": uid + `{"op":"test","path":"/status/conditions","value":[` + mine + `,` + other +
			`]},{"op":"replace","path":"/status/conditions","value":[` + kept + `,` + other + `]}]`,
		"[" + other + "," + mine + "]": uid + `{"op":"test","path":"/status/conditions","value":[` + other + `,` + mine +
			`]},{"op":"replace","path":"/status/conditions","value":[` + other + `,` + kept + `]}]`,
	} {
		got, err := statusBody(allocate.Patch{UID: "u", Status: &allocate.Status{
			Conditions: []cluster.Condition{accepted}, Found: cluster.Observed{Conditions: found}}})
		if err != nil || string(got) != want {
			t.Errorf("%s: error %v, patch\n%s\nwant\n%s", found, err, got, want)
		}
	}
	both, err := statusBody(allocate.Patch{UID: "u", Status: &allocate.Status{
		Conditions: []cluster.Condition{accepted, {Type: "Other", True: true, Reason: "S", Message: "n", Generation: 3}},
		Found:      cluster.Observed{Conditions: "[" + other + "," + mine + "]"}}})
	const second = `{"lastTransitionTime":"2020-01-01T00:00:00Z","message":"n","observedGeneration":3,"reason":"S",` +
		`"status":"True","type":"Other"}`
	if want := `"value":[` + second + `,` + kept + `]}]`; err != nil || !strings.HasSuffix(string(both), want) {
		t.Errorf("two conditions: error %v, patch\n%s\nwant one that ends with\n%s", err, both, want)
	}
	const status, conditions = `"path":"/status","value":`, `"path":"/status/conditions","value":`
	for hasStatus, want := range map[bool]string{
		false: uid + `{"op":"test",` + status + `null},{"op":"add",` + status + `{"conditions":[`,
		true:  uid + `{"op":"test",` + conditions + `null},{"op":"add",` + conditions + `[`,
	} {
		got, err := statusBody(allocate.Patch{UID: "u", Status: &allocate.Status{
			Conditions: []cluster.Condition{{Type: "Accepted"}}, Found: cluster.Observed{HasStatus: hasStatus}}})
		if err != nil || !strings.HasPrefix(string(got), want) {
			t.Errorf("status %v: error %v, patch\n%s\nwant one that begins with\n%s", hasStatus, err, got, want)
		}
	}
	bad := allocate.Patch{Status: &allocate.Status{Found: cluster.Observed{Conditions: "{"}}}
	if got, err := statusBody(bad); err == nil {
		t.Errorf("conditions that are no JSON: %s", got)
	}
}

// The time of a condition is that at which its status changed.
func TestConditionTime(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	const at, before = "2026-01-02T02:04:05Z", "2025-01-01T00:00:00Z"
	for i, c := range []struct {
		old  map[string]any
		want string
	}{
		{nil, at},
		{map[string]any{"status": "True", "lastTransitionTime": before}, before},
		{map[string]any{"status": "False", "lastTransitionTime": before}, at},
		{map[string]any{"status": "True"}, at},
	} {
		got := conditionOf(cluster.Condition{True: true}, c.old, now)
		if got["lastTransitionTime"] != c.want || got["status"] != "True" {
			t.Errorf("%d: %v, want the time %s", i, got, c.want)
		}
	}
}
