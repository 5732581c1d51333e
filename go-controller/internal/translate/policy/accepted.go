package policy

import (
	"fmt"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// ReasonAccepted is the reason of the condition of a ClusterNetworkPolicy without problems.
const ReasonAccepted = "Accepted"

// mostJudged is how many bytes a condition's message has at most. The rest is in the Events.
const mostJudged = 4096

// accepted is the condition of a ClusterNetworkPolicy: whether all its rules do what they say. Remarks concern rules
// that do.
func accepted(p *cluster.TieredPolicy, problems, remarks []cluster.Problem) *cluster.Judged {
	c := cluster.Condition{Type: cluster.TypeAccepted, True: len(problems) == 0, Reason: ReasonAccepted,
		Message: "all rules are in effect"}
	if !c.True {
		remarks = problems
	}
	if len(remarks) > 0 {
		c.Reason, c.Message = remarks[0].Reason, ""
	}
	for i, r := range remarks {
		if i > 0 && len(c.Message)+len(r.Message) > mostJudged {
			c.Message += fmt.Sprintf("; and %d more", len(remarks)-i)
			break
		}
		if i > 0 {
			c.Message += "; "
		}
		c.Message += strings.ToValidUTF8(r.Message[:min(len(r.Message), mostJudged)], "")
	}
	return &cluster.Judged{Ref: p.Ref(), UID: p.UID, Conditions: []cluster.Condition{c}}
}
