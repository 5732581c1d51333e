package cluster

import "iter"

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
)

// The kinds of events about nodes that Kubernetes does not know of. Package core
// merges them into the Node.
const (
	KindNodeRecord  Kind = "NodeRecord"
	KindGatewayDown Kind = "GatewayDown"
)

// KindInfo is what a State must know of a kind: one row per kind.
type KindInfo struct {
	Kind       Kind
	Namespaced bool
	// table is the typed table of the State that holds the objects; nil for a
	// kind whose objects are only read through Objects.
	table func(*State) table
}

// Kinds lists the kinds that the cluster is made of. A State also holds objects
// of other kinds; Objects lists them.
func Kinds() []KindInfo {
	return []KindInfo{
		{KindNode, false, func(s *State) table { return byName[Node, *Node](s.Nodes) }},
		{KindNamespace, false, func(s *State) table { return byName[Namespace, *Namespace](s.Namespaces) }},
		{KindPod, true, func(s *State) table { return byNamespace[Pod, *Pod](s.Pods) }},
		{KindService, true, func(s *State) table { return byNamespace[Service, *Service](s.Services) }},
		{KindEndpointSlice, true, func(s *State) table { return byNamespace[EndpointSlice, *EndpointSlice](s.Slices) }},
		{KindServiceCIDR, false, func(s *State) table { return byName[ServiceCIDR, *ServiceCIDR](s.ServiceCIDRs) }},
	}
}

// table holds the objects of one kind.
type table interface {
	get(n Name) Object    // nil when there is none
	put(n Name, o Object) // nil removes
	all() iter.Seq[Object]
}

// pointer is *T when that is an Object.
type pointer[T any] interface {
	*T
	Object
}

// byName is the table of a cluster-scoped kind.
type byName[T any, P pointer[T]] map[string]*T

func (t byName[T, P]) get(n Name) Object     { return orNil[T, P](t[n.Name]) }
func (t byName[T, P]) put(n Name, o Object)  { put(t, n.Name, o) }
func (t byName[T, P]) all() iter.Seq[Object] { return values[string, T, P](t) }

// byNamespace is the table of a namespaced kind.
type byNamespace[T any, P pointer[T]] map[Name]*T

func (t byNamespace[T, P]) get(n Name) Object     { return orNil[T, P](t[n]) }
func (t byNamespace[T, P]) put(n Name, o Object)  { put(t, n, o) }
func (t byNamespace[T, P]) all() iter.Seq[Object] { return values[Name, T, P](t) }

// untyped is the table of a kind that has no table of its own in the State.
type untyped map[Name]Object

func (t untyped) get(n Name) Object { return t[n] }

func (t untyped) put(n Name, o Object) {
	if o == nil {
		delete(t, n)
	} else {
		t[n] = o
	}
}

func (t untyped) all() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, o := range t {
			if !yield(o) {
				return
			}
		}
	}
}

func values[K comparable, T any, P pointer[T]](m map[K]*T) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, o := range m {
			if !yield(P(o)) {
				return
			}
		}
	}
}

// orNil turns a nil pointer into a nil interface.
func orNil[T any, P pointer[T]](p *T) Object {
	if p == nil {
		return nil
	}
	return P(p)
}

func put[K comparable, T any](m map[K]*T, k K, o Object) {
	if v, ok := any(o).(*T); ok && v != nil {
		m[k] = v
	} else {
		delete(m, k)
	}
}
