package policy

import (
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Selector translates the selectors of policies. Policies that say the same share the rows.
type Selector struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Selector) Kind() names.Kind { return names.KindSelector }

// Atomic implements translate.Atomic.
func (Selector) Atomic() translate.Atomicity { return translate.OfAll }

// Owners implements translate.Translator.
func (Selector) Owners(s *cluster.State) []nb.Owner {
	var out []nb.Owner
	for _, sel := range append(index.PoliciesOf(s).Selections(), index.FurtherPoliciesOf(s).Selections()...) {
		out = append(out, nb.Owner{Kind: names.KindSelector, Name: sel.Hash})
	}
	for hash := range clusterPoliciesOf(s).nodes {
		out = append(out, nb.Owner{Kind: names.KindSelector, Name: hash})
	}
	for _, name := range index.DomainNamesOf(s).List() {
		out = append(out, nb.Owner{Kind: names.KindSelector, Name: index.DomainNameHash(name)})
	}
	return out
}

// Depends implements translate.Translator.
func (Selector) Depends() translate.Dependencies {
	return translate.Dependencies{Subjects: []cluster.Subject{index.PodsSelected, nodesSelected,
		index.DomainNameAddresses}}
}

// Affected implements translate.Translator.
func (Selector) Affected(_ *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	for _, k := range slices.Concat(c.About(index.PodsSelected), c.About(nodesSelected)) {
		out = append(out, nb.Owner{Kind: names.KindSelector, Name: k.Name})
	}
	for _, k := range c.About(index.DomainNameAddresses) {
		out = append(out, nb.Owner{Kind: names.KindSelector, Name: index.DomainNameHash(k.Name)})
	}
	return out
}

// Rows implements translate.Translator.
func (t Selector) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	sel := index.PoliciesOf(s).Selection(o.Name)
	if sel == nil {
		sel = index.FurtherPoliciesOf(s).Selection(o.Name)
	}
	switch name := index.DomainNamesOf(s).Hashed(o.Name); {
	case name != "":
		return translate.Rows{Rows: t.domainName(s, o, name)}, nil
	case sel == nil:
		return translate.Rows{Rows: t.nodes(s, o)}, nil
	}
	r := selectorRows{translate.Maker{Schema: t.Schema, Owner: o}, sel.String()}
	var rows []nb.Row
	if sel.Subject() {
		rows = append(rows, r.Row(names.RoleGroup, &nbdb.PortGroup{
			Name: names.SelectorGroup(sel.Hash), ExternalIDs: r.text(),
		}))
	}
	for _, f := range familiesIn(s, sel.Network) {
		if sel.Peer() && addressSet(s, sel.Network, sel.Selector, f) == names.SelectorAddressSet(sel.Hash, f) {
			rows = append(rows, r.set(names.FamilyRole(names.RoleAddresses, f),
				names.SelectorAddressSet(sel.Hash, f), sel.Addresses(f == names.IPv4)))
		}
		for _, port := range sel.PortNames() {
			for _, number := range sel.Numbers(port) {
				name := names.PortAddressSet(sel.Hash, string(port.Protocol), port.Name, number, f)
				role := names.NamedPortRole(string(port.Protocol), port.Name, number, f)
				rows = append(rows, r.set(role, name, sel.AddressesAt(port, number, f == names.IPv4)))
			}
		}
	}
	return translate.Rows{Rows: rows}, nil
}

// nodes is the rows of a selector of nodes.
func (t Selector) nodes(s *cluster.State, o nb.Owner) []nb.Row {
	x := clusterPoliciesOf(s)
	n := x.nodes[o.Name]
	if n == nil {
		return nil
	}
	r := selectorRows{translate.Maker{Schema: t.Schema, Owner: o}, nodesText(n.selector)}
	var rows []nb.Row
	for _, f := range s.Config.Families() {
		rows = append(rows, r.set(names.FamilyRole(names.RoleAddresses, f), names.SelectorAddressSet(o.Name, f),
			x.addresses(n, f == names.IPv4)))
	}
	return rows
}

// domainName is the rows of the addresses of a name in DNS.
func (t Selector) domainName(s *cluster.State, o nb.Owner, name string) []nb.Row {
	r := selectorRows{translate.Maker{Schema: t.Schema, Owner: o}, index.DomainNameText(name)}
	accepted, _ := index.DomainNamesOf(s).Addresses(s, name)
	var rows []nb.Row
	for _, f := range s.Config.Families() {
		var addresses []string
		for _, a := range accepted {
			if names.FamilyOf(a.Is4()) == f {
				addresses = append(addresses, a.String())
			}
		}
		rows = append(rows, r.set(names.FamilyRole(names.RoleAddresses, f), names.SelectorAddressSet(o.Name, f),
			addresses))
	}
	return rows
}

// selectorRows makes the rows of one selector.
type selectorRows struct {
	translate.Maker
	selector string
}

// text says what the rows are for.
func (r selectorRows) text() map[string]string {
	return map[string]string{names.SelectorKey: fmt.Sprintf("%.200s", r.selector)}
}

func (r selectorRows) set(role, name string, addresses []string) nb.Row {
	return r.Row(role, &nbdb.AddressSet{Name: name, Addresses: addresses, ExternalIDs: r.text()})
}

// addressSet is the address set with the pods that a selector selects in a network. That of a whole namespace in the
// cluster's own network is the Namespace's own if there is such an object.
func addressSet(s *cluster.State, n names.Network, selector cluster.PodSelector, f names.Family) string {
	if n.Further() {
		return names.SelectorAddressSet(index.FurtherPoliciesOf(s).In(n).Hash(selector), f)
	}
	if selector.Whole() && s.Namespaces[selector.Namespace] != nil {
		return names.NamespaceAddressSet(selector.Namespace, f)
	}
	return names.SelectorAddressSet(index.SelectorHash(selector), f)
}
