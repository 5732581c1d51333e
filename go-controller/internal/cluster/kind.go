package cluster

import (
	"iter"
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Kind is a Kubernetes kind that the cluster is made of.
type Kind string

// The kinds that are watched. Kinds has a row for each.
const (
	KindNode          Kind = "Node"
	KindNamespace     Kind = "Namespace"
	KindPod           Kind = "Pod"
	KindService       Kind = "Service"
	KindEndpointSlice Kind = "EndpointSlice"
	KindServiceCIDR   Kind = "ServiceCIDR"
	KindNetworkPolicy Kind = "NetworkPolicy"

	KindClusterNetworkPolicy Kind = "ClusterNetworkPolicy"
	KindNetworkDefinition    Kind = "NetworkAttachmentDefinition"
	KindMultiNetworkPolicy   Kind = "MultiNetworkPolicy"
	KindUserNetwork          Kind = "UserDefinedNetwork"
	KindClusterUserNetwork   Kind = "ClusterUserDefinedNetwork"
	KindIPAMClaim            Kind = "IPAMClaim"
)

// The kinds of events about nodes that do not come from Kubernetes. Package core merges them into the Node.
const (
	KindNodeRecord  Kind = "NodeRecord"
	KindGatewayDown Kind = "GatewayDown"
)

// KindDomainName is the kind of events about names in DNS. They do not come from Kubernetes, either.
const KindDomainName Kind = "DomainName"

// KindInfo is what a State must know of a kind: one row per kind.
type KindInfo struct {
	Kind       Kind
	Namespaced bool
	// table is the typed table of the State that holds the objects.
	table func(*State) table
	// owns is true for an owner of rows that exists only because an object of the kind did. Nil: one that has the name
	// of the kind.
	owns func(owner names.Kind, name string) bool
}

// Owns returns what is true for an owner of rows that exists only because an object of the kind did.
func (k Kind) Owns() func(owner names.Kind, name string) bool {
	rows := Kinds()
	if i := slices.IndexFunc(rows, func(row KindInfo) bool { return row.Kind == k }); i >= 0 && rows[i].owns != nil {
		return rows[i].owns
	}
	return func(owner names.Kind, _ string) bool { return owner == names.Kind(k) }
}

// Kinds lists the kinds that the cluster is made of. A State also holds objects of other kinds; Objects lists them.
func Kinds() []KindInfo {
	return []KindInfo{
		{KindNode, false, func(s *State) table { return byName(s.Nodes) }, nil},
		{KindNamespace, false, func(s *State) table { return byName(s.Namespaces) }, nil},
		{KindPod, true, func(s *State) table { return byNamespace(s.Pods) }, nil},
		{KindService, true, func(s *State) table { return byNamespace(s.Services) }, nil},
		{KindEndpointSlice, true, func(s *State) table { return byNamespace(s.Slices) }, nil},
		{KindServiceCIDR, false, func(s *State) table { return byName(s.ServiceCIDRs) }, nil},
		{KindNetworkPolicy, true, func(s *State) table { return byNamespace(s.NetworkPolicies) }, nil},
		{KindClusterNetworkPolicy, false, func(s *State) table { return byName(s.ClusterNetworkPolicies) }, nil},
		{KindNetworkDefinition, true, func(s *State) table { return byNamespace(s.NetworkDefinitions) }, ownsDefinition},
		{KindMultiNetworkPolicy, true, func(s *State) table { return byNamespace(s.MultiNetworkPolicies) }, ownsMultiPolicy},
		{KindUserNetwork, true, func(s *State) table { return byNamespace(s.UserNetworks) }, ownsUserNetwork},
		{KindClusterUserNetwork, false, func(s *State) table { return byName(s.ClusterUserNetworks) }, ownsSharedNetwork},
		{KindIPAMClaim, true, func(s *State) table { return byNamespace(s.IPAMClaims) }, nil},
	}
}

// table holds the objects of one kind.
type table interface {
	get(n Name) Object    // nil when there is none
	put(n Name, o Object) // nil removes
	all() iter.Seq[Object]
	size() int
}

// pointer is *T when that is an Object.
type pointer[T any] interface {
	*T
	Object
}

// typed is the table of a kind that has a map of its own in the State.
type typed[K comparable, T any, P pointer[T]] struct {
	objects map[K]*T
	key     func(Name) K
}

// byName is the table of a cluster-scoped kind.
func byName[T any, P pointer[T]](m map[string]*T) table {
	return typed[string, T, P]{m, func(n Name) string { return n.Name }}
}

// byNamespace is the table of a namespaced kind.
func byNamespace[T any, P pointer[T]](m map[Name]*T) table {
	return typed[Name, T, P]{m, func(n Name) Name { return n }}
}

func (t typed[K, T, P]) get(n Name) Object {
	if o := t.objects[t.key(n)]; o != nil {
		return P(o)
	}
	return nil
}

func (t typed[K, T, P]) put(n Name, o Object) {
	if v, ok := o.(P); ok && v != nil {
		t.objects[t.key(n)] = v
	} else {
		delete(t.objects, t.key(n))
	}
}

func (t typed[K, T, P]) all() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, o := range t.objects {
			if !yield(P(o)) {
				return
			}
		}
	}
}

func (t typed[K, T, P]) size() int { return len(t.objects) }

// untyped is the table of a kind that has no map of its own in the State.
type untyped map[Name]Object

func (t untyped) get(n Name) Object { return t[n] }

func (t untyped) put(n Name, o Object) {
	if o == nil {
		delete(t, n)
	} else {
		t[n] = o
	}
}

func (t untyped) all() iter.Seq[Object] { return maps.Values(t) }

func (t untyped) size() int { return len(t) }
