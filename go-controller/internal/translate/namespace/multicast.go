package namespace

import (
	"fmt"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// multicast allows the pods of a namespace to send each other multicast. They receive it from addresses of the
// namespace only, and from routers what these ask listeners (IGMP queries; MLD passes all ACLs). Two stages ask ACLs
// about what pods send: the second has the rules of policies.
func multicast(m translate.Maker, namespace string, families []names.Family) []nb.Row {
	group := names.MulticastGroup(namespace)
	send := "inport == @" + group + " && " + translate.Multicast
	out := func(options map[string]string) *nbdb.ACL {
		return &nbdb.ACL{Direction: nbdb.ACLDirectionFromLport, Priority: names.ACLMulticastAllow, Match: send,
			Action: nbdb.ACLActionAllow, Options: options}
	}
	in := m.In(nbdb.PortGroupTable, names.RoleMcastGroup, "acls")
	rows := []nb.Row{
		m.Row(names.RoleMcastGroup, &nbdb.PortGroup{Name: group}),
		m.Row(names.RoleMcastOut, out(nil), in),
		m.Row(names.RoleMcastAfterLB, out(map[string]string{"apply-after-lb": "true"}), in),
	}
	for _, f := range families {
		set := "$" + names.NamespaceAddressSet(namespace, f)
		match := fmt.Sprintf("outport == @%s && ip4.mcast && (igmp || ip4.src == %s)", group, set)
		if f == names.IPv6 {
			match = fmt.Sprintf("outport == @%s && ip6.mcast && ip6.src == %s", group, set)
		}
		rows = append(rows, m.Row(names.FamilyRole(names.RoleMcastIn, f), &nbdb.ACL{
			Direction: nbdb.ACLDirectionToLport, Priority: names.ACLMulticastAllow, Match: match,
			Action: nbdb.ACLActionAllow}, in))
	}
	return rows
}
