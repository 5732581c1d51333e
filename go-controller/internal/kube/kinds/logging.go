package kinds

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// reasonLogging is the reason of a Problem with the annotation about what is logged.
const reasonLogging = "InvalidACLLogging"

// decodeLogging reads what is logged. verdicts are those that the kind of object knows. What is wrong is not logged.
func decodeLogging(f *findings, annotations map[string]string, verdicts ...string) (out cluster.Logging) {
	raw, there := annotations[annotation.ACLLogging]
	if !there || strings.TrimSpace(raw) == "" {
		return out
	}
	var read map[string]string
	if err := json.Unmarshal([]byte(raw), &read); err != nil {
		f.bad(reasonLogging, `annotation %s: %.100q, want JSON such as {"allow": "info", "deny": "alert"}: nothing is logged`,
			annotation.ACLLogging, raw)
		return out
	}
	to := map[string]*cluster.Severity{"allow": &out.Allow, "deny": &out.Deny, "pass": &out.Pass}
	for _, verdict := range slices.Sorted(maps.Keys(read)) {
		severity := cluster.Severity(read[verdict])
		switch {
		case !slices.Contains(verdicts, verdict):
			f.bad(reasonLogging, "annotation %s: key %.64q, want %s: the key is ignored", annotation.ACLLogging, verdict,
				either(verdicts))
		case severity != "" && !slices.Contains(cluster.Severities(), severity):
			f.bad(reasonLogging, "annotation %s: %s is %.64q, want %s: these packets are not logged", annotation.ACLLogging,
				verdict, string(severity), either(cluster.Severities()))
		default:
			*to[verdict] = severity
		}
	}
	return out
}
