package index

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Selection is the pods that a selector selects: those that have a place in a network. A pod without an address (yet)
// is among them.
type Selection struct {
	Network  names.Network
	Selector cluster.PodSelector
	Hash     string // of the selector's text, 20 hexadecimal digits

	subjects        int // policies that have ACLs about these pods
	ingress, egress int // policies that isolate these pods in this direction
	peers           int // rules that name them as the other side
	named           map[cluster.PortName]*namedPort
	policies        map[cluster.Ref]int // how often a policy uses the selection in any way
	members         cluster.NameSet
	addresses       [2]addressList // of IPv4 and IPv6
}

// namedPort is the pods of a selection that have a port of some name.
type namedPort struct {
	rules   int // that name the port
	numbers map[uint16]*numbered
}

// numbered is the pods of a selection for which a port's name means one number.
type numbered struct {
	pods      int
	addresses [2]addressList
}

func compareSelections(a, b *Selection) int { return cmp.Compare(a.Hash, b.Hash) }

// SelectorHash is the hash by which a selector goes in the cluster's own network.
func SelectorHash(s cluster.PodSelector) string { return selectorHash(names.Own, s) }

func selectorHash(n names.Network, s cluster.PodSelector) string {
	sum := sha1.Sum([]byte(selectorText(n, s)))
	return hex.EncodeToString(sum[:10])
}

// selectorText says what a selector selects in a network.
func selectorText(n names.Network, s cluster.PodSelector) string {
	if !n.Further() {
		return s.String()
	}
	return s.String() + " in network " + string(n)
}

// String says what is selected.
func (s *Selection) String() string { return selectorText(s.Network, s.Selector) }

// Subject is true when any policy has ACLs about these pods.
func (s *Selection) Subject() bool { return s.subjects > 0 }

// Peer is true when any rule names these pods as the other side of connections.
func (s *Selection) Peer() bool { return s.peers > 0 }

// Pods lists the pods, sorted.
func (s *Selection) Pods() []cluster.Name { return s.members.Sorted() }

// Addresses lists the addresses of one family of the pods, sorted as text. The caller must not change the list.
func (s *Selection) Addresses(is4 bool) []string { return s.addresses[side(is4)].list() }

// PortNames lists the names of ports that any rule looks for among these pods, sorted.
func (s *Selection) PortNames() []cluster.PortName {
	return slices.SortedFunc(maps.Keys(s.named), func(a, b cluster.PortName) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Name, b.Name))
	})
}

// Numbers lists what a port's name means to these pods, sorted.
func (s *Selection) Numbers(n cluster.PortName) []uint16 {
	if p := s.named[n]; p != nil {
		return slices.Sorted(maps.Keys(p.numbers))
	}
	return nil
}

// AddressesAt lists the addresses of one family of the pods to which a port's name means a number, sorted as text. The
// caller must not change the list.
func (s *Selection) AddressesAt(n cluster.PortName, number uint16, is4 bool) []string {
	if p := s.named[n]; p != nil && p.numbers[number] != nil {
		return p.numbers[number].addresses[side(is4)].list()
	}
	return nil
}

func side(is4 bool) int {
	if is4 {
		return 0
	}
	return 1
}

// podFacts is what selections and their address sets depend on.
type podFacts struct {
	labels cluster.Labels
	ports  cluster.NamedPorts
	addrs  []netip.Addr
	texts  []string // the same as text, which selections share; factsOf does not set it
}

// sameAddresses is true when the pods contribute the same to address sets.
func (f podFacts) sameAddresses(g podFacts) bool {
	return f.ports == g.ports && slices.Equal(f.addrs, g.addrs)
}

// factsOf is nil for a pod that has no place in a network.
func factsOf(s *cluster.State, n names.Network, name cluster.Name) *podFacts {
	p := s.Pods[name]
	if p == nil || !p.WantsNetwork() || !s.InNetwork(p, n) {
		return nil
	}
	return &podFacts{labels: p.Labels, ports: p.Ports, addrs: usedIn(s, n, p)}
}

// textsOf is addresses as text.
func textsOf(addrs []netip.Addr) []string {
	var out []string
	for _, a := range addrs {
		out = append(out, a.String())
	}
	return out
}

// usedIn is the addresses that a pod holds and uses in a network.
func usedIn(s *cluster.State, n names.Network, p *cluster.Pod) []netip.Addr {
	if !n.Further() {
		return usedBy(s, p.Name)
	}
	var out []netip.Addr
	for a := range s.Attachments(p) {
		if a.Network == n {
			out = append(out, cluster.PodAddrs(s.In(n).PodNetworks[cluster.PodPort{Pod: p.Name, Interface: a.Interface}])...)
		}
	}
	return out
}

// put adds a pod to the selection, or removes it unless in.
func (s *Selection) put(pod cluster.Name, f podFacts, in bool, t *changed) {
	s.members.Put(pod, in)
	s.contribute(f, in, t)
}

// contribute adds what a pod of the selection has, its addresses and ports, or removes that unless in.
func (s *Selection) contribute(f podFacts, in bool, t *changed) {
	for i, a := range f.addrs {
		s.addresses[side(a.Is4())].change(f.texts[i], step(in))
	}
	for name, number := range f.ports.All() { // not all of named: policies may name thousands that no pod has
		if p := s.named[name]; p != nil && p.put(number, f, in) {
			t.written(s)
		}
	}
	t.selection(s)
}

// put adds what a pod contributes for which the name means a number, or removes it unless in. It is true when the name
// has gained or lost the number.
func (p *namedPort) put(number uint16, f podFacts, in bool) bool {
	n, is := p.numbers[number]
	if !is {
		n = &numbered{}
		p.numbers[number] = n
	}
	n.pods += step(in)
	for i, a := range f.addrs {
		n.addresses[side(a.Is4())].change(f.texts[i], step(in))
	}
	if n.pods == 0 {
		delete(p.numbers, number)
	}
	return !is || n.pods == 0
}

func step(in bool) int {
	if in {
		return 1
	}
	return -1
}
