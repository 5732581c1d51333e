package tenant

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Translator translates tenants.
type Translator struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Translator) Kind() names.Kind { return names.KindTenant }

func owner(tenant string) nb.Owner { return nb.Owner{Kind: names.KindTenant, Name: tenant} }

// Atomic implements translate.Atomic: a namespace leaves one tenant as it joins another.
func (Translator) Atomic() translate.Atomicity { return translate.OfAll }

// Owners implements translate.Translator.
func (Translator) Owners(s *cluster.State) []nb.Owner {
	if !s.Config.Multitenant {
		return nil
	}
	out := []nb.Owner{owner(cluster.GlobalTenant)}
	for _, t := range index.TenantsOf(s).List() {
		if t != cluster.GlobalTenant {
			out = append(out, owner(t))
		}
	}
	return out
}

// Depends implements translate.Translator.
func (Translator) Depends() translate.Dependencies {
	return translate.Dependencies{Subjects: []cluster.Subject{index.TenantNamespaces}}
}

// Affected implements translate.Translator.
func (Translator) Affected(_ *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	for _, t := range c.About(index.TenantNamespaces) {
		out = append(out, owner(t.Name))
	}
	return out
}

// Rows implements translate.Translator.
func (t Translator) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	namespaces := index.TenantsOf(s).Namespaces(o.Name)
	m := translate.Maker{Schema: t.Schema, Owner: o}
	switch {
	case !s.Config.Multitenant:
		return translate.Rows{}, nil
	case o.Name == cluster.GlobalTenant:
		return translate.Rows{Rows: global(m, s, namespaces)}, nil
	case len(namespaces) == 0:
		return translate.Rows{}, nil
	}
	group := names.TenantGroup(o.Name)
	in, to := m.In(nbdb.PortGroupTable, names.RoleGroup, "acls"), "outport == @"+group+" && "
	rows := []nb.Row{m.Row(names.RoleGroup, &nbdb.PortGroup{Name: group})}
	for _, f := range s.Config.Families() {
		own, others := translate.OneOf(f, "src", sets(namespaces, f)), translate.OneOf(f, "src", subnets(s, f))
		rows = append(rows,
			m.Row(names.FamilyRole(names.RolePass, f), pass(to+own), in),
			m.Row(names.FamilyRole(names.RoleDeny, f), &nbdb.ACL{Direction: nbdb.ACLDirectionToLport,
				Priority: names.ACLTenantDeny, Action: nbdb.ACLActionDrop, Match: to + others}, in))
	}
	return translate.Rows{Rows: rows}, nil
}

// global lets in, for all tenants, what comes from global namespaces and from nodes. A node has this address also for
// what it forwards from outside. The ACLs are there once for all nodes and tenants.
func global(m translate.Maker, s *cluster.State, namespaces []string) []nb.Row {
	var rows []nb.Row
	for _, f := range s.Config.Families() {
		nodes := names.NodesAddressSet(f)
		rows = append(rows,
			m.Row(names.FamilyRole(names.RoleAddresses, f), &nbdb.AddressSet{Name: nodes,
				Addresses: index.TenantsOf(s).Nodes(f == names.IPv4)}),
			m.Row(names.FamilyRole(names.RolePass, f), pass(translate.OneOf(f, "src", append(sets(namespaces, f), "$"+nodes))),
				translate.OnAllNodes("acls")))
	}
	return rows
}

// pass leaves packets to policies. Those of tenants are asked at the destination only: who may reach whom is symmetric,
// and connection tracking allows replies.
func pass(match string) *nbdb.ACL {
	return &nbdb.ACL{Direction: nbdb.ACLDirectionToLport, Priority: names.ACLTenantPass, Action: nbdb.ACLActionPass,
		Match: match}
}

// sets lists the address sets of namespaces.
func sets(namespaces []string, f names.Family) []string {
	out := make([]string, 0, len(namespaces)+1)
	for _, n := range namespaces {
		out = append(out, "$"+names.NamespaceAddressSet(n, f))
	}
	return out
}

// subnets lists the ranges in which pods have their addresses. Pods of one node also reach each other with IPv6
// link-local addresses, which tell nothing of the tenant.
func subnets(s *cluster.State, f names.Family) []string {
	var out []string
	for _, c := range s.Config.Subnets {
		if names.FamilyOf(c.CIDR.Addr().Is4()) == f {
			out = append(out, c.CIDR.String())
		}
	}
	if f == names.IPv6 {
		out = append(out, "fe80::/10")
	}
	return out
}
