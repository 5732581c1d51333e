package index

import (
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Subjects of topics about policies.
const (
	// PoliciesExist is about the first policy that comes, and the last that goes; it has no key.
	PoliciesExist cluster.Subject = "any policy"
	// PodsSelected is about the pods of a Selection, or their addresses; the key's name is the hash of the Selection.
	PodsSelected cluster.Subject = "pods that a selector selects"
	// PolicyWritten is about what the ACLs of a policy name besides the policy's own text; the key is the policy.
	// A key without a namespace is a ClusterNetworkPolicy.
	PolicyWritten cluster.Subject = "sets that a policy names"
	// PodPoliciesOf is about the policies that select a pod; the key is the pod.
	PodPoliciesOf cluster.Subject = "policies of a pod"
)

// Policies answers which pods policies are about in one network. It keeps a Selection for each selector that any policy
// has: policies that say the same share it.
type Policies struct {
	network    names.Network
	selections map[string]*Selection         // by hash
	scoped     map[string]selectionSet       // of selectors of one namespace, by that
	across     selectionSet                  // of selectors by the labels of namespaces
	uses       map[cluster.Ref][]use         // by policy
	denials    map[string]bool               // the namespaces that log what their NetworkPolicies deny
	elsewhere  map[string]bool               // the namespaces whose NetworkPolicies are about a primary network
	tiered     map[string]bool               // the ClusterNetworkPolicies about another network than the cluster's
	podsIn     cluster.NameSets[string]      // by namespace; nil in the cluster's own network
	pods       map[cluster.Name]*selectedPod // that any policy selects; nil while there is no policy
	alike      alikePods
}

// selectionSet is selections, each once.
type selectionSet map[*Selection]struct{}

// selectedPod is a pod that has a place in the network and is among selections.
type selectedPod struct {
	facts podFacts
	in    []*Selection // sorted by hash
}

func newPolicies() *Policies { return policiesIn(names.Own) }

func policiesIn(n names.Network) *Policies {
	return &Policies{
		network: n, selections: map[string]*Selection{}, scoped: map[string]selectionSet{}, across: selectionSet{},
		uses: map[cluster.Ref][]use{}, denials: map[string]bool{}, elsewhere: map[string]bool{},
		tiered: map[string]bool{},
	}
}

// PoliciesOf is the index of a State. It is about the cluster's own network.
func PoliciesOf(s *cluster.State) *Policies { return of(s, newPolicies) }

// Any is true when there is any policy.
func (x *Policies) Any() bool { return len(x.uses) > 0 }

// Selection is what is known of a selector; nil when no policy has it.
func (x *Policies) Selection(hash string) *Selection { return x.selections[hash] }

// Hash is the hash by which a selector of pods goes in the network.
func (x *Policies) Hash(s cluster.PodSelector) string { return selectorHash(x.network, s) }

// In lists the policies of a namespace, each once, in no order.
func (x *Policies) In(namespace string) []cluster.Ref {
	seen := map[cluster.Ref]bool{}
	for sel := range x.scoped[namespace] { // each has a selector of pods of its namespace
		for policy := range sel.policies {
			if policy.Name.Namespace == namespace {
				seen[policy] = true
			}
		}
	}
	return slices.Collect(maps.Keys(seen))
}

// Selections lists every selection, in no order.
func (x *Policies) Selections() []*Selection {
	out := make([]*Selection, 0, len(x.selections))
	for _, s := range x.selections {
		out = append(out, s)
	}
	return out
}

// PodPolicies is what policies make of a pod.
type PodPolicies struct {
	Subjects        []string // hashes of the selections that rules are about and that it is among, sorted
	Ingress, Egress bool     // it has only the connections of this direction that rules allow
}

// OfPod is what policies make of a pod.
func (x *Policies) OfPod(pod cluster.Name) PodPolicies {
	p := x.pods[pod]
	if p == nil {
		return PodPolicies{}
	}
	return p.policies()
}

// policies is what policies make of the pod.
func (p *selectedPod) policies() (out PodPolicies) {
	for _, s := range p.in {
		if s.subjects > 0 {
			out.Subjects = append(out.Subjects, s.Hash)
		}
		out.Ingress = out.Ingress || s.ingress > 0
		out.Egress = out.Egress || s.egress > 0
	}
	return out
}

// Kinds implements cluster.Index.
func (*Policies) Kinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindPod, cluster.KindNamespace, cluster.KindNetworkPolicy,
		cluster.KindClusterNetworkPolicy}
}

// Before implements cluster.Index.
func (*Policies) Before(*cluster.State, cluster.Ref) {}

// After implements cluster.Index.
func (x *Policies) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	t := &changed{}
	switch r.Kind {
	case cluster.KindPod:
		x.podChanged(s, r.Name, t)
	case cluster.KindNamespace:
		x.namespaceChanged(s, r.Name.Name, t)
	case cluster.KindNetworkPolicy, cluster.KindClusterNetworkPolicy:
		x.policyChanged(s, r, t)
	}
	return t.topics
}

// changed gathers topics, each once.
type changed struct {
	topics []cluster.Topic
	seen   map[cluster.Topic]bool // nil while there are fewTopics: most changes have no more
}

// fewTopics is how many topics are compared with each other.
const fewTopics = 8

func (c *changed) add(s cluster.Subject, key cluster.Name) {
	t := cluster.Topic{Subject: s, Key: key}
	if c.seen[t] || c.seen == nil && slices.Contains(c.topics, t) {
		return
	}
	c.topics = append(c.topics, t)
	switch {
	case c.seen != nil:
		c.seen[t] = true
	case len(c.topics) > fewTopics:
		c.seen = map[cluster.Topic]bool{}
		for _, t := range c.topics {
			c.seen[t] = true
		}
	}
}

// selection notes that a selection is another now.
func (c *changed) selection(s *Selection) { c.add(PodsSelected, cluster.Name{Name: s.Hash}) }

// written notes that the policies that use a selection have other ACLs now.
func (c *changed) written(s *Selection) {
	for policy := range s.policies {
		subject := PolicyWritten
		if policy.Kind == cluster.KindMultiNetworkPolicy {
			subject = MultiPolicyWritten
		}
		c.add(subject, policy.Name)
	}
}

// podChanged brings all selections up to date with a pod.
func (x *Policies) podChanged(s *cluster.State, name cluster.Name, t *changed) {
	if x.pods == nil {
		return
	}
	var facts podFacts
	var in []*Selection
	now := factsOf(s, x.network, name)
	if now != nil {
		facts, in = *now, x.selecting(s, name.Namespace, now.labels)
	}
	if x.podsIn != nil {
		x.podsIn.Put(name.Namespace, name, now != nil)
	}
	x.reselect(name, facts, in, t)
}

// selecting lists the selections that pods of a namespace are among that have these labels.
func (x *Policies) selecting(s *cluster.State, namespace string, labels cluster.Labels) []*Selection {
	out, ok := x.alike.get(namespace, labels)
	if ok {
		return out
	}
	for sel := range x.scoped[namespace] {
		if sel.Selector.Pods.Selects(labels) {
			out = append(out, sel)
		}
	}
	if len(x.across) > 0 {
		n := s.Namespaces[namespace]
		for sel := range x.across {
			if sel.Selector.In(namespace, n) && sel.Selector.Pods.Selects(labels) {
				out = append(out, sel)
			}
		}
	}
	slices.SortFunc(out, compareSelections)
	x.alike.put(namespace, labels, out)
	return out
}

// reselect records what a pod is now, and among which selections. Of a pod that is among none, nothing is kept.
func (x *Policies) reselect(name cluster.Name, facts podFacts, in []*Selection, t *changed) {
	p := x.pods[name]
	switch {
	case p == nil && len(in) == 0:
		return
	case p == nil:
		p = &selectedPod{}
		x.pods[name] = p
	case len(in) == 0:
		delete(x.pods, name)
	}
	p.reselect(name, facts, in, t)
}

// reselect is that of Policies, for the pod.
func (p *selectedPod) reselect(name cluster.Name, facts podFacts, in []*Selection, t *changed) {
	before, alike := PodPolicies{}, slices.Equal(p.in, in)
	if !alike {
		before = p.policies()
	}
	same := p.facts.sameAddresses(facts)
	if facts.texts = p.facts.texts; !same {
		facts.texts = textsOf(facts.addrs)
	}
	for _, sel := range p.in {
		switch {
		case !alike && !among(in, sel):
			sel.put(name, p.facts, false, t)
		case !same:
			sel.contribute(p.facts, false, t)
		}
	}
	for _, sel := range in {
		switch {
		case !alike && !among(p.in, sel):
			sel.put(name, facts, true, t)
		case !same:
			sel.contribute(facts, true, t)
		}
	}
	p.facts, p.in = facts, in
	if !alike && !before.equal(p.policies()) {
		t.add(PodPoliciesOf, name)
	}
}

// among is true when a list of selections, sorted by hash, has sel.
func among(sorted []*Selection, sel *Selection) bool {
	_, is := slices.BinarySearchFunc(sorted, sel, compareSelections)
	return is
}

func (p PodPolicies) equal(q PodPolicies) bool {
	return p.Ingress == q.Ingress && p.Egress == q.Egress && slices.Equal(p.Subjects, q.Subjects)
}

// namespaceChanged brings up to date with a namespace the selections by namespaces' labels. If its policies log what
// they deny, or no longer do, it does so with their selections, too. The same holds if they are about a primary network
// now, or no longer.
func (x *Policies) namespaceChanged(s *cluster.State, namespace string, t *changed) {
	x.alike.forget(namespace)
	n := s.Namespaces[namespace]
	if !x.network.Further() {
		if elsewhere := n != nil && n.InPrimary(); put(x.elsewhere, namespace, elsewhere) {
			for _, policy := range policiesOf(s, namespace) {
				x.policyChanged(s, policy, t)
			}
		}
	}
	if x.network.Further() || put(x.denials, namespace, logsDenials(s, namespace)) {
		for _, policy := range x.In(namespace) {
			x.policyChanged(s, policy, t)
		}
	}
	if len(x.across) > 0 {
		for name := range x.podsOf(s)[namespace] {
			x.podChanged(s, name, t)
		}
	}
	for sel := range x.scoped[namespace] {
		if sel.Selector.Whole() { // its address sets are the Namespace's, if there is one
			t.selection(sel)
			t.written(sel)
		}
	}
}

// put makes a key a member of a set, or removes it unless in. It is true when that changed the set.
func put(set map[string]bool, key string, in bool) bool {
	if set[key] == in {
		return false
	}
	if set[key] = in; !in {
		delete(set, key)
	}
	return true
}

// policiesOf lists the NetworkPolicies of a namespace, in no order. It looks at every policy.
func policiesOf(s *cluster.State, namespace string) (out []cluster.Ref) {
	for name, p := range s.NetworkPolicies {
		if name.Namespace == namespace {
			out = append(out, p.Ref())
		}
	}
	return out
}
