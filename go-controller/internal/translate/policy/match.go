package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// direction is how ACLs match the packets of the connections that a rule is about.
type direction struct {
	role string // of its rules' ACLs
	way  nbdb.ACLDirection
	port string // the field of the logical port of the policy's own pod
	side string // of the other side's address: "src" or "dst"
}

// ingress is connections to the policy's own pods.
func ingress() direction {
	return direction{names.RoleIngress, nbdb.ACLDirectionToLport, "outport", "src"}
}

// egress is connections from the policy's own pods.
func egress() direction {
	return direction{names.RoleEgress, nbdb.ACLDirectionFromLport, "inport", "dst"}
}

// acl is an ACL for packets in this direction. Those from pods are matched after load balancers: policies are about
// endpoints, not about virtual addresses (ovn-nb(5), ACL options:apply-after-lb).
func (d direction) acl(priority int, action, match string) *nbdb.ACL {
	out := &nbdb.ACL{Priority: priority, Direction: d.way, Action: action, Match: match}
	if d.way == nbdb.ACLDirectionFromLport {
		out.Options = map[string]string{"apply-after-lb": "true"}
	}
	return out
}

// pods matches the policy's own pods: those of a port group.
func (d direction) pods(group string) string { return d.port + " == @" + group }

// peers matches the other side: addresses, ranges and sets of one family. The names of sets begin with "$".
func (d direction) peers(f names.Family, among ...string) string {
	return translate.OneOf(f, d.side, among)
}

// server matches the address of the pod that is connected to.
func server(f names.Family, among ...string) string { return translate.OneOf(f, "dst", among) }

// ports matches the port that is connected to: any of these, which are of one protocol and have no names.
func ports(protocol cluster.Protocol, among []cluster.PolicyPort) string {
	p := strings.ToLower(string(protocol))
	var single, either []string
	for _, port := range among {
		switch port.First {
		case 0:
			return p
		case port.Last:
			single = append(single, fmt.Sprint(port.First))
		default:
			either = append(either, fmt.Sprintf("%d <= %s.dst <= %d", port.First, p, port.Last))
		}
	}
	switch {
	case len(single) == 1:
		either = append(either, p+".dst == "+single[0])
	case len(single) > 1:
		either = append(either, p+".dst == {"+strings.Join(single, ", ")+"}")
	}
	if len(either) == 1 {
		return either[0]
	}
	return "(" + strings.Join(either, " || ") + ")"
}

// address is a range of addresses as a match has it.
func address(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}
