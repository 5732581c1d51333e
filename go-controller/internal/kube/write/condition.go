package write

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// statusPath is where a status is, conditionsPath where its conditions are.
const (
	statusPath     = "/status"
	conditionsPath = statusPath + "/conditions"
)

// statusBody is a JSON patch (RFC 6902) that puts conditions into a status beside those of others. The API server
// refuses it for another object of the same name, and when the conditions are not what the master has found.
func statusBody(p allocate.Patch) ([]byte, error) {
	var conditions []map[string]any
	found := p.Status.Found.Conditions
	if found != "" {
		if err := json.Unmarshal([]byte(found), &conditions); err != nil {
			return nil, fmt.Errorf("reading status.conditions %.200q: %w", found, err)
		}
	}
	for _, want := range p.Status.Conditions {
		i := slices.IndexFunc(conditions, func(c map[string]any) bool { return c["type"] == want.Type })
		if i < 0 {
			i, conditions = len(conditions), append(conditions, nil)
		}
		conditions[i] = conditionOf(want, conditions[i], time.Now())
	}
	tests := []operation{{"test", "/metadata/uid", p.UID}}
	switch {
	case found != "":
		return json.Marshal(append(tests, operation{"test", conditionsPath, json.RawMessage(found)},
			operation{"replace", conditionsPath, conditions}))
	case p.Status.Found.HasStatus:
		return json.Marshal(append(tests, operation{"test", conditionsPath, nil},
			operation{"add", conditionsPath, conditions}))
	}
	return json.Marshal(append(tests, operation{"test", statusPath, nil},
		operation{"add", statusPath, map[string]any{"conditions": conditions}}))
}

// conditionOf is a condition as the API has it. Its time changes only when its status does.
func conditionOf(c cluster.Condition, old map[string]any, now time.Time) map[string]any {
	status := metav1.ConditionFalse
	if c.True {
		status = metav1.ConditionTrue
	}
	since := any(now.UTC().Format(time.RFC3339))
	if old["status"] == string(status) && old["lastTransitionTime"] != nil {
		since = old["lastTransitionTime"]
	}
	return map[string]any{"type": c.Type, "status": string(status), "reason": c.Reason, "message": c.Message,
		"observedGeneration": c.Generation, "lastTransitionTime": since}
}
