package cluster

import (
	"iter"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// ReasonNamespaceLimit is the reason of the report about a policy whose namespace has no room for its rules.
const ReasonNamespaceLimit = "NamespacePoliciesTooLarge"

// NetworkPolicy says who may connect to the pods that it selects, and whom these may connect to (Kubernetes API,
// networking.k8s.io/v1 NetworkPolicy).
type NetworkPolicy struct {
	Name            Name
	UID             string
	Created         int64         // creation time, Unix seconds: the limits of a namespace leave room to older policies
	Pods            LabelSelector // of its namespace
	Ingress, Egress PolicyRules
	// Written is the policy as its author wrote it, when the limits of its namespace leave it none of its rules; else nil.
	Written *NetworkPolicy
}

// Replace says that the policy is the new version of an object: it is as old.
func (p *NetworkPolicy) Replace(o Object) {
	switch o := o.(type) {
	case *NetworkPolicy:
		p.Created = o.Created
	case *MultiNetworkPolicy:
		p.Created = o.Created
	}
}

// written is the policy with all its rules.
func (p *NetworkPolicy) written() *NetworkPolicy {
	if p.Written != nil {
		return p.Written
	}
	return p
}

// claim is the selectors and terms that the policy names.
func (p *NetworkPolicy) claim(config.Cluster) claim {
	var c cost
	w := p.written()
	for _, r := range slices.Concat(w.Ingress.Rules, w.Egress.Rules) {
		c[1] += 1 + len(r.Ports)
		for _, peer := range r.Peers {
			if c[1] += max(1, len(peer.Addresses)); peer.Pods != nil {
				c[0]++
			}
		}
	}
	return claim{created: p.Created, name: p.Name.Name, costs: []cost{c}}
}

func (p *NetworkPolicy) lacks() int {
	if p.Written != nil {
		return 1
	}
	return 0
}

func (p *NetworkPolicy) lacking(cut int) Object {
	if cut == p.lacks() {
		return p
	}
	return p.without(cut > 0)
}

// without is the policy without rules, or with all of them. It isolates the same pods.
func (p *NetworkPolicy) without(rules bool) *NetworkPolicy {
	w := p.written()
	if !rules {
		return w
	}
	out := *w
	out.Ingress.Rules, out.Egress.Rules, out.Written = nil, nil, w
	return &out
}

func (p *NetworkPolicy) place(s *State, in bool) { s.placeShare(p, in) }

// PolicyRules is what a policy says about one direction.
type PolicyRules struct {
	// Isolates is true when the selected pods have only the connections of this direction that some rule of some policy
	// allows.
	Isolates bool
	Rules    []PolicyRule
}

// PolicyRule is about connections of any of its peers to any of its ports. That of a NetworkPolicy allows them.
type PolicyRule struct {
	AnyPeer bool // Peers has no meaning
	Peers   []PolicyPeer
	AnyPort bool // Ports has no meaning
	Ports   []PolicyPort
}

// WithoutPods is the rule without what needs the addresses of pods: selectors of pods, and names of ports. A rule that
// has lost all its peers or ports matches nothing.
func (r PolicyRule) WithoutPods() PolicyRule {
	r.Peers = slices.DeleteFunc(slices.Clone(r.Peers), func(p PolicyPeer) bool { return p.Pods != nil })
	r.Ports = slices.DeleteFunc(slices.Clone(r.Ports), func(p PolicyPort) bool { return p.Name != "" })
	return r
}

// PolicyPeer is the other side of a connection: pods, nodes, addresses, or those of a name. One of the fields is set.
type PolicyPeer struct {
	Pods      *PodSelector
	Nodes     *LabelSelector
	Addresses []netip.Prefix // of one family, sorted; they do not overlap
	Domain    string         // a name in DNS, as ParseDomainName has it
}

// PolicyPort is ports of a protocol at the server's side of a connection: those from First to Last, all when First is
// 0, or the one that the server's pod knows as Name.
type PolicyPort struct {
	Protocol    Protocol
	Name        string
	First, Last uint16
}

// Ref implements Object.
func (p *NetworkPolicy) Ref() Ref { return Ref{KindNetworkPolicy, p.Name} }

// Equal implements Object.
func (p *NetworkPolicy) Equal(o Object) bool {
	q, ok := o.(*NetworkPolicy)
	return ok && reflect.DeepEqual(p, q)
}

// Subject selects the pods that the policy is about.
func (p *NetworkPolicy) Subject() PodSelector {
	return PodSelector{Namespace: p.Name.Namespace, Pods: p.Pods}
}

// NamedPorts is the ports of a pod's containers that have a name.
type NamedPorts struct{ numbers Labels }

// PortName is by what name a policy knows a port.
type PortName struct {
	Protocol Protocol
	Name     string
}

// NewNamedPorts is these ports.
func NewNamedPorts(ports map[PortName]uint16) NamedPorts {
	texts := make(map[string]string, len(ports))
	for n, number := range ports {
		texts[string(n.Protocol)+"/"+n.Name] = strconv.Itoa(int(number))
	}
	return NamedPorts{NewLabels(texts)}
}

// Number is the number of a port; ok is false when the pod has no such port.
func (p NamedPorts) Number(n PortName) (number uint16, ok bool) {
	text, ok := p.numbers.Get(string(n.Protocol) + "/" + n.Name)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseUint(text, 10, 16)
	return uint16(i), err == nil
}

// All are the ports that have a name, in no order that matters, each with its number.
func (p NamedPorts) All() iter.Seq2[PortName, uint16] {
	return func(yield func(PortName, uint16) bool) {
		for text, number := range p.numbers.All() {
			protocol, name, _ := strings.Cut(text, "/")
			i, err := strconv.ParseUint(number, 10, 16)
			if err == nil && !yield(PortName{Protocol: Protocol(protocol), Name: name}, uint16(i)) {
				return
			}
		}
	}
}

// PodPeers lists the selectors of pods among the peers.
func (r PolicyRule) PodPeers() []PodSelector {
	if r.AnyPeer {
		return nil
	}
	var out []PodSelector
	for _, p := range r.Peers {
		if p.Pods != nil {
			out = append(out, *p.Pods)
		}
	}
	return out
}

// Servers lists the selectors of pods that a rule of direction egress lets its pods connect to.
func (r PolicyRule) Servers() []PodSelector {
	if r.AnyPeer {
		return []PodSelector{{}}
	}
	return r.PodPeers()
}

// PortNames lists the names of ports.
func (r PolicyRule) PortNames() []PortName {
	if r.AnyPort {
		return nil
	}
	var out []PortName
	for _, p := range r.Ports {
		if p.Name != "" {
			out = append(out, PortName{p.Protocol, p.Name})
		}
	}
	return out
}

// Numbered is true when the rule has ports that are not known by name.
func (r PolicyRule) Numbered() bool {
	return !r.AnyPort && slices.ContainsFunc(r.Ports, func(p PolicyPort) bool { return p.Name == "" })
}
