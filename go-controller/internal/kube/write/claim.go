package write

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// successfulAllocation is the reason of the condition of an IPAMClaim. No Event has it.
const successfulAllocation = "SuccessfulAllocation"

// claimBody is a JSON patch (RFC 6902) that puts addresses into the status of an IPAMClaim, and says of which pod they
// are. The API server refuses it for another object of the same name, and when the status is not what the master has
// found.
func claimBody(p allocate.Patch) ([]byte, error) {
	status := map[string]any{}
	test := operation{"test", statusPath, nil}
	if found := p.Claim.Found; found != "" {
		if err := json.Unmarshal([]byte(found), &status); err != nil {
			return nil, fmt.Errorf("reading status %.200q: %w", found, err)
		}
		test.Value = json.RawMessage(found)
	}
	ips := make([]string, len(p.Claim.IPs))
	for i, ip := range p.Claim.IPs {
		ips[i] = ip.String()
	}
	status["ips"], status["ownerPod"] = ips, map[string]any{"name": p.Claim.Pod}
	status["conditions"] = allocated(status["conditions"], time.Now())
	return json.Marshal([]operation{{"test", "/metadata/uid", p.UID}, test, {"add", statusPath, status}})
}

// allocated is the conditions of an IPAMClaim that has addresses. Those of other types stay.
func allocated(found any, now time.Time) []any {
	conditions, _ := found.([]any)
	want := cluster.Condition{Type: "IPsAllocated", True: true, Reason: successfulAllocation,
		Message: "the claim has addresses"}
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
