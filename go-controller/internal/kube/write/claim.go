package write

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// claimBody is a JSON patch (RFC 6902) that puts addresses into the status of an IPAMClaim, and says of which pod they
// are, or why it has none. The API server refuses it for another object of the same name, and when the status is not
// what the master has found.
func claimBody(p allocate.Patch) ([]byte, error) {
	status := map[string]any{}
	test := operation{"test", statusPath, nil}
	if found := p.Claim.Found; found != "" {
		if err := json.Unmarshal([]byte(found), &status); err != nil {
			return nil, fmt.Errorf("reading status %.200q: %w", found, err)
		}
		test.Value = json.RawMessage(found)
	}
	if p.Claim.Condition.True {
		ips := make([]string, len(p.Claim.IPs))
		for i, ip := range p.Claim.IPs {
			ips[i] = ip.String()
		}
		status["ips"], status["ownerPod"] = ips, map[string]any{"name": p.Claim.Pod}
	}
	status["conditions"] = withCondition(status["conditions"], p.Claim.Condition, time.Now())
	return json.Marshal([]operation{{"test", "/metadata/uid", p.UID}, test, {"add", statusPath, status}})
}

// withCondition is the conditions of an IPAMClaim with this one among them. Those of other types stay.
func withCondition(found any, want cluster.Condition, now time.Time) []any {
	conditions, _ := found.([]any)
	i := slices.IndexFunc(conditions, func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields["type"] == want.Type
	})
	if i < 0 {
		i, conditions = len(conditions), append(conditions, nil)
	}
	old, _ := conditions[i].(map[string]any)
	condition := conditionOf(want, old, now)
	delete(condition, "observedGeneration")
	conditions[i] = condition
	return conditions
}
