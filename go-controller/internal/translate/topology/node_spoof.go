package topology

import (
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// spoofMatch is what a pod must not send, though port security lets it pass because the addresses are the pod's own: a
// redirect (ICMPv6 type 137), what DHCP servers send, and IPv4 from no address. ACLs do not see router advertisements:
// ovn-northd lets neighbour discovery pass at the highest priority. Pods do not accept them (package podif).
//
// Nobody at all sends from names.HairpinSNAT4 and HairpinSNAT6. Policies let these in: a pod that reaches itself
// through a service gets them as the source, after these ACLs.
const spoofMatch = "icmp6.type == 137 || (ip4 && udp.src == 67 && udp.dst == 68) || " +
	"(ip6 && udp.src == 547 && udp.dst == 546) || ip4.src == {0.0.0.0, " + names.HairpinSNAT4 + "} || " +
	"ip6.src == " + names.HairpinSNAT6

// spoofGuard drops what port security does not, for all ports of a switch. It is stateless: a switch does not begin to
// track connections because of it.
func spoofGuard(m translate.Maker, in nb.Slot) nb.Row {
	return m.Row(names.RoleSpoofGuard, &nbdb.ACL{
		Priority: names.ACLSpoofGuard, Direction: nbdb.ACLDirectionFromLport, Match: spoofMatch, Action: nbdb.ACLActionDrop,
	}, in)
}
