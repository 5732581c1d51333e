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

// contestOutside tells the owners of a gateway that changed, and of those whose
// addresses it took, what they do not have. Each is told once, until that
// changes.
func (a *assignment) contestOutside(c cluster.Change) {
	for _, name := range append([]cluster.Name{c.Ref.Name}, c.Rivals...) {
		n := a.s.Nodes[name.Name]
		if n == nil {
			delete(a.refused, name.Name)
			continue
		}
		text := a.lostOutside(n)
		if text == "" {
			delete(a.refused, name.Name)
			continue
		}
		if told := n.UID + text; a.refused[name.Name] != told {
			a.refused[name.Name] = told
			a.problem(n, n.UID, ReasonOutsideTaken, text)
		}
	}
}

// lostOutside says which of a gateway's addresses another has, "" for none.
func (a *assignment) lostOutside(n *cluster.Node) string {
	if n.Gateway == nil {
		return ""
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
		return ""
	}
	return fmt.Sprintf("annotation %s: ip-addresses: %s: the node is no gateway for %s: give it an address that no other node has, or delete %s if its machine is gone",
		annotation.L3GatewayConfig, strings.Join(lost, ", "), strings.Join(families, ", "), strings.Join(slices.Compact(holders), ", "))
}
