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

// Reasons of the reports on what a gateway node says of itself.
const (
	ReasonGatewayAddressInUse = "GatewayAddressInUse" // another gateway has the external address
	ReasonGatewayClaimRefused = "GatewayClaimRefused" // it disagrees with what the cluster says
)

// mostRefused is how many refused claims a report spells out.
const mostRefused = 4

// refusedClaims reports which parts of what a gateway node says of itself have no effect.
func refusedClaims(s *cluster.State, node string) []cluster.Problem {
	var parts []string
	refused := index.GatewaysOf(s).Refused(node)
	for _, r := range refused[:min(len(refused), mostRefused)] {
		parts = append(parts, fmt.Sprintf("%s: %s: %s", r.Field, r.Value, r.Why))
	}
	if len(refused) == 0 {
		return nil
	}
	if more := len(refused) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	n := s.Nodes[node]
	return []cluster.Problem{{Ref: n.Ref(), UID: n.UID, Reason: ReasonGatewayClaimRefused,
		Message: strings.Join(parts, "; ") + ": it is not used"}}
}

// lostAddresses reports which external addresses of a gateway node another gateway has.
func lostAddresses(s *cluster.State, node string) []cluster.Problem {
	n := s.Nodes[node]
	if n == nil || n.Gateway == nil {
		return nil
	}
	var lost, families, holders []string
	for _, p := range n.Gateway.IPs {
		if h := index.GatewaysOf(s).Holder(p.Addr()); h != n && index.GatewaysOf(s).Admitted(node, p.Addr()) {
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
