package write

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// taintsBody is a JSON patch (RFC 6902) that removes taints of a Node. The API server refuses it for another Node of
// the same name, and when one of the taints is not where the master has found it. So it never removes another one.
func taintsBody(p allocate.Patch) ([]byte, error) {
	operations := []operation{{"test", "/metadata/uid", p.UID}}
	last := slices.SortedFunc(slices.Values(p.Taints), func(a, b cluster.Taint) int { return b.At - a.At })
	for _, t := range last { // a removal moves those behind it
		path := fmt.Sprintf("/spec/taints/%d", t.At)
		operations = append(operations, operation{"test", path, json.RawMessage(t.JSON)}, operation{"remove", path, nil})
	}
	return json.Marshal(operations)
}

// sharedStatusBody is a strategic merge patch that puts conditions into a status whose others are those of other
// programs. The API server merges them by their types: a kubelet writes others all the time, so a patch that names
// these would often be late. It is refused for another object of the same name.
func sharedStatusBody(p allocate.Patch) ([]byte, error) {
	var conditions []any
	now := time.Now().UTC().Format(time.RFC3339)
	for _, c := range p.Status.Conditions {
		status := corev1.ConditionFalse
		if c.True {
			status = corev1.ConditionTrue
		}
		conditions = append(conditions, map[string]any{"type": c.Type, "status": status, "reason": c.Reason,
			"message": c.Message, "lastHeartbeatTime": now, "lastTransitionTime": now})
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.UID}, "status": map[string]any{"conditions": conditions},
	})
}
