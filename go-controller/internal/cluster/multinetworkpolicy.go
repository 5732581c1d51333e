package cluster

import (
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// MultiNetworkPolicy is a NetworkPolicy about pods' interfaces in other networks than the cluster's own
// (k8s.cni.cncf.io/v1beta1). The peers that it selects are what they are in the same network.
type MultiNetworkPolicy struct {
	NetworkPolicy
	Named    []names.Network // networks by the names that the policy has for them; sorted, each once
	Networks []names.Network // what these names mean: see State.Resolve; sorted, each once
}

// ownsMultiPolicy is true also for the isolation of pods in a network: a policy without rules has no other rows.
func ownsMultiPolicy(owner names.Kind, _ string) bool {
	return owner == names.KindNetworkIsolation || owner == names.Kind(KindMultiNetworkPolicy)
}

// Ref implements Object.
func (p *MultiNetworkPolicy) Ref() Ref { return Ref{KindMultiNetworkPolicy, p.Name} }

func (p *MultiNetworkPolicy) place(s *State, in bool) {
	s.asking[KindMultiNetworkPolicy].Put(p.Name.Namespace, p.Name, in)
	s.placeShare(p, in)
}

func (p *MultiNetworkPolicy) lacking(cut int) Object {
	if cut == p.lacks() {
		return p
	}
	out := *p
	out.NetworkPolicy = *p.without(cut > 0)
	return &out
}

// Equal implements Object.
func (p *MultiNetworkPolicy) Equal(o Object) bool {
	q, ok := o.(*MultiNetworkPolicy)
	return ok && slices.Equal(p.Named, q.Named) &&
		slices.Equal(p.Networks, q.Networks) && p.NetworkPolicy.Equal(&q.NetworkPolicy)
}

// About is true when the policy is about a network.
func (p *MultiNetworkPolicy) About(n names.Network) bool {
	return slices.Contains(p.Networks, n)
}
