package cluster

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// InPrimary is true for a namespace whose pods are in a primary network: it has their default routes, and the cluster's
// own network is left to the kubelet's probes.
func (n *Namespace) InPrimary() bool {
	_, ok := n.Labels.Get(names.PrimaryLabel)
	return ok
}

// Locked is true for a pod that has nothing but probes in the cluster's own network. A pod whose Namespace is not known
// yet counts as one where a primary network claims the namespace, or might: nobody must reach it before that is known.
func (s *State) Locked(pod Name) bool {
	if n := s.Namespaces[pod.Namespace]; n != nil {
		return n.InPrimary()
	}
	return s.mayBePrimary(pod.Namespace)
}

// mayBePrimary is true when a network is to be the primary one of a namespace whose Namespace is not known, or may
// select it.
func (s *State) mayBePrimary(namespace string) bool {
	return s.PrimaryClaimed(namespace) || s.GuessesPrimary()
}

// PrimaryClaimed is true when any network is to be the primary one of a namespace.
func (s *State) PrimaryClaimed(namespace string) bool { return len(s.primaries[namespace]) > 0 }

// GuessesPrimary is true while any pod is Locked whose Namespace is not known: a ClusterUserDefinedNetwork is to be a
// primary one, and might select the namespace.
func (s *State) GuessesPrimary() bool { return len(s.sharedPrimaries) > 0 }

// Primary is the primary network of a namespace's pods: the oldest of those that are to be it, so that a new one takes
// no running pods away. Without one, why says what they wait for; it is empty where pods need none.
func (s *State) Primary(namespace string) (n names.Network, why string) {
	claims := s.primaries[namespace]
	switch ns := s.Namespaces[namespace]; {
	case ns == nil && s.mayBePrimary(namespace):
		return "", "the Namespace is not known yet"
	case ns == nil || !ns.InPrimary():
		return "", ""
	case len(claims) == 0:
		return "", fmt.Sprintf("the namespace has the label %s, but no primary network: make one, or the namespace anew",
			names.PrimaryLabel)
	}
	return s.PrimaryClaims(namespace)[0], ""
}

// PolicyNetwork is the network that NetworkPolicies of a namespace are about: its primary one, or else the cluster's
// own. ok is false while pods of the namespace wait for a primary network: then they are about none.
func (s *State) PolicyNetwork(namespace string) (n names.Network, ok bool) {
	if ns := s.Namespaces[namespace]; ns == nil || !ns.InPrimary() {
		return names.Own, true
	}
	n, _ = s.Primary(namespace)
	return n, n != ""
}

// PodsInNetwork lists the pods that have, or may have, an interface in a network other than the cluster's own. A pod
// may be there twice. For a primary network it looks at every pod.
func (s *State) PodsInNetwork(n names.Network) []Name {
	out := s.PodsAskingFor(n)
	in := map[string]bool{}
	for namespace, claims := range s.primaries {
		if _, claimed := claims[Name{Name: string(n)}]; claimed {
			primary, _ := s.Primary(namespace)
			in[namespace] = primary == n
		}
	}
	if len(in) == 0 {
		return out
	}
	for name := range s.Pods {
		if in[name.Namespace] {
			out = append(out, name)
		}
	}
	return out
}

// InNetwork is true when a pod has an interface in a network.
func (s *State) InNetwork(p *Pod, n names.Network) bool {
	for a := range s.Attachments(p) {
		if a.Network == n {
			return true
		}
	}
	return false
}

// primaryPort is the attachment of the pods of a namespace to their primary network. They know a
// ClusterUserDefinedNetwork as one of their namespace.
func primaryPort(namespace string, n names.Network) Attachment {
	a := Attachment{Network: n, Interface: names.PrimaryInterface}
	if d, ok := DefinitionOf(n); ok && d.Namespace == "" {
		a.As = names.Defined(namespace, d.Name)
	}
	return a
}

// Attachments yields every attachment of a pod: to the cluster's own network, to the namespace's primary network, and
// those that the pod asks for. What it asks for of a primary network is not served: the namespace decides.
func (s *State) Attachments(p *Pod) iter.Seq[Attachment] {
	return func(yield func(Attachment) bool) {
		if !yield(Attachment{Network: names.Own}) {
			return
		}
		n, _ := s.Primary(p.Name.Namespace)
		own := primaryPort(p.Name.Namespace, n)
		own.Asked = p.Preferred
		asked := func(a Attachment) bool { return a.Network == own.Network && a.Interface == own.Interface }
		if n != "" && !slices.ContainsFunc(p.Attachments, asked) && !yield(own) {
			return
		}
		for _, a := range p.Attachments {
			if a.Asked.Unserved == "" {
				a.Asked.Unserved = s.unserved(p, n, a)
			}
			if !yield(a) {
				return
			}
		}
	}
}

// NetworkOf is the network of an entry in a pod's annotation, by its key. A network that namespaces share has a name in
// each of them. It is false if the pod is not attached to such a network now: then it is the one that the key names.
func (s *State) NetworkOf(p *Pod, key string) (n names.Network, attached bool) {
	for a := range s.Attachments(p) {
		if a.Key() == key {
			return a.Network, true
		}
	}
	n, _ = names.EntryOf(key)
	return n, false
}

// unserved is why a pod with this primary network does not get an interface that it asks for, whatever the network has
// left; "" if it may.
func (s *State) unserved(p *Pod, primary names.Network, a Attachment) string {
	n := s.Networks[a.Network]
	d, _ := DefinitionOf(a.Network)
	switch {
	case n != nil && n.Primary:
		return fmt.Sprintf("it is a primary network: pods of a namespace with the label %s get it without asking",
			names.PrimaryLabel)
	case primary != "" && a.Interface == names.PrimaryInterface:
		return fmt.Sprintf("interface %q is that of the primary network, want another name", a.Interface)
	case n != nil && n.UserDefined && a.As == "" && d.Namespace != p.Name.Namespace:
		return fmt.Sprintf("it is for the pods of namespace %s alone", d.Namespace)
	}
	return ""
}

// PrimaryNetworks lists the networks that are a namespace's primary one, in no order.
func (s *State) PrimaryNetworks() (out []*Network) {
	for _, n := range s.Networks {
		if n.Primary {
			out = append(out, n)
		}
	}
	return out
}

// AnyPrimary is true when any network is to be a primary one.
func (s *State) AnyPrimary() bool { return len(s.primaries)+len(s.sharedPrimaries) > 0 }

// PodsIn lists the pods of a namespace, in no order.
func (s *State) PodsIn(namespace string) []Name { return s.PodsByNamespace()[namespace].List() }

// PodsByNamespace is the pods of each namespace. The caller must not change it.
func (s *State) PodsByNamespace() NameSets[string] {
	if s.podsByNamespace == nil {
		s.podsByNamespace = NameSets[string]{}
		for name := range s.Pods {
			s.podsByNamespace.Put(name.Namespace, name, true)
		}
	}
	return s.podsByNamespace
}

// leastJoin is how many addresses a join subnet has at least.
const leastJoin = 256

// SetJoin sets the subnets of the switch between a primary network's router and the exits of nodes: of those given, the
// ones of families that the network has. The error says what is wrong with them.
func (n *Network) SetJoin(join []netip.Prefix) error {
	n.JoinSubnets = nil
	field := "joinSubnet"
	if n.UserDefined {
		field = "joinSubnets"
	}
	for _, is4 := range []bool{true, false} {
		has := slices.ContainsFunc(n.Subnets, func(s config.ClusterSubnet) bool { return s.CIDR.Addr().Is4() == is4 })
		of := slices.DeleteFunc(slices.Clone(join), func(p netip.Prefix) bool { return p.Addr().Is4() != is4 })
		switch {
		case len(of) > 1:
			return fmt.Errorf("%s: %s and %s are of one address family, want one of each", field, of[0], of[1])
		case !has:
			continue
		case len(of) == 0:
			return fmt.Errorf("%s: %s lacks one of IP%s, which subnets has", field, config.PrefixList(join),
				names.FamilyOf(is4))
		case ipnet.Size(of[0]) < leastJoin || !of[0].Addr().IsGlobalUnicast() || of[0].Bits() == 0:
			return fmt.Errorf("%s: %s: want a range of %d addresses or more that hosts can have", field, of[0], leastJoin)
		}
		for _, s := range n.Subnets {
			if s.CIDR.Overlaps(of[0]) {
				return fmt.Errorf("%s: %s overlaps %s of subnets, want another range in one of the two", field, of[0], s.CIDR)
			}
		}
		n.JoinSubnets = append(n.JoinSubnets, of[0])
	}
	return nil
}

// allowsPrimary is the error that a primary network has a family that the cluster's own network lacks: pods would reach
// nothing outside in it.
func (s *State) allowsPrimary(n *Network) error {
	if !n.Primary {
		return nil
	}
	for _, is4 := range []bool{true, false} {
		of := func(c config.ClusterSubnet) bool { return c.CIDR.Addr().Is4() == is4 }
		own, has := slices.ContainsFunc(s.Config.Subnets, of), slices.ContainsFunc(n.Subnets, of)
		if has && !own {
			return fmt.Errorf("subnets: the cluster's own pods have no IP%s, want no range of it in a primary network",
				names.FamilyOf(is4))
		}
	}
	return nil
}
