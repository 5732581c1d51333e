package cluster

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Name is a namespaced name; Namespace is empty for cluster-scoped objects.
type Name struct{ Namespace, Name string }

// String is "namespace/name", or "name".
func (n Name) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

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
	// Equal tells whether o is of the same type and says the same.
	Equal(o Object) bool
}

// Node is a Kubernetes node. The annotated values are what the Node object
// claims; what holds is in State.NodeSubnets.
type Node struct {
	Name, UID   string
	Created     int64          // creation time, Unix seconds: the older of two claims wins
	Annotated   []netip.Prefix // node-subnets annotation; nil when absent or malformed
	AnnotatedAs string         // why the annotation was refused by its parser; "" when it was not
	ChassisID   string         // OVS system-id, "" until the node agent has published it
	Zone        string         // label topology.kubernetes.io/zone; "" for none
	Labels      Labels

	Gateway       *annotation.L3Gateway // nil when the node is no gateway
	JoinAnnotated []netip.Prefix        // node-gateway-router-lrp-ifaddrs annotation; nil when absent or malformed
	JoinAs        string                // why that annotation was refused by its parser; "" when it was not
	Addrs         []netip.Addr          // its own addresses, as Kubernetes knows them (status.addresses of type InternalIP)
	Unreachable   bool                  // the kubelet does not report any more: condition Ready is Unknown
	NoLease       bool                  // of a gateway: neither its agent nor its kubelet renews its Lease
	ByHand        bool                  // set up by hand: the Northbound database, not Kubernetes, tells of it
}

// Ref implements Object.
func (n *Node) Ref() Ref { return Ref{KindNode, Name{Name: n.Name}} }

// Equal implements Object.
func (n *Node) Equal(o Object) bool {
	m, ok := o.(*Node)
	return ok && n.Name == m.Name && n.UID == m.UID && n.Created == m.Created && n.AnnotatedAs == m.AnnotatedAs &&
		n.ChassisID == m.ChassisID && n.Zone == m.Zone && n.Labels == m.Labels &&
		slices.Equal(n.Annotated, m.Annotated) && n.Gateway.Equal(m.Gateway) &&
		slices.Equal(n.JoinAnnotated, m.JoinAnnotated) && n.JoinAs == m.JoinAs && n.Unreachable == m.Unreachable &&
		n.NoLease == m.NoLease && slices.Equal(n.Addrs, m.Addrs) && n.ByHand == m.ByHand
}

// Chassis is what a logical port's requested-chassis names: the chassis, or
// while that is unknown the host name, which ovn-controller accepts too
// (ovn-nb(5), Logical_Switch_Port options:requested-chassis).
func (n *Node) Chassis() string {
	if n.ChassisID != "" {
		return n.ChassisID
	}
	return n.Name
}

// Namespace is a Kubernetes namespace.
type Namespace struct {
	Name, UID string
	Labels    Labels
}

// Ref implements Object.
func (n *Namespace) Ref() Ref { return Ref{KindNamespace, Name{Name: n.Name}} }

// Equal implements Object.
func (n *Namespace) Equal(o Object) bool {
	m, ok := o.(*Namespace)
	return ok && *n == *m
}

// Pod is a Kubernetes pod. The annotated values are what the Pod object
// claims; what holds is in State.PodNetworks.
type Pod struct {
	Name        Name
	UID, Node   string // Node is "" until the pod is scheduled
	Created     int64  // creation time, Unix seconds
	HostNetwork bool   // shares its node's network: no port, no address of its own
	Finished    bool   // Succeeded or Failed: its containers are gone and its address is free
	Labels      Labels
	Bandwidth   Bandwidth
	Annotated   *annotation.PodNetwork
	AnnotatedAs string // why the annotation was refused by its parser; "" when it was not
	ClassicOK   bool   // the classic `ovn` annotation says the same as Annotated
}

// Bandwidth is the most that a pod may receive and send, in bits per second;
// 0 is no limit.
type Bandwidth struct{ Ingress, Egress uint64 }

// Ref implements Object.
func (p *Pod) Ref() Ref { return Ref{KindPod, p.Name} }

// Equal implements Object.
func (p *Pod) Equal(o Object) bool {
	q, ok := o.(*Pod)
	return ok && p.SamePlace(q) && p.Labels == q.Labels && p.Bandwidth == q.Bandwidth && p.Created == q.Created && p.AnnotatedAs == q.AnnotatedAs && p.ClassicOK == q.ClassicOK &&
		samePodNetwork(p.Annotated, q.Annotated)
}

// SamePlace tells whether q is the same pod in the same place and stage of
// life, whatever its annotations say.
func (p *Pod) SamePlace(q *Pod) bool {
	return p.Name == q.Name && p.UID == q.UID && p.Node == q.Node && p.HostNetwork == q.HostNetwork && p.Finished == q.Finished
}

// WantsNetwork tells whether the pod is to have a port and addresses.
func (p *Pod) WantsNetwork() bool { return p.Node != "" && !p.HostNetwork && !p.Finished }

func samePodNetwork(a, b *annotation.PodNetwork) bool {
	if a == nil || b == nil {
		return a == b
	}
	return SamePodNetwork(*a, *b)
}

// SamePodNetwork tells whether two attachments are the same.
func SamePodNetwork(a, b annotation.PodNetwork) bool {
	return a.MAC == b.MAC && slices.Equal(a.IPs, b.IPs) && slices.Equal(a.Gateways, b.Gateways) && slices.Equal(a.Routes, b.Routes)
}

// PodAddrs is the addresses of a pod's attachment, without prefix lengths.
func PodAddrs(n annotation.PodNetwork) []netip.Addr { return ipnet.Addrs(n.IPs) }

// ParseName is the inverse of Name.String.
func ParseName(s string) Name {
	if ns, name, ok := strings.Cut(s, "/"); ok {
		return Name{ns, name}
	}
	return Name{Name: s}
}
