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
	// NetworkTiersUsed is about the first ClusterNetworkPolicy that comes to a network, and the last that goes; the key's
	// name is the network.
	NetworkTiersUsed cluster.Subject = "any ClusterNetworkPolicy of a network"
)

// FurtherPolicies has the Policies of each network other than the cluster's own that any policy is about: a
// MultiNetworkPolicy, a NetworkPolicy of a namespace with a primary network, or a ClusterNetworkPolicy that selects
// such a namespace.
type FurtherPolicies struct {
	networks map[names.Network]*Policies
	about    map[cluster.Ref][]names.Network // by policy
	before   []names.Network                 // of the pod, as they were before it changed
	primary  map[string]names.Network        // by namespace
	selected map[string]map[string]bool      // by ClusterNetworkPolicy: those of these namespaces that it selects
}

func newFurtherPolicies() *FurtherPolicies {
	return &FurtherPolicies{networks: map[names.Network]*Policies{}, about: map[cluster.Ref][]names.Network{},
		primary: map[string]names.Network{}, selected: map[string]map[string]bool{}}
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

// PoliciesIn is the policies of a network, which may be the cluster's own.
func PoliciesIn(s *cluster.State, n names.Network) *Policies {
	if n.Further() {
		return FurtherPoliciesOf(s).In(n)
	}
	return PoliciesOf(s)
}

// Tiered is true when a ClusterNetworkPolicy is about the network, which is not the cluster's own.
func (x *Policies) Tiered() bool { return len(x.tiered) > 0 }

// All lists the policies that are about the network, in no order.
func (x *Policies) All() (out []cluster.Ref) {
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
		cluster.KindUserNetwork, cluster.KindClusterUserNetwork, cluster.KindNetworkPolicy,
		cluster.KindMultiNetworkPolicy, cluster.KindClusterNetworkPolicy}
}

// Before implements cluster.Index.
func (x *FurtherPolicies) Before(s *cluster.State, r cluster.Ref) {
	if r.Kind == cluster.KindPod && len(x.networks) > 0 {
		x.before = networksOf(s, r.Name)
	}
}

// networksOf lists the networks, other than the cluster's own, that a pod is in, or asks for.
func networksOf(s *cluster.State, pod cluster.Name) (out []names.Network) {
	if p := s.Pods[pod]; p != nil {
		for a := range s.Attachments(p) {
			if a.Network.Further() {
				out = append(out, a.Network)
			}
		}
	}
	return out
}

// After implements cluster.Index. A definition that goes or changes takes what was granted in its network.
func (x *FurtherPolicies) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	t := &changed{}
	if r.Kind == cluster.KindNamespace || r.Kind.Defines() {
		for _, namespace := range s.NamespacesOf(r) {
			x.primaryChanged(s, namespace, t)
		}
	}
	switch r.Kind {
	case cluster.KindNetworkPolicy, cluster.KindMultiNetworkPolicy:
		x.policyChanged(s, r, t)
	case cluster.KindClusterNetworkPolicy:
		x.selectAll(s, r.Name.Name)
		x.policyChanged(s, r, t)
	case cluster.KindNamespace:
		for _, p := range x.networks {
			p.namespaceChanged(s, r.Name.Name, t)
		}
	case cluster.KindNetworkDefinition, cluster.KindUserNetwork, cluster.KindClusterUserNetwork:
		n := names.Defined(r.Name.Namespace, r.Name.Name)
		if p := x.networks[n]; p != nil {
			for _, pod := range s.PodsInNetwork(n) {
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

// primaryChanged brings the networks up to date with the primary network of a namespace: its NetworkPolicies are about
// that one, and its pods are in it. So are the ClusterNetworkPolicies that select the namespace.
func (x *FurtherPolicies) primaryChanged(s *cluster.State, namespace string, t *changed) {
	before, now := x.primary[namespace], names.Network("")
	if n, ok := s.PolicyNetwork(namespace); ok && n.Further() {
		now = n
	}
	if before == "" && now == "" {
		return
	}
	if x.primary[namespace] = now; now == "" {
		delete(x.primary, namespace)
	}
	for _, p := range s.ClusterNetworkPolicies {
		if x.selects(s, p, namespace) || before != now {
			x.policyChanged(s, p.Ref(), t)
		}
	}
	if before == now {
		return
	}
	for _, policy := range policiesOf(s, namespace) {
		x.policyChanged(s, policy, t)
	}
	for _, n := range []names.Network{before, now} {
		if p := x.networks[n]; p != nil {
			for _, pod := range s.PodsIn(namespace) {
				p.podChanged(s, pod, t)
			}
		}
	}
}

// selects brings up to date whether a ClusterNetworkPolicy selects a namespace that has a primary network. It is true
// if that has changed.
func (x *FurtherPolicies) selects(s *cluster.State, p *cluster.TieredPolicy, namespace string) bool {
	_, primary := x.primary[namespace]
	if x.selected[p.Name] == nil {
		x.selected[p.Name] = map[string]bool{}
	}
	selects := primary && p.HasRules() && p.Pods.In(namespace, s.Namespaces[namespace])
	changed := put(x.selected[p.Name], namespace, selects)
	if len(x.selected[p.Name]) == 0 {
		delete(x.selected, p.Name)
	}
	return changed
}

// selectAll does that for all namespaces. A policy that is gone selects none.
func (x *FurtherPolicies) selectAll(s *cluster.State, policy string) {
	p := s.ClusterNetworkPolicies[policy]
	if delete(x.selected, policy); p == nil {
		return
	}
	for namespace := range x.primary {
		x.selects(s, p, namespace)
	}
}

// aboutOf lists the networks, other than the cluster's own, that a policy is about, each once.
func (x *FurtherPolicies) aboutOf(s *cluster.State, policy cluster.Ref) (out []names.Network) {
	switch p := s.Object(policy).(type) {
	case *cluster.MultiNetworkPolicy:
		return p.Networks
	case *cluster.NetworkPolicy:
		if n, ok := s.PolicyNetwork(p.Name.Namespace); ok && n.Further() {
			return []names.Network{n}
		}
	case *cluster.TieredPolicy:
		for namespace := range x.selected[p.Name] {
			out = append(out, x.primary[namespace])
		}
		slices.Sort(out)
	}
	return slices.Compact(out)
}

// About lists the networks, other than the cluster's own, that a ClusterNetworkPolicy is about, sorted.
func (x *FurtherPolicies) About(policy string) []names.Network {
	return x.about[cluster.Ref{Kind: cluster.KindClusterNetworkPolicy, Name: cluster.Name{Name: policy}}]
}

// policyChanged brings the networks up to date with a policy that is, or was, about them.
func (x *FurtherPolicies) policyChanged(s *cluster.State, policy cluster.Ref, t *changed) {
	now := x.aboutOf(s, policy)
	all := slices.Concat(x.about[policy], now)
	slices.Sort(all)
	for _, n := range slices.Compact(all) {
		p := x.networks[n]
		if p == nil {
			p = policiesIn(n)
			x.networks[n] = p
		}
		tiered := p.Tiered()
		if policy.Kind == cluster.KindClusterNetworkPolicy {
			put(p.tiered, policy.Name.Name, slices.Contains(now, n))
		}
		if tiered != p.Tiered() {
			t.add(NetworkTiersUsed, cluster.Name{Name: string(n)})
		}
		p.policyChanged(s, policy, t)
		if !p.Any() {
			delete(x.networks, n)
		}
	}
	if policy.Kind == cluster.KindClusterNetworkPolicy && !slices.Equal(x.about[policy], now) {
		t.add(PolicyWritten, policy.Name)
	}
	if x.about[policy] = now; len(now) == 0 {
		delete(x.about, policy)
	}
}
