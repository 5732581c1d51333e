package policy

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// Subjects of topics about ClusterNetworkPolicies.
const (
	// tiersUsed is about the first ClusterNetworkPolicy that comes, and the last that goes; it has no key.
	tiersUsed cluster.Subject = "any ClusterNetworkPolicy"
	// placed is about the place of a policy among those of the same tier and priority; the key is the policy.
	placed cluster.Subject = "place of a ClusterNetworkPolicy"
	// nodesSelected is about the nodes that a selector selects, or their addresses; the key's name is its hash.
	nodesSelected cluster.Subject = "nodes that a selector selects"
)

// clusterPolicies answers in which order ClusterNetworkPolicies are asked, and which nodes they name.
type clusterPolicies struct {
	policies map[string]*cluster.TieredPolicy
	equals   cluster.NameSets[rank] // policies with rules of the same tier and priority
	nodes    map[string]*nodeSelection
	facts    map[string]nodeFacts // by node
}

// rank is what decides which policy is asked first.
type rank struct {
	tier     cluster.PolicyTier
	priority int
}

// nodeSelection is a selector of nodes that rules name.
type nodeSelection struct {
	selector cluster.LabelSelector
	uses     int
}

// nodeFacts is what rules that name a node depend on.
type nodeFacts struct {
	labels cluster.Labels
	addrs  []netip.Addr
}

func newClusterPolicies() *clusterPolicies {
	return &clusterPolicies{policies: map[string]*cluster.TieredPolicy{}, equals: cluster.NameSets[rank]{},
		nodes: map[string]*nodeSelection{}, facts: map[string]nodeFacts{}}
}

// clusterPoliciesOf is the index of a State. For a State without it, it is made from all objects.
func clusterPoliciesOf(s *cluster.State) *clusterPolicies {
	if x, ok := cluster.IndexOf[*clusterPolicies](s); ok {
		return x
	}
	x := newClusterPolicies()
	for _, k := range x.Kinds() {
		for o := range s.Objects(k) {
			x.After(s, o.Ref())
		}
	}
	return x
}

// tiered is true while ACLs have tiers: those of tenants are in the first.
func tiered(s *cluster.State) bool {
	return !s.WithoutTiers && (len(clusterPoliciesOf(s).policies) > 0 || s.Held.Tiered || s.Config.Multitenant)
}

// tieredIn is the same in one network. While the removal of ClusterNetworkPolicies waits for approval, it is not known
// in which networks they have rows.
func tieredIn(s *cluster.State, n names.Network) bool {
	if !n.Further() {
		return tiered(s)
	}
	network := s.Networks[n]
	return !s.WithoutTiers && (index.FurtherPoliciesOf(s).In(n).Tiered() ||
		s.Held.Tiered && network != nil && network.Primary)
}

// Kinds implements cluster.Index.
func (*clusterPolicies) Kinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindClusterNetworkPolicy, cluster.KindNode}
}

// Before implements cluster.Index.
func (*clusterPolicies) Before(*cluster.State, cluster.Ref) {}

// After implements cluster.Index.
func (x *clusterPolicies) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	if r.Kind == cluster.KindNode {
		return x.nodeChanged(s, r.Name.Name)
	}
	return x.policyChanged(r.Name.Name, s.ClusterNetworkPolicies[r.Name.Name])
}

func (x *clusterPolicies) policyChanged(name string, now *cluster.TieredPolicy) []cluster.Topic {
	var out []cluster.Topic
	topic := func(s cluster.Subject, key string) {
		out = append(out, cluster.Topic{Subject: s, Key: cluster.Name{Name: key}})
	}
	old, any := x.policies[name], len(x.policies) > 0
	if x.policies[name] = now; now == nil {
		delete(x.policies, name)
	}
	if any != (len(x.policies) > 0) {
		topic(tiersUsed, "")
	}
	for i, p := range []*cluster.TieredPolicy{now, old} { // what stays in use is not made anew
		if p == nil {
			continue
		}
		r := rank{p.Tier, p.Priority}
		x.equals.Put(r, cluster.Name{Name: name}, now.HasRules() && r == rank{now.Tier, now.Priority})
		for other := range x.equals[r] {
			topic(placed, other.Name)
		}
		for _, selector := range nodeSelectors(p) {
			if x.use(selector, 1-2*i) {
				topic(nodesSelected, nodesHash(selector))
			}
		}
	}
	return out
}

// use counts the uses of a selector of nodes. It is true when the first comes, or the last goes.
func (x *clusterPolicies) use(selector cluster.LabelSelector, by int) bool {
	hash := nodesHash(selector)
	n := x.nodes[hash]
	if n == nil {
		n = &nodeSelection{selector: selector}
		x.nodes[hash] = n
	}
	n.uses += by
	if n.uses == 0 {
		delete(x.nodes, hash)
	}
	return n.uses == 0 || n.uses == by
}

func nodeSelectors(p *cluster.TieredPolicy) []cluster.LabelSelector {
	var out []cluster.LabelSelector
	for _, r := range slices.Concat(p.Ingress, p.Egress) {
		for _, peer := range r.Peers {
			if peer.Nodes != nil {
				out = append(out, *peer.Nodes)
			}
		}
	}
	return out
}

// nodesText is such as "nodes role=worker".
func nodesText(s cluster.LabelSelector) string {
	if s.All() {
		return "all nodes"
	}
	return "nodes " + s.String()
}

// nodesHash is the hash by which a selector of nodes goes.
func nodesHash(s cluster.LabelSelector) string {
	sum := sha1.Sum([]byte(nodesText(s)))
	return hex.EncodeToString(sum[:10])
}

func (x *clusterPolicies) nodeChanged(s *cluster.State, name string) []cluster.Topic {
	old, had := x.facts[name]
	now, has := nodeFacts{}, s.Nodes[name] != nil
	if delete(x.facts, name); has {
		now = factsOf(s, s.Nodes[name])
		x.facts[name] = now
	}
	if had == has && old.labels == now.labels && slices.Equal(old.addrs, now.addrs) {
		return nil
	}
	var out []cluster.Topic
	for hash, n := range x.nodes {
		if had && n.selector.Selects(old.labels) || has && n.selector.Selects(now.labels) {
			out = append(out, cluster.Topic{Subject: nodesSelected, Key: cluster.Name{Name: hash}})
		}
	}
	return out
}

// factsOf lists the addresses of a node that its pods and others can connect to: those of its status, and those of its
// management port, which reach the same host.
func factsOf(s *cluster.State, n *cluster.Node) nodeFacts {
	out := nodeFacts{labels: n.Labels, addrs: n.Reported()}
	for _, p := range s.NodeSubnets[n.Name] {
		if a, ok := ipnet.Nth(p, subnet.ManagementHost); ok {
			out.addrs = append(out.addrs, a)
		}
	}
	return out
}

// addresses lists the addresses of one family of the nodes that a selector selects, sorted as text.
func (x *clusterPolicies) addresses(n *nodeSelection, is4 bool) []string {
	var out []string
	for _, f := range x.facts {
		if !n.selector.Selects(f.labels) {
			continue
		}
		for _, a := range f.addrs {
			if a.Is4() == is4 {
				out = append(out, a.String())
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// around lists the policies of the same tier and priority that are asked before a policy, and those after it.
func (x *clusterPolicies) around(p *cluster.TieredPolicy) (before, after []*cluster.TieredPolicy) {
	if !p.HasRules() {
		return nil, nil
	}
	for name := range x.equals[rank{p.Tier, p.Priority}] {
		switch q := x.policies[name.Name]; {
		case compareAge(q, p) < 0:
			before = append(before, q)
		case q.Name != p.Name:
			after = append(after, q)
		}
	}
	slices.SortFunc(before, compareAge)
	slices.SortFunc(after, compareAge)
	return before, after
}

func compareAge(p, q *cluster.TieredPolicy) int {
	return cmp.Or(cmp.Compare(p.Created, q.Created), cmp.Compare(p.Name, q.Name))
}
