package reach

import (
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// maxIdleNotes is how many rules that allow nothing an answer names.
const maxIdleNotes = 10

// idleRules says which rules of the policies that deny a connection allow nothing to anybody: their selectors select no
// pod, or no pod has their named ports. That is often why the connection is denied.
func (c *Cluster) idleRules(connections []Connection) []string {
	var out []string
	for _, w := range connections {
		for _, a := range w.Answers {
			if a.Egress.isolated {
				out = append(out, c.idleRulesAbout(w.From, egress)...)
			}
			if a.Ingress.isolated {
				out = append(out, c.idleRulesAbout(w.To, ingress)...)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if more := len(out) - maxIdleNotes; more > 0 {
		out = append(out[:maxIdleNotes], fmt.Sprintf("%d more rules of these policies allow nothing", more))
	}
	return out
}

// idleRulesAbout is idleRules of the NetworkPolicies that isolate the pod at an end.
func (c *Cluster) idleRulesAbout(e End, d direction) (out []string) {
	n, ok := c.State.PolicyNetwork(e.pod.Name.Namespace)
	if !ok {
		return nil
	}
	for _, p := range isolating(c.selecting(e.pod), d) {
		w := warner{c, p.Subject(), "np/" + p.Name.String(), &out, []names.Network{n}}
		for i, r := range rulesOf(p, d) {
			w.rule(d, i, r)
		}
	}
	return out
}
