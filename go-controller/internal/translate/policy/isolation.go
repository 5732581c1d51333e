package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Isolation translates what holds for the isolated pods of a node, whatever policy isolates them. The groups are of one
// node each: what ovn-northd does for a pod grows with the size of its groups.
type Isolation struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Isolation) Kind() names.Kind { return names.KindIsolation }

// Atomic implements translate.Atomic.
func (Isolation) Atomic() translate.Atomicity { return translate.OfAll }

// Owners implements translate.Translator.
func (Isolation) Owners(s *cluster.State) []nb.Owner {
	return nb.Owners(names.KindIsolation, s.Nodes, func(n string) string { return n })
}

// Depends implements translate.Translator.
func (Isolation) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds: []cluster.Kind{cluster.KindNode, cluster.KindPod},
		Subjects: []cluster.Subject{index.PoliciesExist, index.HealthSource, index.PrimaryOf, index.PrimariesUsed,
			tiersUsed},
	}
}

// Affected implements translate.Translator. The first policy concerns every node, and so does the end of the last. The
// same holds for ClusterNetworkPolicies.
func (t Isolation) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	switch {
	case c.Concerns(index.PoliciesExist), c.Concerns(index.PrimariesUsed), c.Concerns(tiersUsed):
		return t.Owners(s)
	case !isolates(s) && !s.Config.Multitenant:
		return nil
	case c.Ref.Kind == cluster.KindNode:
		return []nb.Owner{{Kind: names.KindIsolation, Name: c.Ref.Name.Name}}
	case c.Concerns(index.HealthSource):
		return t.Owners(s) // a pod has an address from which OVN would check endpoints, or has it no longer: seldom
	}
	return openers(s, c)
}

// isolates is true when a policy may isolate pods, or pods are in primary networks.
func isolates(s *cluster.State) bool {
	return index.PoliciesOf(s).Any() || index.PrimariesOf(s).Any() || s.Held.Any
}

// Rows implements translate.Translator.
func (t Isolation) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	n := s.Nodes[o.Name]
	if n == nil || !s.HasSwitch(o.Name) {
		return translate.Rows{}, nil
	}
	r := isolationRows{translate.Maker{Schema: t.Schema, Owner: o, UID: n.UID}, n, tierIn(s, names.Own)}
	rows := append(r.unblocking(), r.locking(s)...)
	if !isolates(s) {
		return translate.Rows{Rows: rows}, nil
	}
	isolating, err := r.isolating(s)
	return translate.Rows{Rows: append(isolating, rows...)}, err
}

// unblocking is the rows that cut connections need while there are tiers.
func (r isolationRows) unblocking() []nb.Row {
	if r.tier == 0 {
		return nil
	}
	return unblocking(r.Maker, r.inSwitch())
}

// locking is the rows that keep pods of primary networks from connecting to anything in the cluster's own network. What
// they answer passes: it belongs to a connection that is allowed. No ClusterNetworkPolicy is asked: its rules are about
// the ports that these pods open.
func (r isolationRows) locking(s *cluster.State) []nb.Row {
	if !index.PrimariesOf(s).Any() {
		return nil
	}
	group := names.LockedGroup(r.node.Name)
	deny := egress().acl(names.ACLLocked, nbdb.ACLActionDrop, egress().pods(group)+" && ip")
	rows := []nb.Row{
		r.Row(names.RoleGroupLocked, &nbdb.PortGroup{Name: group}),
		r.Row(names.RoleDenyLocked, deny, r.In(nbdb.PortGroupTable, names.RoleGroupLocked, "acls")),
	}
	if open := opened(s, r.node.Name); len(open) > 0 {
		rows = append(rows, r.acl(names.RoleOpenLocked, ingress(), names.RoleGroupIn, nbdb.ACLActionAllowRelated,
			strings.Join(open, " || ")))
	}
	return rows
}

// isolating is the rows of what isolates pods.
func (r isolationRows) isolating(s *cluster.State) ([]nb.Row, error) {
	n := r.node
	in, out := names.IngressGroup(n.Name), names.EgressGroup(n.Name)
	rows := []nb.Row{
		r.Row(names.RoleGroupIn, &nbdb.PortGroup{Name: in}),
		r.Row(names.RoleGroupOut, &nbdb.PortGroup{Name: out}),
		r.acl(names.RoleDenyIn, ingress(), names.RoleGroupIn, nbdb.ACLActionDrop, ingress().pods(in)+" && ip"),
		r.acl(names.RoleDenyOut, egress(), names.RoleGroupOut, nbdb.ACLActionDrop, egress().pods(out)+" && ip"),
	}
	var fromAllowed, toAllowed []string
	for _, p := range s.NodeSubnets[n.Name] {
		management, ok := ipnet.Nth(p, subnet.ManagementHost)
		if !ok {
			return nil, fmt.Errorf("subnet %s has no address for the management port: too small", p)
		}
		f := names.FamilyOf(p.Addr().Is4())
		fromAllowed = append(fromAllowed, fromNode(management), ingress().peers(f, hairpinSource(f)))
		toAllowed = append(toAllowed, toNode(f, r.own(management)))
		if _, held := index.HealthChecksOf(s).SourceHolder(p); held {
			continue
		}
		if checks, ok := cluster.HealthSource(p); ok {
			match := egress().peers(f, checks.String())
			toAllowed = append(toAllowed, match)
			if r.tier > 0 {
				rows = append(rows, r.answer(f, match))
			}
		}
	}
	allow := nbdb.ACLActionAllowRelated
	return append(rows,
		r.acl(names.RoleOwnIn, ingress(), names.RoleGroupIn, allow, ingress().pods(in)+" && "+anyOf(fromAllowed)),
		r.acl(names.RoleOwnOut, egress(), names.RoleGroupOut, allow, egress().pods(out)+" && "+anyOf(toAllowed))), nil
}

// anyOf matches what one of several terms matches. The terms of both address families are in one ACL, so that a node
// that joins costs few rows. Each term has an address of its own, so they stay apart in ovn-controller.
func anyOf(terms []string) string {
	return "((" + strings.Join(slices.Sorted(slices.Values(terms)), ") || (") + "))"
}

// isolationRows makes the rows of one node.
type isolationRows struct {
	translate.Maker
	node *cluster.Node
	tier int // of what isolates pods
}

func (r isolationRows) acl(role string, d direction, group, action, match string) nb.Row {
	priority := names.ACLPolicyAllow
	if action == nbdb.ACLActionDrop {
		priority = names.ACLPolicyDeny
	}
	acl := d.acl(priority, action, match)
	acl.Tier = r.tier
	return r.Row(role, acl, r.In(nbdb.PortGroupTable, group, "acls"))
}

// inSwitch is where ACLs are listed that hold for all ports of the node's switch.
func (r isolationRows) inSwitch() nb.Slot {
	ls := names.NodeRow(nbdb.LogicalSwitchTable, names.Own.Owner(r.node.Name), names.RoleSwitch, r.node.UID)
	return nb.Slot{In: nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: ls}, Column: "acls"}
}

// answer lets pods answer OVN's health checks, whatever ClusterNetworkPolicies deny. OVN does not track its checks, so
// that the answers look like new connections.
func (r isolationRows) answer(f names.Family, match string) nb.Row {
	acl := egress().acl(names.ACLAnswer, nbdb.ACLActionAllowRelated, match)
	acl.Tier = names.TierAdmin
	return r.Row(names.FamilyRole(names.RoleAnswer, f), acl, r.inSwitch())
}

// own lists the addresses of the node of the family of one of them.
func (r isolationRows) own(management netip.Addr) []string {
	out := []string{management.String()}
	for _, a := range r.node.Addrs {
		if a.Is4() == management.Is4() && a != management {
			out = append(out, a.String())
		}
	}
	slices.Sort(out[1:])
	return slices.Compact(out)
}

// fromNode matches what a node itself sends to its pods, such as the probes of its kubelet. What the node forwards for
// others has its address, too, but a source port of names.SNATPorts.
func fromNode(management netip.Addr) string {
	f := names.FamilyOf(management.Is4())
	return ingress().peers(f, management.String()) + " && " + otherPorts(f, "src", names.FirstSNATPort, names.LastSNATPort)
}

// toNode matches what pods send to their node itself. What they send to a node port goes on to others.
func toNode(f names.Family, node []string) string {
	return egress().peers(f, node...) + " && " + otherPorts(f, "dst", names.FirstNodePort, names.LastNodePort)
}

// otherPorts matches packets of a family without those of a range of ports.
func otherPorts(f names.Family, side string, first, last int) string {
	either := []string{strings.Replace(translate.Keyword(f), "ip", "icmp", 1)}
	for _, p := range cluster.Protocols() {
		port := strings.ToLower(string(p)) + "." + side
		either = append(either, fmt.Sprintf("%s < %d", port, first), fmt.Sprintf("%s > %d", port, last))
	}
	return "(" + strings.Join(either, " || ") + ")"
}

// hairpinSource is the source address of a pod that reaches itself through a service.
func hairpinSource(f names.Family) string {
	if f == names.IPv4 {
		return names.HairpinSNAT4
	}
	return names.HairpinSNAT6
}
