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

// lostVIPs lists the VIPs that a service claims and another has.
func (a *assignment) lostVIPs(o cluster.Object) loss {
	svc, ok := o.(*cluster.Service)
	if !ok {
		return loss{}
	}
	var lost []string
	for _, v := range svc.VIPs() {
		if h := a.s.Holder(v); h != svc {
			lost = append(lost, fmt.Sprintf("%s is of Service %s", v, h.Name))
		}
	}
	if len(lost) == 0 {
		return loss{}
	}
	slices.Sort(lost)
	if len(lost) > mostTold {
		lost = append(lost[:mostTold], fmt.Sprintf("and %d more", len(lost)-mostTold))
	}
	return loss{svc.UID, ReasonVIPTaken, strings.Join(lost, ", ") + ": want an address and port that no other service has: it does not answer there"}
}
