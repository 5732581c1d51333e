package cluster

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// State is the whole cluster.
type State struct {
	Config config.Cluster
	// RouterUUID is the UUID of a cluster router that was there before us and
	// is used instead of a new one; "" when there was none.
	RouterUUID string

	Nodes      map[string]*Node
	Namespaces map[string]*Namespace
	Pods       map[Name]*Pod
	Services   map[Name]*Service
	Slices     map[Name]*EndpointSlice
	// ServiceCIDRs are those of the API.
	ServiceCIDRs map[string]*ServiceCIDR

	// What allocate granted, by the name of the node or pod.
	NodeSubnets map[string][]netip.Prefix
	PodNetworks map[Name]annotation.PodNetwork
	JoinAddrs   map[string][]netip.Prefix // of gateway nodes' routers on the join switch

	tables  map[Kind]table
	indexes map[reflect.Type]Index
	byKind  map[Kind][]Index // the indexes that depend on a kind

	podsByNode      map[string]set
	slicesByService map[Name]set
}

type set = map[Name]struct{}

// NewState is an empty cluster that keeps the indexes, one of a type, up to date.
func NewState(c config.Cluster, indexes ...Index) *State {
	s := &State{
		Config:          c,
		Nodes:           map[string]*Node{},
		Namespaces:      map[string]*Namespace{},
		Pods:            map[Name]*Pod{},
		Services:        map[Name]*Service{},
		Slices:          map[Name]*EndpointSlice{},
		ServiceCIDRs:    map[string]*ServiceCIDR{},
		NodeSubnets:     map[string][]netip.Prefix{},
		PodNetworks:     map[Name]annotation.PodNetwork{},
		JoinAddrs:       map[string][]netip.Prefix{},
		tables:          map[Kind]table{},
		indexes:         map[reflect.Type]Index{},
		byKind:          map[Kind][]Index{},
		podsByNode:      map[string]set{},
		slicesByService: map[Name]set{},
	}
	for _, k := range Kinds() {
		s.tables[k.Kind] = untyped{}
		if k.table != nil {
			s.tables[k.Kind] = k.table(s)
		}
	}
	for _, i := range indexes {
		s.indexes[reflect.TypeOf(i)] = i
		for _, k := range i.Kinds() {
			s.byKind[k] = append(s.byKind[k], i)
		}
	}
	return s
}

// IndexOf is the index of a type that the State keeps; ok is false when it was
// made without one.
func IndexOf[I Index](s *State) (i I, ok bool) {
	i, ok = s.indexes[reflect.TypeFor[I]()].(I)
	return i, ok
}

// ClusterRouter is the UUID of the cluster router's row, in the table of logical
// routers: that of one that was there already, or ours.
func (s *State) ClusterRouter(table string) string {
	return cmp.Or(s.RouterUUID, names.ClusterRow(table, names.RoleRouter))
}

// Object is the object that r names, nil when there is none.
func (s *State) Object(r Ref) Object {
	if t := s.tables[r.Kind]; t != nil {
		return t.get(r.Name)
	}
	return nil
}

// Objects lists the objects of a kind, in no order.
func (s *State) Objects(k Kind) iter.Seq[Object] {
	if t := s.tables[k]; t != nil {
		return t.all()
	}
	return func(func(Object) bool) {}
}

// All lists every object as a Change that says that it just came, in no order.
func (s *State) All() []Change {
	var out []Change
	for _, t := range s.tables {
		for o := range t.all() {
			out = append(out, Change{Ref: o.Ref(), New: o})
		}
	}
	return out
}

// Apply brings the state up to date with e. ok is false when e says nothing
// new. An object that was changed and changed back is a Change from itself to
// itself: a write of ours may be what was undone.
func (s *State) Apply(e Event) (c Change, ok bool) {
	old := s.Object(e.Ref)
	switch {
	case old == nil && e.New == nil:
		return Change{}, false
	case old != nil && e.New != nil && old.Equal(e.New) && !e.Between:
		return Change{}, false
	}
	return s.change(e.Ref, false, func() {
		t := s.tables[e.Ref.Kind]
		if t == nil {
			t = untyped{}
			s.tables[e.Ref.Kind] = t
		}
		s.place(old, false)
		t.put(e.Ref.Name, e.New)
		s.place(e.New, true)
	}), true
}

// change alters the state in what concerns an object, and brings the indexes up
// to date with that.
func (s *State) change(r Ref, granted bool, alter func()) Change {
	c := Change{Ref: r, Old: s.Object(r), Granted: granted}
	for _, i := range s.byKind[r.Kind] {
		i.Before(s, r)
	}
	alter()
	c.New = s.Object(r)
	for _, i := range s.byKind[r.Kind] {
		c.Topics = append(c.Topics, i.After(s, r)...)
	}
	return c
}

// GrantNode records the subnets of a node; none takes them back.
func (s *State) GrantNode(node string, subnets []netip.Prefix) Change {
	return grant(s, nodeRef(node), s.NodeSubnets, node, subnets, len(subnets) > 0)
}

// GrantJoin records the addresses of a node's gateway router on the join
// switch; none takes them back.
func (s *State) GrantJoin(node string, addrs []netip.Prefix) Change {
	return grant(s, nodeRef(node), s.JoinAddrs, node, addrs, len(addrs) > 0)
}

// GrantPod records the attachment of a pod; nil takes it back.
func (s *State) GrantPod(pod Name, n *annotation.PodNetwork) Change {
	r := Ref{KindPod, pod}
	if n == nil {
		return grant(s, r, s.PodNetworks, pod, annotation.PodNetwork{}, false)
	}
	return grant(s, r, s.PodNetworks, pod, *n, true)
}

func nodeRef(name string) Ref { return Ref{KindNode, Name{Name: name}} }

// grant records or, if !given, takes back what was granted to an object.
func grant[K comparable, V any](s *State, r Ref, to map[K]V, k K, v V, given bool) Change {
	return s.change(r, true, func() {
		if given {
			to[k] = v
		} else {
			delete(to, k)
		}
	})
}

// place enters an object into the look-ups by node and by service, or takes it
// out.
func (s *State) place(o Object, in bool) {
	switch o := o.(type) {
	case *Pod:
		if o.Node != "" {
			mark(s.podsByNode, o.Node, o.Name, in)
		}
	case *EndpointSlice:
		if o.Service != "" {
			mark(s.slicesByService, Name{o.Name.Namespace, o.Service}, o.Name, in)
		}
	}
}

func mark[K comparable](m map[K]set, k K, n Name, add bool) {
	if add {
		if m[k] == nil {
			m[k] = set{}
		}
		m[k][n] = struct{}{}
		return
	}
	delete(m[k], n)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}

// HasSwitch tells whether a node has a logical switch: it is there, and has
// subnets.
func (s *State) HasSwitch(node string) bool {
	return s.Nodes[node] != nil && len(s.NodeSubnets[node]) > 0
}

// JoinAddr is the address of a family of a node's gateway router on the join
// switch; ok is false when the node is no gateway, or has not been granted one.
func (s *State) JoinAddr(node string, is4 bool) (a netip.Addr, ok bool) {
	for _, p := range s.JoinAddrs[node] {
		if p.Addr().Is4() == is4 {
			return p.Addr(), true
		}
	}
	return netip.Addr{}, false
}

// PodsOn lists the pods on a node, sorted.
func (s *State) PodsOn(node string) []Name { return sorted(s.podsByNode[node]) }

// SlicesOf lists the endpoint slices of a service, sorted by name.
func (s *State) SlicesOf(service Name) []*EndpointSlice {
	var out []*EndpointSlice
	for _, n := range sorted(s.slicesByService[service]) {
		out = append(out, s.Slices[n])
	}
	return out
}

// HasEndpointsOn tells whether a service has endpoints on a node.
func (s *State) HasEndpointsOn(service Name, node string) bool {
	for slice := range s.slicesByService[service] {
		if slices.ContainsFunc(s.Slices[slice].Endpoints, func(e Endpoint) bool { return e.Node == node }) {
			return true
		}
	}
	return false
}

func sorted(m set) []Name { return slices.SortedFunc(maps.Keys(m), CompareNames) }

// CompareNames orders names by namespace, then name.
func CompareNames(a, b Name) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
