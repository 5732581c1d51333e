package assign

import (
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// ReasonVIPTaken is the reason of a Problem of a service that names an address
// and port which another service has.
const ReasonVIPTaken = "AddressInUse"

// mostTold is how many lost VIPs a Problem spells out.
const mostTold = 4

// contest tells the owners of a service that changed, and of those whose VIPs it
// took, what they do not have. Each is told once, until that changes.
func (a *assignment) contest(c cluster.Change) {
	for _, n := range append([]cluster.Name{c.Ref.Name}, c.Rivals...) {
		svc := a.s.Services[n]
		if svc == nil {
			delete(a.contested, n)
			continue
		}
		lost := a.lost(svc)
		if len(lost) == 0 {
			delete(a.contested, n)
			continue
		}
		if len(lost) > mostTold {
			lost = append(lost[:mostTold], fmt.Sprintf("and %d more", len(lost)-mostTold))
		}
		text := strings.Join(lost, ", ") + ": want an address and port that no other service has: it does not answer there"
		if told := svc.UID + text; a.contested[n] != told {
			a.contested[n] = told
			a.problem(svc, svc.UID, ReasonVIPTaken, text)
		}
	}
}

// lost lists the VIPs that a service claims and another has.
func (a *assignment) lost(svc *cluster.Service) []string {
	var out []string
	for _, v := range svc.VIPs() {
		if h := a.s.Holder(v); h != svc {
			out = append(out, fmt.Sprintf("%s is of Service %s", v, h.Name))
		}
	}
	slices.Sort(out)
	return out
}
