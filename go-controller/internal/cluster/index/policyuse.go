package index

import (
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// use is one way in which a policy uses a selector.
type use struct {
	selector        cluster.PodSelector
	subject         bool // the policy has ACLs about these pods
	ingress, egress bool // the policy isolates these pods
	peer            bool // a rule names them as the other side
	port            cluster.PortName
}

// usesOf lists how a policy uses selectors; nil when there is no such policy, or it is not about the network.
func (x *Policies) usesOf(s *cluster.State, policy cluster.Ref) []use {
	switch p := s.Object(policy).(type) {
	case *cluster.NetworkPolicy:
		if n, ok := s.PolicyNetwork(p.Name.Namespace); ok && n == x.network {
			return usesOfPolicy(p, logsDenials(s, p.Name.Namespace))
		}
	case *cluster.MultiNetworkPolicy:
		if p.About(x.network) {
			return usesOfPolicy(&p.NetworkPolicy, false)
		}
	case *cluster.TieredPolicy:
		if !x.network.Further() || x.tiered[p.Name] {
			return append(usesOfRules(p.Pods, rulesOf(p.Ingress), rulesOf(p.Egress)),
				use{selector: p.Pods, subject: len(p.Ingress)+len(p.Egress) > 0})
		}
	}
	return nil
}

// usesOfPolicy lists how a NetworkPolicy uses selectors. logs is true when it has rows of its own for what it denies.
func usesOfPolicy(p *cluster.NetworkPolicy, logs bool) []use {
	subject := p.Subject()
	return append(usesOfRules(subject, p.Ingress.Rules, p.Egress.Rules),
		use{selector: subject, subject: len(p.Ingress.Rules)+len(p.Egress.Rules) > 0 || logs,
			ingress: p.Ingress.Isolates, egress: p.Egress.Isolates})
}

// logsDenials is true when the policies of a namespace have rows of their own for what they deny.
func logsDenials(s *cluster.State, namespace string) bool {
	n := s.Namespaces[namespace]
	return n != nil && n.Logging.Deny != ""
}

func rulesOf(list []cluster.TieredRule) []cluster.PolicyRule {
	out := make([]cluster.PolicyRule, len(list))
	for i, r := range list {
		out[i] = r.PolicyRule
	}
	return out
}

// usesOfRules lists how rules use selectors; subject is that of the policy's own pods.
func usesOfRules(subject cluster.PodSelector, ingress, egress []cluster.PolicyRule) []use {
	var out []use
	for _, r := range ingress {
		for _, name := range r.PortNames() {
			out = append(out, use{selector: subject, port: name})
		}
		for _, peer := range r.PodPeers() {
			out = append(out, use{selector: peer, peer: true})
		}
	}
	for _, r := range egress {
		for _, peer := range r.PodPeers() {
			if r.AnyPort || r.Numbered() {
				out = append(out, use{selector: peer, peer: true})
			}
		}
		for _, server := range r.Servers() {
			for _, name := range r.PortNames() {
				out = append(out, use{selector: server, port: name})
			}
		}
	}
	return out
}

// policyChanged brings the selections up to date with a policy.
func (x *Policies) policyChanged(s *cluster.State, policy cluster.Ref, t *changed) {
	old, now := x.uses[policy], x.usesOf(s, policy)
	if now != nil && x.pods == nil {
		x.watchPods(s)
	}
	for _, u := range now { // first, so that what stays in use is kept
		x.use(s, policy, u, t)
	}
	for _, u := range old {
		x.disuse(policy, u, t)
	}
	any := x.Any()
	if x.uses[policy] = now; now == nil {
		delete(x.uses, policy)
	}
	if any != x.Any() {
		t.add(x.exist())
	}
	if !x.Any() {
		x.pods, x.podsIn, x.alike = nil, nil, alikePods{}
	}
}

// watchPods begins to keep what selections need to know of pods.
func (x *Policies) watchPods(s *cluster.State) {
	x.pods = map[cluster.Name]*selectedPod{}
	if !x.network.Further() {
		return
	}
	x.podsIn = cluster.NameSets[string]{}
	for _, name := range s.PodsInNetwork(x.network) {
		x.podChanged(s, name, &changed{})
	}
}

// podsOf is the pods that may be in the network, by namespace.
func (x *Policies) podsOf(s *cluster.State) cluster.NameSets[string] {
	if x.podsIn != nil {
		return x.podsIn
	}
	return s.PodsByNamespace()
}

// exist is the topic of the first policy of the network, and of the last.
func (x *Policies) exist() (cluster.Subject, cluster.Name) {
	if !x.network.Further() {
		return PoliciesExist, cluster.Name{}
	}
	return NetworkPoliciesExist, cluster.Name{Name: string(x.network)}
}

// use notes that a policy uses a selector.
func (x *Policies) use(s *cluster.State, policy cluster.Ref, u use, t *changed) {
	hash := x.Hash(u.selector)
	sel := x.selections[hash]
	if sel == nil {
		sel = x.selectAnew(s, u.selector, hash)
	}
	sel.policies[policy]++
	x.count(sel, u, 1, t)
	if u.port.Name == "" {
		return
	}
	if sel.named[u.port] == nil {
		p := &namedPort{numbers: map[uint16]*numbered{}}
		for pod := range sel.members {
			facts := x.pods[pod].facts
			if number, ok := facts.ports.Number(u.port); ok {
				p.put(number, facts, true)
			}
		}
		sel.named[u.port] = p
		t.selection(sel)
	}
	sel.named[u.port].rules++
}

// disuse takes a use back.
func (x *Policies) disuse(policy cluster.Ref, u use, t *changed) {
	hash := x.Hash(u.selector)
	sel := x.selections[hash]
	if sel.policies[policy]--; sel.policies[policy] == 0 {
		delete(sel.policies, policy)
	}
	x.count(sel, u, -1, t)
	if p := sel.named[u.port]; p != nil {
		if p.rules--; p.rules == 0 {
			delete(sel.named, u.port)
			t.selection(sel)
		}
	}
	if len(sel.policies) > 0 {
		return
	}
	for pod := range sel.members {
		p := x.pods[pod]
		p.in = slices.DeleteFunc(slices.Clone(p.in), func(s *Selection) bool { return s == sel })
		if len(p.in) == 0 {
			delete(x.pods, pod)
		}
	}
	x.register(sel, false)
	t.selection(sel)
}

// selectAnew makes the selection of a selector.
func (x *Policies) selectAnew(s *cluster.State, selector cluster.PodSelector, hash string) *Selection {
	sel := &Selection{Network: x.network, Selector: selector, Hash: hash, named: map[cluster.PortName]*namedPort{},
		policies: map[cluster.Ref]int{}, members: cluster.NameSet{}}
	x.register(sel, true)
	namespaces := x.podsOf(s)
	if n := selector.Namespace; n != "" {
		namespaces = cluster.NameSets[string]{n: namespaces[n]}
	}
	quiet := &changed{}
	for namespace, pods := range namespaces {
		if !selector.In(namespace, s.Namespaces[namespace]) {
			continue
		}
		for pod := range pods {
			facts := x.factsIf(s, pod, selector)
			if facts == nil {
				continue
			}
			var in []*Selection
			if p := x.pods[pod]; p != nil {
				in = p.in
			}
			at, _ := slices.BinarySearchFunc(in, sel, compareSelections)
			x.reselect(pod, *facts, slices.Insert(slices.Clone(in), at, sel), quiet)
		}
	}
	return sel
}

// factsIf is what is known of a pod: what is kept of it, if anything is. It is nil if the selector does not select the
// pod's labels, or the pod has no place in the network.
func (x *Policies) factsIf(s *cluster.State, pod cluster.Name, selector cluster.PodSelector) *podFacts {
	if p := x.pods[pod]; p != nil {
		if !selector.Pods.Selects(p.facts.labels) {
			return nil
		}
		return &p.facts
	}
	if o := s.Pods[pod]; o == nil || !selector.Pods.Selects(o.Labels) {
		return nil
	}
	return factsOf(s, x.network, pod)
}

// register enters a selection where it is looked for, or removes it unless in.
func (x *Policies) register(sel *Selection, in bool) {
	x.alike.forget(sel.Selector.Namespace)
	scope := x.across
	if n := sel.Selector.Namespace; n != "" {
		if x.scoped[n] == nil {
			x.scoped[n] = selectionSet{}
		}
		scope = x.scoped[n]
	}
	if in {
		scope[sel], x.selections[sel.Hash] = struct{}{}, sel
		return
	}
	delete(scope, sel)
	delete(x.selections, sel.Hash)
	if n := sel.Selector.Namespace; len(x.scoped[n]) == 0 {
		delete(x.scoped, n)
	}
}

// count counts a use. If that makes a difference to the selection's rows, or to what its pods may do, it notes so.
func (x *Policies) count(sel *Selection, u use, by int, t *changed) {
	made, does := [2]bool{sel.Subject(), sel.Peer()}, [3]bool{sel.Subject(), sel.ingress > 0, sel.egress > 0}
	if u.subject {
		sel.subjects += by
	}
	if u.ingress {
		sel.ingress += by
	}
	if u.egress {
		sel.egress += by
	}
	if u.peer {
		sel.peers += by
	}
	if made != [2]bool{sel.Subject(), sel.Peer()} {
		t.selection(sel)
	}
	if does != [3]bool{sel.Subject(), sel.ingress > 0, sel.egress > 0} {
		for pod := range sel.members {
			t.add(PodPoliciesOf, pod)
		}
	}
}
