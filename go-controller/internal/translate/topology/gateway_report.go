package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// ReasonGatewayAddressInUse is the reason of the report that another gateway has an external address of this one.
const ReasonGatewayAddressInUse = "GatewayAddressInUse"

// lostAddresses reports which external addresses of a gateway node another gateway has.
func lostAddresses(s *cluster.State, node string) []cluster.Problem {
	n := s.Nodes[node]
	if n == nil || n.Gateway == nil {
		return nil
	}
	var lost, families, holders []string
	for _, p := range n.Gateway.IPs {
		if h := index.GatewaysOf(s).Holder(p.Addr()); h != n {
			lost = append(lost, fmt.Sprintf("%s is already of the gateway of Node %s", p.Addr(), h.Name))
			families = append(families, "IP"+string(names.FamilyOf(p.Addr().Is4())))
			holders = append(holders, "Node "+h.Name)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return []cluster.Problem{{Ref: n.Ref(), UID: n.UID, Reason: ReasonGatewayAddressInUse, Message: fmt.Sprintf(
		"annotation %s: ip-addresses: %s: the node is no gateway for %s: "+
			"give it an address that no other node has, or delete %s if its machine is gone",
		annotation.L3GatewayConfig, strings.Join(lost, ", "), strings.Join(families, ", "),
		strings.Join(slices.Compact(holders), ", "))}}
}
