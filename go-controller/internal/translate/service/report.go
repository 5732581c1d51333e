package service

import (
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
)

// ReasonAddressInUse is the reason of the report that another Service has an address and port of this one.
const ReasonAddressInUse = "AddressInUse"

// mostListed is how many lost addresses a report spells out.
const mostListed = 4

// lostVIPs reports which addresses and ports of a Service another Service has.
func lostVIPs(s *cluster.State, svc *cluster.Service) []cluster.Problem {
	var lost []string
	holders := index.VIPsOf(s)
	for _, v := range svc.VIPs() {
		if h := holders.Holder(v); h != svc {
			lost = append(lost, fmt.Sprintf("%s is of Service %s", v, h.Name))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	slices.Sort(lost)
	if len(lost) > mostListed {
		lost = append(lost[:mostListed], fmt.Sprintf("and %d more", len(lost)-mostListed))
	}
	return []cluster.Problem{{Ref: svc.Ref(), UID: svc.UID, Reason: ReasonAddressInUse, Message: strings.Join(lost, ", ") +
		": want an address and port that no other service has: it does not answer there"}}
}
