package cluster

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// SharedNamespace is the namespace whose NetworkAttachmentDefinitions the pods of all namespaces may use.
const SharedNamespace = "default"

// NetworkDefinition is a NetworkAttachmentDefinition: what an interface that pods may ask for is attached to.
type NetworkDefinition struct {
	Name    Name
	UID     string
	Created int64    // creation time, Unix seconds
	Network *Network // that it describes; nil if another plugin serves it, or it can't be used
	Foreign bool     // another plugin serves it
	Invalid string   // why it can't be used; "" for one that can
}

// Ref implements Object.
func (d *NetworkDefinition) Ref() Ref { return Ref{KindNetworkDefinition, d.Name} }

// Equal implements Object.
func (d *NetworkDefinition) Equal(o Object) bool {
	e, ok := o.(*NetworkDefinition)
	return ok && d.Name == e.Name && d.UID == e.UID && d.Created == e.Created && d.Foreign == e.Foreign &&
		d.Invalid == e.Invalid && sameNetwork(d.Network, e.Network)
}

// sameNetwork is true when both are nil, or say the same.
func sameNetwork(n, m *Network) bool { return n == m || n != nil && m != nil && n.Equal(m) }

// DefinitionOf is the name of the NetworkAttachmentDefinition or UserDefinedNetwork that describes a network; ok is
// false for the cluster's own network. The name of a ClusterUserDefinedNetwork has no namespace.
func DefinitionOf(n names.Network) (out Name, ok bool) {
	out.Namespace, out.Name, ok = n.Definition()
	return out, ok
}

// ownsDefinition is true for the owner of what a definition's network has once.
func ownsDefinition(owner names.Kind, name string) bool {
	network, rest := names.NetworkOf(name)
	_, _, defined := network.Definition()
	return owner == names.KindCluster && defined && rest == names.ClusterOwner
}

// Defines is true for the kinds whose objects are networks.
func (k Kind) Defines() bool {
	return k == KindNetworkDefinition || k == KindUserNetwork || k == KindClusterUserNetwork
}

// define brings the network of a name in line with its NetworkAttachmentDefinition or its UserDefinedNetwork, of which
// something has changed.
func (s *State) define(r Ref) {
	if !r.Kind.Defines() {
		return
	}
	name := names.Defined(r.Name.Namespace, r.Name.Name)
	was, is := s.Networks[name], s.described(r.Name)
	if sameNetwork(was, is) {
		return
	}
	if was != nil {
		s.removeNetwork(was.Name)
	}
	if is != nil {
		s.AddNetwork(is)
	}
}

// described is the network that the objects of a name describe; nil when there is none.
func (s *State) described(name Name) *Network {
	if d := s.NetworkDefinitions[name]; d != nil {
		if d.Network != nil && s.Allows(d.Network) == nil {
			return d.Network
		}
		return nil
	}
	if u := s.UserNetwork(name); u != nil {
		if reason, _ := s.RefusesUserNetwork(u); reason == "" {
			return u.Network
		}
	}
	return nil
}

// Allows is the error that a network can't be beside the cluster's own, or that the operator does not let pods join the
// network outside that it is joined to.
func (s *State) Allows(n *Network) error {
	const own = "which the cluster itself uses"
	if text := Overlap("subnets", n.Ranges(), s.Config.Ranges()); text != "" {
		return fmt.Errorf("%s, %s", text, own)
	}
	if err := s.allowsPrimary(n); err != nil {
		return err
	}
	if text := Overlap("joinSubnets", n.JoinSubnets, s.Config.Ranges()); text != "" {
		return fmt.Errorf("%s, %s", text, own)
	}
	if n.Topology != Localnet {
		return nil
	}
	if n.Physical.Name == annotation.DefaultPhysicalNetwork {
		return fmt.Errorf("physical network %q is that of the gateways: a second port in their bridge would stop them",
			n.Physical.Name)
	}
	return s.Config.AllowsPhysical(n.Physical.Name, n.Physical.VLAN)
}

// Overlap says which of the ranges in a field of a network overlaps one that somebody else has; "" if none does.
func Overlap(field string, ranges, taken []netip.Prefix) string {
	for _, r := range ranges {
		if i := slices.IndexFunc(taken, r.Overlaps); i >= 0 {
			return fmt.Sprintf("%s: %s overlaps %s", field, r, taken[i])
		}
	}
	return ""
}

// PodsAskingFor lists the pods that ask for an interface in a network other than the cluster's own, sorted.
func (s *State) PodsAskingFor(n names.Network) []Name { return s.podsByNetwork[n].Sorted() }
