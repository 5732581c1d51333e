package cluster

import (
	"fmt"
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// UserNetwork is a UserDefinedNetwork, a network of the pods of its namespace, or a ClusterUserDefinedNetwork, one of
// the pods of the namespaces that it selects (k8s.ovn.org/v1).
type UserNetwork struct {
	Name     Name // that of a ClusterUserDefinedNetwork has no namespace
	UID      string
	Created  int64          // creation time, Unix seconds
	Selects  *LabelSelector // of a ClusterUserDefinedNetwork; nil when it can't be read: then it selects none
	Network  *Network       // that it describes; nil if it can't be used
	Invalid  string         // why it can't be used; "" for one that can
	Observed Observed
	Deleting bool // somebody has deleted it; it stays while it has finalizers
	// Finalizers is metadata.finalizers as JSON, letter by letter; "" when there are none.
	Finalizers string
	Protected  bool // the master's finalizer is among them
}

// Reasons of Problems with UserDefinedNetworks.
const (
	reasonInvalid = "InvalidNetwork"
	reasonRefused = "NetworkRefused"
	reasonInUse   = "NameInUse"
)

// TypeNetworkCreated is the condition that tells whether a UserDefinedNetwork or ClusterUserDefinedNetwork has its
// network.
const TypeNetworkCreated = "NetworkCreated"

// TypeNetworkAllocated is their condition that tells whether every node that needs a subnet of the network has one.
const TypeNetworkAllocated = "NetworkAllocationSucceeded"

// TypeNetworkMapped is their condition that tells whether every node has a bridge to the network outside that a network
// of topology Localnet is joined to. The other topologies lack it.
const TypeNetworkMapped = "PhysicalNetworkMapped"

// Ref implements Object.
func (u *UserNetwork) Ref() Ref {
	if u.Name.Namespace == "" {
		return Ref{KindClusterUserNetwork, u.Name}
	}
	return Ref{KindUserNetwork, u.Name}
}

// Observe implements Observable.
func (u *UserNetwork) Observe() Observed { return u.Observed }

// Equal implements Object. What was observed of the status does not count.
func (u *UserNetwork) Equal(o Object) bool {
	v, ok := o.(*UserNetwork)
	return ok && u.Name == v.Name && u.UID == v.UID && u.Created == v.Created && u.Invalid == v.Invalid &&
		sameNetwork(u.Network, v.Network) && sameSelector(u.Selects, v.Selects) && u.Deleting == v.Deleting &&
		u.Finalizers == v.Finalizers
}

func sameSelector(a, b *LabelSelector) bool {
	return a == b || a != nil && b != nil && a.String() == b.String()
}

// UserNetwork is the UserDefinedNetwork or ClusterUserDefinedNetwork of a name; nil when there is none.
func (s *State) UserNetwork(name Name) *UserNetwork {
	if name.Namespace == "" {
		return s.ClusterUserNetworks[name.Name]
	}
	return s.UserNetworks[name]
}

// ClusterOwner is the name of the owner of the rows that the network has once. Networks that users define have one of
// another name: their rows tell that the kind was served when they were written.
func (n *Network) ClusterOwner() string {
	if n.UserDefined {
		return n.Name.Owner(names.UserOwner)
	}
	return n.Name.Owner(names.ClusterOwner)
}

// RefusesUserNetwork is why a UserDefinedNetwork has no network: a reason, as a condition has it, and a text. Both are
// empty when it has one.
func (s *State) RefusesUserNetwork(u *UserNetwork) (reason, why string) {
	if u.Network == nil {
		return reasonInvalid, u.Invalid
	}
	if s.NetworkDefinitions[u.Name] != nil {
		return reasonInUse, fmt.Sprintf("there is a NetworkAttachmentDefinition %s, which pods get that ask for the "+
			"name: delete it, or choose another name", u.Name)
	}
	if err := s.Allows(u.Network); err != nil {
		return reasonRefused, err.Error()
	}
	return "", ""
}

// Finalizer keeps a network that users define while pods have interfaces in it. It is that of the large upstream
// project.
const Finalizer = "k8s.ovn.org/user-defined-network-protection"

// InUse is true when pods have interfaces in the network. Those of a NetworkAttachmentDefinition of the same name don't
// count.
func (s *State) InUse(u *UserNetwork) bool {
	return s.NetworkDefinitions[u.Name] == nil && len(s.In(names.Defined(u.Name.Namespace, u.Name.Name)).PodNetworks) > 0
}

// ownsUserNetwork is true for the owner of what the network of a UserDefinedNetwork has once.
func ownsUserNetwork(owner names.Kind, name string) bool { return ownsDeclared(owner, name, false) }

// ownsSharedNetwork is the same of a ClusterUserDefinedNetwork.
func ownsSharedNetwork(owner names.Kind, name string) bool { return ownsDeclared(owner, name, true) }

func ownsDeclared(owner names.Kind, name string, shared bool) bool {
	network, rest := names.NetworkOf(name)
	namespace, _, _ := network.Definition()
	return owner == names.KindCluster && rest == names.UserOwner && shared == (namespace == "")
}

// asking is an object that names networks. Which ones it means, other objects say. Its place is in State.asking.
type asking interface {
	Object
	// resolve is the object with the networks that its names mean; itself when it has these already.
	resolve(s *State) Object
}

// Resolve is an object with the networks that its names mean. The name of a pod's request is the network of that name
// in the pod's namespace. Where the namespace declares none, it is the ClusterUserDefinedNetwork of the name, if that
// selects the namespace. The names of a MultiNetworkPolicy mean what they mean to the pods of its namespace. What the
// limits of its namespace took from an object, it still lacks: see Shared.
func (s *State) Resolve(o Object) Object {
	o = s.lackingAsBefore(o)
	if a, ok := o.(asking); ok {
		return a.resolve(s)
	}
	return o
}

func (p *Pod) resolve(s *State) Object {
	var resolved []Attachment
	for i, a := range p.Attachments {
		b := s.resolved(p.Name.Namespace, a)
		if b != a && resolved == nil {
			resolved = slices.Clone(p.Attachments)
		}
		if resolved != nil {
			resolved[i] = b
		}
	}
	if resolved == nil {
		return p
	}
	out := *p
	out.Attachments = resolved
	return &out
}

// resolved is the attachment that a request of a pod in a namespace means.
func (s *State) resolved(namespace string, a Attachment) Attachment {
	asked := a.Name()
	a.Network, a.As = asked, ""
	if n := s.meant(namespace, asked); n != asked {
		a.Network, a.As = n, asked
	}
	return a
}

// meant is the network that a name means to the pods and policies of a namespace.
func (s *State) meant(namespace string, n names.Network) names.Network {
	asked, ok := DefinitionOf(n)
	if !ok || asked.Namespace != namespace || s.NetworkDefinitions[asked] != nil || s.UserNetworks[asked] != nil {
		return n
	}
	u, ns := s.ClusterUserNetworks[asked.Name], s.Namespaces[namespace]
	if u != nil && u.Selects != nil && ns != nil && u.Selects.Selects(ns.Labels) {
		return names.Defined("", asked.Name)
	}
	return n
}

func (p *MultiNetworkPolicy) resolve(s *State) Object {
	networks := make([]names.Network, len(p.Named))
	for i, n := range p.Named {
		networks[i] = s.meant(p.Name.Namespace, n)
	}
	slices.Sort(networks)
	if networks = slices.Compact(networks); slices.Equal(networks, p.Networks) {
		return p
	}
	out := *p
	out.Networks = networks
	return &out
}

// Resolved lists the objects that mean other networks since an object has changed, as they are to be. They are sorted
// by namespace.
func (s *State) Resolved(changed Ref) (out []Object) {
	var namespaces []string
	switch {
	case changed.Kind == KindClusterUserNetwork:
		for _, all := range s.asking {
			namespaces = slices.AppendSeq(namespaces, maps.Keys(all))
		}
		slices.Sort(namespaces)
		namespaces = slices.Compact(namespaces)
	case len(s.ClusterUserNetworks) == 0:
	case changed.Kind == KindNamespace:
		namespaces = []string{changed.Name.Name}
	case changed.Kind.Defines():
		namespaces = []string{changed.Name.Namespace}
	}
	if len(namespaces) == 0 {
		return nil
	}
	kinds := Kinds()
	for _, ns := range namespaces {
		for _, k := range kinds {
			for _, name := range s.asking[k.Kind][ns].Sorted() {
				o := s.Object(Ref{k.Kind, name})
				if now := s.Resolve(o); now != o {
					out = append(out, now)
				}
			}
		}
	}
	return out
}
