package namespace

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// Translator translates namespaces.
type Translator struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Translator) Kind() names.Kind { return names.KindNamespace }

func owner(name string) nb.Owner { return nb.Owner{Kind: names.KindNamespace, Name: name} }

// Owners implements translate.Translator.
func (Translator) Owners(s *cluster.State) []nb.Owner {
	return nb.Owners(names.KindNamespace, s.Namespaces, func(n string) string { return n })
}

// Affected implements translate.Translator. What a pod contributes changes
// when its address does or when it stops to want one.
func (Translator) Affected(_ *cluster.State, c cluster.Change) []nb.Owner {
	switch c.Ref.Kind {
	case cluster.KindNamespace:
		return []nb.Owner{owner(c.Ref.Name.Name)}
	case cluster.KindPod:
		old, _ := c.Old.(*cluster.Pod)
		now, _ := c.New.(*cluster.Pod)
		if !c.Granted && wants(old) == wants(now) {
			return nil
		}
		return []nb.Owner{owner(c.Ref.Name.Namespace)}
	}
	return nil
}

func wants(p *cluster.Pod) bool { return p != nil && p.WantsNetwork() }

// Rows implements translate.Translator.
func (t Translator) Rows(s *cluster.State, o nb.Owner) ([]nb.Row, error) {
	ns := s.Namespaces[o.Name]
	if ns == nil {
		return nil, nil
	}
	var rows []nb.Row
	if s.Config.HasIPv4() {
		rows = append(rows, t.addressSet(o, ns, names.IPv4, s.Addresses(ns.Name, true)))
	}
	if s.Config.HasIPv6() {
		rows = append(rows, t.addressSet(o, ns, names.IPv6, s.Addresses(ns.Name, false)))
	}
	return rows, nil
}

func (t Translator) addressSet(o nb.Owner, ns *cluster.Namespace, f names.Family, addresses []string) nb.Row {
	role := names.FamilyRole(names.RoleAddresses, f)
	return t.Schema.NewRow(nb.Key{Table: nbdb.AddressSetTable, Owner: o, Role: role}, &nbdb.AddressSet{
		UUID: names.RowUUID(nbdb.AddressSetTable, o.Kind, o.Name, role, ns.UID),
		Name: names.NamespaceAddressSet(ns.Name, f), Addresses: addresses,
	})
}
