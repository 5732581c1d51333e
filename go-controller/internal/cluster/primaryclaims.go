package cluster

import (
	"cmp"
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// claimPrimaries brings up to date which networks are to be the primary one of which namespaces, after a change of an
// object.
func (s *State) claimPrimaries(r Ref) {
	switch r.Kind {
	case KindNetworkDefinition, KindUserNetwork:
		s.claimPrimary(r.Name.Namespace, names.Defined(r.Name.Namespace, r.Name.Name), s.claimsPrimary(r.Name))
		s.claimShared(r.Name.Namespace, r.Name.Name)
	case KindClusterUserNetwork:
		s.sharedPrimaries.Put(r.Name, s.claimsPrimary(r.Name))
		for _, namespace := range s.NamespacesOf(r) {
			s.claimShared(namespace, r.Name.Name)
		}
	case KindNamespace:
		for shared := range s.sharedPrimaries {
			s.claimShared(r.Name.Name, shared.Name)
		}
	}
}

// NamespacesOf lists the namespaces whose primary network may be another after a change of a Namespace or of an object
// that is a network, in no order.
func (s *State) NamespacesOf(r Ref) []string {
	switch r.Kind {
	case KindClusterUserNetwork:
		return slices.Collect(maps.Keys(s.Namespaces))
	case KindNamespace:
		return []string{r.Name.Name}
	}
	return []string{r.Name.Namespace}
}

// claimPrimary records that a network is to be the primary one of a namespace, or that it is not any more.
func (s *State) claimPrimary(namespace string, n names.Network, in bool) {
	s.primaries.Put(namespace, Name{Name: string(n)}, in)
}

// claimShared records whether the ClusterUserDefinedNetwork of a name is to be the primary one of a namespace: it
// selects the namespace, which has no network of its own of that name.
func (s *State) claimShared(namespace, name string) {
	n := names.Defined("", name)
	_, any := s.sharedPrimaries[Name{Name: name}]
	s.claimPrimary(namespace, n, any && s.meant(namespace, names.Defined(namespace, name)) == n)
}

// claimsPrimary is true when the objects of a name describe a primary network, whether it can be used or not.
func (s *State) claimsPrimary(name Name) bool {
	var n *Network
	if d := s.NetworkDefinitions[name]; d != nil {
		n = d.Network
	} else if u := s.UserNetwork(name); u != nil {
		n = u.Network
	}
	return n != nil && n.Primary
}

// PrimaryClaims lists the networks that are to be the primary one of a namespace, the oldest first.
func (s *State) PrimaryClaims(namespace string) (out []names.Network) {
	for _, claim := range s.primaries[namespace].List() {
		out = append(out, names.Network(claim.Name))
	}
	if len(out) > 1 {
		slices.SortFunc(out, func(n, m names.Network) int {
			return cmp.Or(cmp.Compare(s.createdAt(n), s.createdAt(m)), cmp.Compare(n, m))
		})
	}
	return out
}

// createdAt is when what defines a network was created, in Unix seconds.
func (s *State) createdAt(n names.Network) int64 {
	name, _ := DefinitionOf(n)
	if d := s.NetworkDefinitions[name]; d != nil {
		return d.Created
	}
	if u := s.UserNetwork(name); u != nil {
		return u.Created
	}
	return 0
}
