package cluster

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Ref names an object.
type Ref struct {
	Kind Kind
	Name Name
}

// String is "Pod default/web-0".
func (r Ref) String() string { return string(r.Kind) + " " + r.Name.String() }

// Object is an object of the cluster as a plain value, such as *Node or *Pod.
type Object interface {
	Ref() Ref
	// Equal is true when o is of the same type and says the same.
	Equal(o Object) bool
}

// Node is a Kubernetes node. The annotated values are what the Node object claims, as text: package allocate reads the
// entries of the networks that it knows, and keeps the others. What it granted is in State.NodeSubnets and
// State.JoinAddrs.
type Node struct {
	Name, UID string
	Created   int64  // creation time, Unix seconds: the older of two claims wins
	Annotated string // node-subnets annotation; "" when absent
	ChassisID string // OVS system-id, "" until the node agent has published it
	Zone      string // label topology.kubernetes.io/zone; "" for none
	Labels    Labels

	Gateway       *annotation.L3Gateway // nil when the node is no gateway
	JoinAnnotated string                // node-gateway-router-lrp-ifaddrs annotation; "" when absent
	Addrs         []netip.Addr          // status.addresses of type InternalIP
	ExternalAddrs []netip.Addr          // status.addresses of type ExternalIP
	Unreachable   bool                  // the kubelet stopped reporting: condition Ready is Unknown
	LeaseExpired  bool                  // neither the gateway's agent nor its kubelet renews its Lease
	ByHand        bool                  // set up by hand: recorded in the Northbound database, not in Kubernetes
	Found         Found                 // every annotation that a master writes

	// Physical is the networks outside that the node has bridges to, sorted; nil until its agent has said.
	Physical []string

	AgentReady bool    // the agent has set up the node since the Node object was made
	Taints     []Taint // those that wait for the agent
	Available  bool    // condition NetworkUnavailable is False
}

// Taint is a taint of a Node.
type Taint struct {
	At   int    // its place in spec.taints
	JSON string // as the API has it
}

// Ref implements Object.
func (n *Node) Ref() Ref { return Ref{KindNode, Name{Name: n.Name}} }

// Equal implements Object.
func (n *Node) Equal(o Object) bool {
	m, ok := o.(*Node)
	return ok && n.Name == m.Name && n.UID == m.UID && n.Created == m.Created && n.ChassisID == m.ChassisID &&
		n.Zone == m.Zone && n.Labels == m.Labels && n.Annotated == m.Annotated && n.JoinAnnotated == m.JoinAnnotated &&
		n.Unreachable == m.Unreachable && n.LeaseExpired == m.LeaseExpired && n.ByHand == m.ByHand &&
		slices.Equal(n.Addrs, m.Addrs) && slices.Equal(n.ExternalAddrs, m.ExternalAddrs) &&
		n.Gateway.Equal(m.Gateway) && n.Found.Equal(m.Found) && n.AgentReady == m.AgentReady &&
		slices.Equal(n.Taints, m.Taints) && n.Available == m.Available && n.SameBridges(m)
}

// SameBridges is true if both nodes have said that they have bridges to the same networks outside. A nil node is one
// that has said nothing.
func (n *Node) SameBridges(m *Node) bool {
	a, b := n.bridges(), m.bridges()
	return (a == nil) == (b == nil) && slices.Equal(a, b)
}

// Unbridged is true if the node's agent has said which networks outside it has bridges to, and this is not one.
func (n *Node) Unbridged(physical string) bool {
	_, found := slices.BinarySearch(n.bridges(), physical)
	return n.bridges() != nil && !found
}

// Reports is true if the node's agent has said which networks outside it has bridges to.
func (n *Node) Reports() bool { return n.bridges() != nil }

// bridges is Physical; nil for a nil node.
func (n *Node) bridges() []string {
	if n == nil {
		return nil
	}
	return n.Physical
}

// Reported is the addresses that the Node object reports in its status. The kubelet writes them.
func (n *Node) Reported() []netip.Addr { return slices.Concat(n.Addrs, n.ExternalAddrs) }

// CompareAge orders nodes that claim the same thing: the oldest comes first, then the first by name. A node that was
// set up by hand has no age and comes last, so that it takes nothing from a Node object.
func (n *Node) CompareAge(m *Node) int {
	return cmp.Or(CompareBool(n.ByHand, m.ByHand), cmp.Compare(n.Created, m.Created), cmp.Compare(n.Name, m.Name))
}

// CompareBool orders false before true.
func CompareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Namespace is a Kubernetes namespace.
type Namespace struct {
	Name, UID string
	Labels    Labels
	Multicast bool    // its pods may send each other multicast
	Logging   Logging // of its NetworkPolicies; it has no Pass
	Tenant    string  // as annotated; "" for what holds without an annotation: see InTenant
}

// GlobalTenant is the tenant of namespaces that reach all others, and that all others reach.
const GlobalTenant = annotation.EveryTenant

// InTenant is the tenant of the namespace in a cluster that has tenants.
func (n *Namespace) InTenant() string {
	switch {
	case n.Tenant != "":
		return n.Tenant
	case n.Name == "default" || n.Name == "kube-system":
		return GlobalTenant
	}
	return n.Name
}

// Ref implements Object.
func (n *Namespace) Ref() Ref { return Ref{KindNamespace, Name{Name: n.Name}} }

// Equal implements Object.
func (n *Namespace) Equal(o Object) bool {
	m, ok := o.(*Namespace)
	return ok && *n == *m
}

// Pod is a Kubernetes pod. Annotated is what the Pod object claims, as text. What package allocate granted is in
// State.PodNetworks.
type Pod struct {
	Name        Name
	UID, Node   string // Node is "" until the pod is scheduled
	Created     int64  // creation time, Unix seconds
	HostNetwork bool   // shares its node's network: has no port and no address of its own
	Finished    bool   // Succeeded or Failed: its containers are gone and its address is free
	Arrived     bool   // the virtual machine that runs in it has come from another pod: see State.StandsBy
	Labels      Labels
	Ports       NamedPorts
	Bandwidth   Bandwidth
	Opens       OpenPorts    // if it is in a primary network
	Attachments []Attachment // to networks besides the cluster's own; the pod asks for them
	Preferred   Asked        // what the pod asks for in its primary network; it has no effect where there is none
	Refused     string       // why what the pod asks for can't be read: it does not start until that is right
	StatusOK    bool         // the pod has the annotation network-status, whoever wrote it
	Annotated   string       // pod-networks annotation; "" when absent
	ClassicOK   bool         // the classic `ovn` annotation says the same as Annotated
	Found       Found        // without annotations that follow from Annotated: see FoundNow
}

// Bandwidth is the most that a pod may receive and send, in bits per second; 0 is no limit.
type Bandwidth struct{ Ingress, Egress uint64 }

// Ref implements Object.
func (p *Pod) Ref() Ref { return Ref{KindPod, p.Name} }

func (p *Pod) place(s *State, in bool) {
	if s.podsByNamespace != nil {
		s.podsByNamespace.Put(p.Name.Namespace, p.Name, in)
	}
	if p.Node != "" {
		s.podsByNode.Put(p.Node, p.Name, in)
	}
	for _, a := range p.Attachments {
		s.podsByNetwork.Put(a.Network, p.Name, in)
		s.asking[KindPod].Put(p.Name.Namespace, p.Name, in)
	}
	for _, claim := range claimsOf(p) {
		s.claimants.Put(claim, p.Name, in)
	}
}

// Equal implements Object.
func (p *Pod) Equal(o Object) bool {
	q, ok := o.(*Pod)
	return ok && p.SamePlace(q) && p.Labels == q.Labels && p.Ports == q.Ports && p.Bandwidth == q.Bandwidth &&
		p.Opens == q.Opens && p.Created == q.Created && p.Annotated == q.Annotated && p.ClassicOK == q.ClassicOK &&
		slices.Equal(p.Attachments, q.Attachments) && p.Preferred == q.Preferred && p.Refused == q.Refused &&
		p.StatusOK == q.StatusOK && p.Arrived == q.Arrived && p.Found.Equal(q.Found)
}

// SamePlace is true when q is the same pod on the same node in the same stage of life, whatever its annotations say.
func (p *Pod) SamePlace(q *Pod) bool {
	return p.Name == q.Name && p.UID == q.UID && p.Node == q.Node &&
		p.HostNetwork == q.HostNetwork && p.Finished == q.Finished
}

// WantsNetwork is true when the pod is to have a port and addresses.
func (p *Pod) WantsNetwork() bool { return p.Node != "" && !p.HostNetwork && !p.Finished }

// SamePodNetwork is true when two attachments are the same.
func SamePodNetwork(a, b annotation.PodNetwork) bool {
	return a.MAC == b.MAC && a.MTU == b.MTU && slices.Equal(a.IPs, b.IPs) && slices.Equal(a.Gateways, b.Gateways) &&
		slices.Equal(a.Routes, b.Routes) && a.Physical == b.Physical && a.Waiting == b.Waiting
}

// PodAddrs is the addresses of a pod's attachment, without prefix lengths.
func PodAddrs(n annotation.PodNetwork) []netip.Addr { return ipnet.Addrs(n.IPs) }
