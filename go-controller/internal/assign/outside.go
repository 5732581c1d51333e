package assign

import (
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// ReasonOutsideTaken is the reason of a Problem of a gateway whose address
// outside another gateway has.
const ReasonOutsideTaken = "GatewayAddressInUse"

// lostOutside says which of a gateway's addresses another has.
func (a *assignment) lostOutside(o cluster.Object) loss {
	n, ok := o.(*cluster.Node)
	if !ok || n.Gateway == nil {
		return loss{}
	}
	var lost, families, holders []string
	for _, p := range n.Gateway.IPs {
		if h := a.s.OutsideHolder(p.Addr()); h != n {
			lost = append(lost, fmt.Sprintf("%s is already of the gateway of Node %s", p.Addr(), h.Name))
			families = append(families, "IP"+string(names.FamilyOf(p.Addr().Is4())))
			holders = append(holders, "Node "+h.Name)
		}
	}
	if len(lost) == 0 {
		return loss{}
	}
	return loss{n.UID, ReasonOutsideTaken,
		fmt.Sprintf("annotation %s: ip-addresses: %s: the node is no gateway for %s: give it an address that no other node has, or delete %s if its machine is gone",
			annotation.L3GatewayConfig, strings.Join(lost, ", "), strings.Join(families, ", "), strings.Join(slices.Compact(holders), ", "))}
}
