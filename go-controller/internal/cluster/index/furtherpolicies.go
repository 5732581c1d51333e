package index

import (
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Subjects of topics about policies in other networks than the cluster's own.
const (
	// NetworkPoliciesExist is about the first policy that comes to a network, and the last that goes; the key's name is
	// the network.
	NetworkPoliciesExist cluster.Subject = "any policy of a network"
	// MultiPolicyWritten is about what the ACLs of a MultiNetworkPolicy name besides the policy's own text; the key is
	// the policy.
	MultiPolicyWritten cluster.Subject = "sets that a MultiNetworkPolicy names"
)

// FurtherPolicies has the Policies of each network other than the cluster's own that any MultiNetworkPolicy is about.
type FurtherPolicies struct {
	networks map[names.Network]*Policies
	about    map[cluster.Name][]names.Network // by policy
	before   []names.Network                  // of the pod, as they were before it changed
}

func newFurtherPolicies() *FurtherPolicies {
	return &FurtherPolicies{networks: map[names.Network]*Policies{}, about: map[cluster.Name][]names.Network{}}
}

// FurtherPoliciesOf is the index of a State.
func FurtherPoliciesOf(s *cluster.State) *FurtherPolicies { return of(s, newFurtherPolicies) }

// Networks lists the networks that any policy is about, in no order.
func (x *FurtherPolicies) Networks() (out []names.Network) {
	for n := range x.networks {
		out = append(out, n)
	}
	return out
}

// In is the policies of a network: none where no policy is about it.
func (x *FurtherPolicies) In(n names.Network) *Policies {
	if p := x.networks[n]; p != nil {
		return p
	}
	return policiesIn(n)
}

// All lists the policies that are about the network, in no order.
func (x *Policies) All() (out []cluster.Name) {
	for policy := range x.uses {
		out = append(out, policy)
	}
	return out
}

// Selection is what is known of a selector; nil when no policy of any of the networks has it.
func (x *FurtherPolicies) Selection(hash string) *Selection {
	for _, p := range x.networks {
		if s := p.Selection(hash); s != nil {
			return s
		}
	}
	return nil
}

// Selections lists every selection of every network, in no order.
func (x *FurtherPolicies) Selections() (out []*Selection) {
	for _, p := range x.networks {
		out = append(out, p.Selections()...)
	}
	return out
}

// Kinds implements cluster.Index.
func (*FurtherPolicies) Kinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindPod, cluster.KindNamespace, cluster.KindNetworkDefinition,
		cluster.KindUserNetwork, cluster.KindMultiNetworkPolicy}
}

// Before implements cluster.Index.
func (x *FurtherPolicies) Before(s *cluster.State, r cluster.Ref) {
	if r.Kind == cluster.KindPod && len(x.networks) > 0 {
		x.before = networksOf(s, r.Name)
	}
}

// networksOf lists the networks, other than the cluster's own, that a pod asks for.
func networksOf(s *cluster.State, pod cluster.Name) (out []names.Network) {
	if p := s.Pods[pod]; p != nil {
		for _, a := range p.Attachments {
			out = append(out, a.Network)
		}
	}
	return out
}

// After implements cluster.Index. A definition that goes or changes takes what was granted in its network.
func (x *FurtherPolicies) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	t := &changed{}
	switch r.Kind {
	case cluster.KindMultiNetworkPolicy:
		x.policyChanged(s, r.Name, t)
	case cluster.KindNamespace:
		for _, p := range x.networks {
			p.namespaceChanged(s, r.Name.Name, t)
		}
	case cluster.KindNetworkDefinition, cluster.KindUserNetwork:
		n := names.Defined(r.Name.Namespace, r.Name.Name)
		if p := x.networks[n]; p != nil {
			for _, pod := range s.PodsAskingFor(n) {
				p.podChanged(s, pod, t)
			}
		}
	case cluster.KindPod:
		if len(x.networks) == 0 {
			return nil
		}
		networks := append(x.before, networksOf(s, r.Name)...)
		slices.Sort(networks)
		for _, n := range slices.Compact(networks) {
			if p := x.networks[n]; p != nil {
				p.podChanged(s, r.Name, t)
			}
		}
		x.before = nil
	}
	return t.topics
}

// policyChanged brings the networks up to date with a policy that is, or was, about them.
func (x *FurtherPolicies) policyChanged(s *cluster.State, policy cluster.Name, t *changed) {
	var now []names.Network
	if p := s.MultiNetworkPolicies[policy]; p != nil {
		now = p.Networks
	}
	all := slices.Concat(x.about[policy], now)
	slices.Sort(all)
	for _, n := range slices.Compact(all) {
		p := x.networks[n]
		if p == nil {
			p = policiesIn(n)
			x.networks[n] = p
		}
		p.policyChanged(s, policy, t)
		if !p.Any() {
			delete(x.networks, n)
		}
	}
	if x.about[policy] = now; len(now) == 0 {
		delete(x.about, policy)
	}
}
