package cluster

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Event says what the API server says of an object now: New is nil when the
// object is gone. Between tells that it said something else since the last
// Event: somebody may have changed the object and changed it back.
type Event struct {
	Ref     Ref
	New     Object
	Between bool
}

// Change is what an Event or a grant altered. Old is nil for an object that
// came, New for one that went; both are the same object when only what was
// granted to it changed, and then Granted is true. Egress tells that with it
// the cluster got its first gateway of an address family, or lost its last;
// Exits, that the first of a family's gateways is in service, or none is any more.
// Rivals are, of a Service, the other services that gained or lost a VIP with it;
// of a Node, the other gateways that gained or lost an address.
// Zones are, of a Node, what came to State.Zones or left it; Moved tells that the
// node has a logical switch now, or has it no longer, or another, or in another zone.
// Source tells that a Pod got a HealthSource, or gave it back.
type Change struct {
	Ref      Ref
	Old, New Object
	Granted  bool
	Egress   bool
	Exits    bool
	Rivals   []Name
	Zones    []string
	Moved    bool
	Source   bool
}

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

	// What assign granted, by the name of the node or pod.
	NodeSubnets map[string][]netip.Prefix
	PodNetworks map[Name]annotation.PodNetwork
	JoinAddrs   map[string][]netip.Prefix // of gateway nodes' routers on the join switch

	podsByNode      map[string]set
	slicesByService map[Name]set
	addresses       map[listKey]*addressList
	claims          claims[VIP, Service]
	outside         claims[netip.Addr, Node] // of gateways' addresses
	gateways        map[bool]set             // by family (true is IPv4), the nodes through which packets can leave
	working         map[bool]set             // those of them that are in service
	zones           map[string]set           // the nodes of each zone, "" for none
	zoneHinted      map[Name]set             // the slices of a service that have hints for zones
	nodeHinted      map[Name]set             // the same for nodes
	localServices   set                      // those of internalTrafficPolicy Local
	checkedServices set                      // those with a health check
	sourceHolders   map[netip.Addr]Name      // which pod has a HealthSource
	reachedLocally  set                      // those of which that is true
}

type set = map[Name]struct{}

// NewState is an empty cluster.
func NewState(c config.Cluster) *State {
	return &State{
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
		podsByNode:      map[string]set{},
		slicesByService: map[Name]set{},
		addresses:       map[listKey]*addressList{},
		claims:          newClaims(compareClaims),
		outside:         newClaims(compareGateways),
		gateways:        map[bool]set{},
		working:         map[bool]set{},
		zones:           map[string]set{},
		zoneHinted:      map[Name]set{},
		nodeHinted:      map[Name]set{},
		localServices:   set{},
		checkedServices: set{},
		sourceHolders:   map[netip.Addr]Name{},
		reachedLocally:  set{},
	}
}

// ClusterRouter is the UUID of the cluster router's row, in the table of logical
// routers: that of one that was there already, or ours.
func (s *State) ClusterRouter(table string) string {
	return cmp.Or(s.RouterUUID, names.ClusterRow(table, names.RoleRouter))
}

// Object is the object that r names, nil when there is none.
func (s *State) Object(r Ref) Object {
	switch r.Kind {
	case KindNode:
		return orNil(s.Nodes[r.Name.Name])
	case KindNamespace:
		return orNil(s.Namespaces[r.Name.Name])
	case KindPod:
		return orNil(s.Pods[r.Name])
	case KindService:
		return orNil(s.Services[r.Name])
	case KindEndpointSlice:
		return orNil(s.Slices[r.Name])
	case KindServiceCIDR:
		return orNil(s.ServiceCIDRs[r.Name.Name])
	}
	return nil
}

// orNil turns a nil pointer into a nil interface.
func orNil[T any, P interface {
	*T
	Object
}](p P) Object {
	if p == nil {
		return nil
	}
	return p
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
	s.index(old, false)
	c = Change{Ref: e.Ref, Old: old, New: e.New}
	switch e.Ref.Kind {
	case KindNode:
		was, sat := s.Nodes[e.Ref.Name.Name], s.seat(e.Ref.Name.Name)
		put(s.Nodes, e.Ref.Name.Name, e.New)
		c.Zones = s.rezone(e.Ref.Name, was, s.Nodes[e.Ref.Name.Name])
		c.Moved = s.seat(e.Ref.Name.Name) != sat
		c.Rivals = s.reclaimOutside(was, s.Nodes[e.Ref.Name.Name])
		c.Egress, c.Exits = s.regate(append(slices.Clone(c.Rivals), e.Ref.Name)...)
	case KindNamespace:
		put(s.Namespaces, e.Ref.Name.Name, e.New)
	case KindPod:
		was := s.used(e.Ref.Name)
		put(s.Pods, e.Ref.Name, e.New)
		s.relist(e.Ref.Name, was)
	case KindService:
		was := s.Services[e.Ref.Name]
		put(s.Services, e.Ref.Name, e.New)
		c.Rivals = s.reclaim(was, s.Services[e.Ref.Name])
	case KindEndpointSlice:
		put(s.Slices, e.Ref.Name, e.New)
	case KindServiceCIDR:
		put(s.ServiceCIDRs, e.Ref.Name.Name, e.New)
	default:
		return Change{}, false // not a kind that the cluster is made of
	}
	s.index(e.New, true)
	return c, true
}

// GrantNode records the subnets of a node; none takes them back.
func (s *State) GrantNode(node string, subnets []netip.Prefix) Change {
	sat := s.seat(node)
	if len(subnets) == 0 {
		delete(s.NodeSubnets, node)
	} else {
		s.NodeSubnets[node] = subnets
	}
	c := s.granted(Ref{KindNode, Name{Name: node}})
	c.Moved = s.seat(node) != sat
	return c
}

// GrantPod records the attachment of a pod; nil takes it back.
func (s *State) GrantPod(pod Name, n *annotation.PodNetwork) Change {
	was, source := s.used(pod), s.holdSources(pod, s.PodNetworks[pod], false)
	if n == nil {
		delete(s.PodNetworks, pod)
	} else {
		s.PodNetworks[pod] = *n
		source = s.holdSources(pod, *n, true) || source
	}
	s.relist(pod, was)
	c := s.granted(Ref{KindPod, pod})
	c.Source = source
	return c
}

func (s *State) granted(r Ref) Change {
	o := s.Object(r)
	return Change{Ref: r, Old: o, New: o, Granted: true}
}

func put[K comparable, T any](m map[K]*T, k K, o Object) {
	if v, ok := any(o).(*T); ok && v != nil {
		m[k] = v
	} else {
		delete(m, k)
	}
}

func (s *State) index(o Object, add bool) {
	switch o := o.(type) {
	case *Pod:
		if o.Node != "" {
			mark(s.podsByNode, o.Node, o.Name, add)
		}
	case *EndpointSlice:
		if o.Service != "" {
			mark(s.slicesByService, Name{o.Name.Namespace, o.Service}, o.Name, add)
			s.indexHints(o, add)
		}
	case *Service:
		member(s.localServices, o.Name, add && o.InternalLocal)
		member(s.checkedServices, o.Name, add && o.HealthCheck.Interval > 0)
		member(s.reachedLocally, o.Name, add && o.ReachedLocally())
	}
}

func member(of set, n Name, in bool) {
	if in {
		of[n] = struct{}{}
	} else {
		delete(of, n)
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

func sorted(m set) []Name { return slices.SortedFunc(maps.Keys(m), CompareNames) }

// CompareNames orders names by namespace, then name.
func CompareNames(a, b Name) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
