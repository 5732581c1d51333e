package cluster

import (
	"fmt"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// UserNetwork is a UserDefinedNetwork: a network of the pods of its namespace (k8s.ovn.org/v1).
type UserNetwork struct {
	Name     Name
	UID      string
	Network  *Network // that it describes; nil if it can't be used
	Invalid  string   // why it can't be used; "" for one that can
	Observed Observed
}

// Reasons of Problems with UserDefinedNetworks.
const (
	reasonInvalid = "InvalidNetwork"
	reasonRefused = "NetworkRefused"
	reasonInUse   = "NameInUse"
)

// TypeNetworkCreated is the condition that tells whether a UserDefinedNetwork has its network.
const TypeNetworkCreated = "NetworkCreated"

// Ref implements Object.
func (u *UserNetwork) Ref() Ref { return Ref{KindUserNetwork, u.Name} }

// Observe implements Observable.
func (u *UserNetwork) Observe() Observed { return u.Observed }

// Equal implements Object. What was observed of the status does not count.
func (u *UserNetwork) Equal(o Object) bool {
	v, ok := o.(*UserNetwork)
	return ok && u.Name == v.Name && u.UID == v.UID && u.Invalid == v.Invalid && sameNetwork(u.Network, v.Network)
}

// ClusterOwner is the name of the owner of the rows that the network has once. Networks of UserDefinedNetworks have one
// of another name: their rows tell that the kind was served when they were written.
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

// Unserved is why a pod does not get the interface that it asks for, whatever the network has left; "" if it may.
func (s *State) Unserved(pod Name, a Attachment) string {
	if n := s.Networks[a.Network]; n != nil && n.UserDefined && a.Asked.Unserved == "" {
		if d, ok := DefinitionOf(a.Network); ok && d.Namespace != pod.Namespace {
			return fmt.Sprintf("it is for the pods of namespace %s alone", d.Namespace)
		}
	}
	return a.Asked.Unserved
}
