package namespace

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Translator translates namespaces.
type Translator struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Translator) Kind() names.Kind { return names.KindNamespace }

func owner(name string) nb.Owner { return nb.Owner{Kind: names.KindNamespace, Name: name} }

// Atomic implements translate.Atomic: policies name the address sets.
func (Translator) Atomic() translate.Atomicity { return translate.OfAll }

// Owners implements translate.Translator.
func (Translator) Owners(s *cluster.State) []nb.Owner {
	return nb.Owners(names.KindNamespace, s.Namespaces, func(n string) string { return n })
}

// Depends implements translate.Translator.
func (Translator) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds:    []cluster.Kind{cluster.KindNamespace},
		Subjects: []cluster.Subject{index.NamespaceAddresses},
	}
}

// Affected implements translate.Translator.
func (Translator) Affected(_ *cluster.State, c cluster.Change) []nb.Owner {
	if c.Ref.Kind == cluster.KindNamespace {
		return []nb.Owner{owner(c.Ref.Name.Name)}
	}
	var out []nb.Owner
	for _, ns := range c.About(index.NamespaceAddresses) {
		out = append(out, owner(ns.Name))
	}
	return out
}

// Rows implements translate.Translator.
func (t Translator) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	ns := s.Namespaces[o.Name]
	if ns == nil {
		return translate.Rows{}, nil
	}
	addresses := index.AddressesOf(s)
	var rows []nb.Row
	m := translate.Maker{Schema: t.Schema, Owner: o, UID: ns.UID}
	for _, f := range s.Config.Families() {
		rows = append(rows, m.Row(names.FamilyRole(names.RoleAddresses, f), &nbdb.AddressSet{
			Name: names.NamespaceAddressSet(ns.Name, f), Addresses: addresses.List(ns.Name, f == names.IPv4),
		}))
	}
	if ns.Multicast {
		rows = append(rows, multicast(m, ns.Name, s.Config.Families())...)
	}
	return translate.Rows{Rows: rows}, nil
}
