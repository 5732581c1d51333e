package policy

import (
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// NetworkIsolation translates what holds for the isolated interfaces in a network other than the cluster's own. There
// nodes are not in the network: nothing passes that no rule allows, but neighbour discovery. OVN lets that pass anyway
// on a switch with an ACL that is allow-related. The ACLs for it see to it that there is one, whatever rules the
// policies have: without any, OVN tracks no connection of the switch, and would drop answers to isolated pods. In a
// primary network, which may have Services, a pod may also reach itself through one.
type NetworkIsolation struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (NetworkIsolation) Kind() names.Kind { return names.KindNetworkIsolation }

// Atomic implements translate.Atomic.
func (NetworkIsolation) Atomic() translate.Atomicity { return translate.OfAll }

func isolationOwner(network string) nb.Owner {
	return nb.Owner{Kind: names.KindNetworkIsolation, Name: network}
}

// Owners implements translate.Translator.
func (NetworkIsolation) Owners(s *cluster.State) (out []nb.Owner) {
	for _, n := range index.FurtherPoliciesOf(s).Networks() {
		out = append(out, isolationOwner(string(n)))
	}
	return out
}

// Depends implements translate.Translator.
func (NetworkIsolation) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds: []cluster.Kind{cluster.KindNetworkDefinition, cluster.KindUserNetwork,
			cluster.KindClusterUserNetwork, cluster.KindNode},
		Subjects: []cluster.Subject{index.NetworkPoliciesExist, index.NetworkTiersUsed},
	}
}

// Affected implements translate.Translator. A network's definition says whether it is a primary one. A node may have a
// switch of a network.
func (NetworkIsolation) Affected(s *cluster.State, c cluster.Change) (out []nb.Owner) {
	x := index.FurtherPoliciesOf(s)
	switch n := names.Defined(c.Ref.Name.Namespace, c.Ref.Name.Name); {
	case c.Ref.Kind == cluster.KindNode:
		for _, n := range x.Networks() {
			if tieredIn(s, n) && (c.Granted && c.Network == n || !c.Granted && !sameSwitches(c)) {
				out = append(out, isolationOwner(string(n)))
			}
		}
	case c.Ref.Kind.Defines() && x.In(n).Any():
		out = append(out, isolationOwner(string(n)))
	}
	for _, n := range slices.Concat(c.About(index.NetworkPoliciesExist), c.About(index.NetworkTiersUsed)) {
		out = append(out, isolationOwner(n.Name))
	}
	return out
}

// sameSwitches is false for a change of a Node that has other switches from then on.
func sameSwitches(c cluster.Change) bool {
	old, _ := c.Old.(*cluster.Node)
	now, _ := c.New.(*cluster.Node)
	return old != nil && now != nil && old.UID == now.UID
}

// Rows implements translate.Translator.
func (t NetworkIsolation) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	n := names.Network(o.Name)
	if !index.FurtherPoliciesOf(s).In(n).Any() {
		return translate.Rows{}, nil
	}
	m := translate.Maker{Schema: t.Schema, Owner: o}
	acl := func(role, groupRole, group string, d direction, priority int, action, match string) nb.Row {
		acl := d.acl(priority, action, d.pods(group)+" && "+match)
		acl.Tier = tierIn(s, n)
		return m.Row(role, acl, m.In(nbdb.PortGroupTable, groupRole, "acls"))
	}
	allow, drop := nbdb.ACLActionAllowRelated, nbdb.ACLActionDrop
	inGroup, outGroup := n.IngressGroup(), n.EgressGroup()
	rows := []nb.Row{
		m.Row(names.RoleGroupIn, &nbdb.PortGroup{Name: inGroup}),
		m.Row(names.RoleGroupOut, &nbdb.PortGroup{Name: outGroup}),
		acl(names.RoleDenyIn, names.RoleGroupIn, inGroup, ingress(), names.ACLPolicyDeny, drop, "ip"),
		acl(names.RoleDenyOut, names.RoleGroupOut, outGroup, egress(), names.ACLPolicyDeny, drop, "ip"),
		acl(names.RoleNeighbourIn, names.RoleGroupIn, inGroup, ingress(), names.ACLPolicyAllow, allow, "nd"),
		acl(names.RoleNeighbourOut, names.RoleGroupOut, outGroup, egress(), names.ACLPolicyAllow, allow, "nd"),
	}
	if network := s.Networks[n]; network != nil && network.Primary {
		itself := anyOf([]string{ingress().peers(names.IPv4, hairpinSource(names.IPv4)),
			ingress().peers(names.IPv6, hairpinSource(names.IPv6))})
		rows = append(rows,
			acl(names.RoleOwnIn, names.RoleGroupIn, inGroup, ingress(), names.ACLPolicyAllow, allow, itself))
	}
	return translate.Rows{Rows: append(rows, onSwitches(m, s, n)...)}, nil
}

// onSwitches is the rows for all pods of a network while there are tiers. Its switches list them, whatever pods any
// policy selects.
func onSwitches(m translate.Maker, s *cluster.State, n names.Network) []nb.Row {
	network := s.Networks[n]
	if network == nil || !tieredIn(s, n) {
		return nil
	}
	var in []nb.Slot
	for _, sw := range network.Switches(s, nbdb.LogicalSwitchTable) {
		in = append(in, nb.Slot{In: nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: sw}, Column: "acls"})
	}
	if len(in) == 0 {
		return nil
	}
	return append(unblocking(m, in...), translate.LinkLocal(m, in...))
}
