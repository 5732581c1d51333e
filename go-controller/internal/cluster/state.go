package cluster

import (
	"iter"
	"net/netip"
	"reflect"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// State is the whole cluster.
type State struct {
	Config config.Cluster
	// SwitchSubnets is the subnets of the nodes' switches when the database was last connected to, by the owner of the
	// switch: names.Network.Owner.
	SwitchSubnets map[string][]netip.Prefix
	// WithoutTiers is true when the database that was last connected to has no tiers of ACLs (OVN before 23.06).
	WithoutTiers bool
	// Held is which policies the database may still have, although the cluster does not: while the removal of many rows
	// waits for approval, they go on.
	Held Held

	Nodes        map[string]*Node
	Namespaces   map[string]*Namespace
	Pods         map[Name]*Pod
	Services     map[Name]*Service
	Slices       map[Name]*EndpointSlice
	ServiceCIDRs map[string]*ServiceCIDR
	Networks     map[names.Network]*Network

	NetworkPolicies        map[Name]*NetworkPolicy
	ClusterNetworkPolicies map[string]*TieredPolicy
	NetworkDefinitions     map[Name]*NetworkDefinition
	MultiNetworkPolicies   map[Name]*MultiNetworkPolicy
	UserNetworks           map[Name]*UserNetwork
	ClusterUserNetworks    map[string]*UserNetwork
	IPAMClaims             map[Name]*IPAMClaim

	*Grants // in the cluster's own network

	grants  map[names.Network]*Grants
	tables  map[Kind]table
	indexes map[reflect.Type]Index
	byKind  map[Kind][]Index // the indexes that depend on a kind

	podsByNode        NameSets[string]
	podsByNetwork     NameSets[names.Network]   // other than the cluster's own
	podsByNamespace   NameSets[string]          // nil until somebody asks: most clusters need no such list
	asking            map[Kind]NameSets[string] // objects that name networks, by namespace
	claimants         NameSets[Name]            // pods that refer to an IPAMClaim, by claim
	shares            map[shareKey]*share       // of Services and policies
	primaries         NameSets[string]          // networks that are to be a namespace's primary one, by namespace
	sharedPrimaries   NameSet                   // ClusterUserDefinedNetworks that are to be primary ones
	slicesByService   NameSets[Name]
	slicesByNamespace NameSets[string] // those of a service
}

// Held is for which kinds of policies what isolates pods stays.
type Held struct {
	Any    bool // any kind
	Logged bool // ACLs of any kind that log, and name the meter
	Tiered bool // ClusterNetworkPolicies, or tenants, whose ACLs pass what policies in the same tier would decide
	Multi  bool // MultiNetworkPolicies
}

// NewState is an empty cluster. It keeps the indexes, of which there is one of each type, up to date.
func NewState(c config.Cluster, indexes ...Index) *State {
	s := &State{
		Config:                 c,
		Nodes:                  map[string]*Node{},
		Namespaces:             map[string]*Namespace{},
		Pods:                   map[Name]*Pod{},
		Services:               map[Name]*Service{},
		Slices:                 map[Name]*EndpointSlice{},
		ServiceCIDRs:           map[string]*ServiceCIDR{},
		NetworkPolicies:        map[Name]*NetworkPolicy{},
		ClusterNetworkPolicies: map[string]*TieredPolicy{},
		NetworkDefinitions:     map[Name]*NetworkDefinition{},
		MultiNetworkPolicies:   map[Name]*MultiNetworkPolicy{},
		UserNetworks:           map[Name]*UserNetwork{},
		ClusterUserNetworks:    map[string]*UserNetwork{},
		IPAMClaims:             map[Name]*IPAMClaim{},
		Networks:               map[names.Network]*Network{},
		grants:                 map[names.Network]*Grants{},
		tables:                 map[Kind]table{},
		indexes:                map[reflect.Type]Index{},
		byKind:                 map[Kind][]Index{},
		podsByNode:             NameSets[string]{},
		podsByNetwork:          NameSets[names.Network]{},
		asking:                 map[Kind]NameSets[string]{},
		claimants:              NameSets[Name]{},
		shares:                 map[shareKey]*share{},
		primaries:              NameSets[string]{},
		sharedPrimaries:        NameSet{},
		slicesByService:        NameSets[Name]{},
		slicesByNamespace:      NameSets[string]{},
	}
	s.AddNetwork(ownNetwork(c))
	s.Grants = s.In(names.Own)
	for _, k := range Kinds() {
		s.tables[k.Kind], s.asking[k.Kind] = untyped{}, NameSets[string]{}
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

// IndexOf is the State's index of a type; ok is false when the State was made without one.
func IndexOf[I Index](s *State) (i I, ok bool) {
	i, ok = s.indexes[reflect.TypeFor[I]()].(I)
	return i, ok
}

// ClusterRouter is the UUID of the cluster router's row in the table of logical routers.
func (s *State) ClusterRouter(table string) string { return s.Networks[names.Own].RouterRow(table) }

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

// All lists every object as a Change by which it was added, in no order. The Changes have no topics.
func (s *State) All() []Change {
	n := 0
	for _, t := range s.tables {
		n += t.size()
	}
	out := make([]Change, 0, n)
	for _, t := range s.tables {
		for o := range t.all() {
			out = append(out, Change{Ref: o.Ref(), New: o})
		}
	}
	return out
}

// Apply records what e says. ok is false when e says nothing new. An object that was changed and changed back is a
// Change from itself to itself: what was undone may be a write of ours.
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
		if o, ok := old.(placed); ok {
			o.place(s, false)
		}
		t.put(e.Ref.Name, e.New)
		if o, ok := e.New.(placed); ok {
			o.place(s, true)
		}
		s.claimPrimaries(e.Ref)
		s.define(e.Ref)
	}), true
}

// change alters what the State says of an object, and brings the indexes up to date.
func (s *State) change(r Ref, granted bool, alter func()) Change {
	c := Change{Ref: r, Old: s.Object(r), Granted: granted}
	for _, i := range s.byKind[r.Kind] {
		i.Before(s, r)
	}
	alter()
	c.New = s.Object(r)
	for _, i := range s.byKind[r.Kind] {
		if topics := i.After(s, r); c.Topics == nil {
			c.Topics = slices.Clip(topics)
		} else {
			c.Topics = append(c.Topics, topics...)
		}
	}
	return c
}

// placed is an object that the State has in sets of names by something else, such as podsByNode.
type placed interface {
	// place adds it to these sets, or removes it.
	place(s *State, in bool)
}

// SystemNamespace is the namespace that every cluster has from its beginning to its end.
const SystemNamespace = "kube-system"

// UID is the UID of the cluster: that of its namespace kube-system, "" while there is none.
func (s *State) UID() string {
	if ns := s.Namespaces[SystemNamespace]; ns != nil {
		return ns.UID
	}
	return ""
}

// HasSwitch is true when a node has a logical switch: it exists and has subnets.
func (s *State) HasSwitch(node string) bool {
	return s.Nodes[node] != nil && len(s.NodeSubnets[node]) > 0
}

// JoinAddr is the address of a family of a node's gateway router on the join switch. ok is false when none was granted.
func (s *State) JoinAddr(node string, is4 bool) (a netip.Addr, ok bool) {
	return ipnet.FirstOf(ipnet.Addrs(s.JoinAddrs[node]), is4)
}

// PodsOn lists the pods on a node, sorted.
func (s *State) PodsOn(node string) []Name { return s.podsByNode[node].Sorted() }

// PodsWithoutNode is the pods that are bound to a node and have not ended, and whose Node object is gone.
func (s *State) PodsWithoutNode() iter.Seq[*Pod] {
	return func(yield func(*Pod) bool) {
		for node, pods := range s.podsByNode {
			if s.Nodes[node] != nil {
				continue
			}
			for n := range pods {
				if p := s.Pods[n]; p.WantsNetwork() && !yield(p) {
					return
				}
			}
		}
	}
}

// SlicesOf lists the endpoint slices of a service, sorted by name.
func (s *State) SlicesOf(service Name) []*EndpointSlice {
	var out []*EndpointSlice
	for _, n := range s.slicesByService[service].Sorted() {
		out = append(out, s.Slices[n])
	}
	return out
}

// HasEndpointsOn is true when a service has endpoints on a node.
func (s *State) HasEndpointsOn(service Name, node string) bool {
	for slice := range s.slicesByService[service] {
		if slices.ContainsFunc(s.Slices[slice].Endpoints, func(e Endpoint) bool { return e.Node == node }) {
			return true
		}
	}
	return false
}
