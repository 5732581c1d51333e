package local

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// lockedAddrs is the addresses in the cluster's own network of a pod that is in a primary network, and that network, as
// the pod's namespace knows it. Such a pod has no gateways in the cluster's own network.
func lockedAddrs(p Pod) (addrs []netip.Addr, in names.Network) {
	n, err := annotation.ParsePodNetworks(p.Network)
	if err != nil || p.Released || len(n.Gateways) > 0 {
		return nil, ""
	}
	primary := annotation.PodNetworksAt(p.Network, names.PrimaryInterface)
	for _, key := range slices.Sorted(maps.Keys(primary)) {
		if primary[key].Waiting == "" {
			in, _ = names.EntryOf(key)
		}
	}
	return ipnet.Addrs(n.IPs), in
}

// exitsIn is the addresses of this node's exit of a network, as the master keeps them in the Node's annotation. A
// network that namespaces share has an entry of its own, unless the namespace has a network of that name itself.
func exitsIn(joined annotation.GatewayJoins, in names.Network) []netip.Addr {
	_, name, _ := in.Definition()
	for _, n := range []names.Network{in, names.Defined("", name)} {
		if addrs, ok, err := joined.In(n.ExitEntry()); ok && err == nil {
			return ipnet.Addrs(addrs)
		}
	}
	return nil
}

// Exits is, by the address in the cluster's own network of each pod of this node that is in a primary network, the
// address of the network's exit on this node. Clients from outside reach the pod there, at the node ports of Services.
// It belongs to what Endpoints returns, and must not be modified.
func (w *Watcher) Exits() map[netip.Addr]netip.Addr {
	w.slices.mu.Lock()
	defer w.slices.mu.Unlock()
	return w.slices.exits
}

// lockedPod is a pod of this node that is in a primary network: what lockedAddrs says of it.
type lockedPod struct {
	addrs []netip.Addr
	in    names.Network
}

// lock takes in a change of a pod of this node. An endpoint at a locked address counts only if the node has an exit of
// the pod's network. Pods may have one address for a moment, when one of them goes: each has its own entry.
func (s *endpointSlices) lock(pod cluster.Name, was, now Pod) {
	if was.Network == now.Network && was.Released == now.Released {
		return
	}
	s.relead(func() {
		delete(s.locked, pod)
		if addrs, in := lockedAddrs(now); len(addrs) > 0 {
			s.locked[pod] = lockedPod{addrs, in}
		}
	})
}

// join takes in a change of the node's annotation that has the addresses of exits.
func (s *endpointSlices) join(joined string) {
	read := annotation.ReadGatewayJoins(joined) // it is long where there are many networks
	s.relead(func() { s.joined = read })
}

// relead makes a change of what exits depend on.
func (s *endpointSlices) relead(change func()) {
	s.mu.Lock()
	before := s.version
	change()
	s.lead()
	changed := s.version != before
	s.mu.Unlock()
	if changed {
		s.notify()
	}
}

// lead finds the exits anew. The slices with endpoints whose exit is another now have changed. Call it with mu.
func (s *endpointSlices) lead() {
	was, of := s.exits, map[names.Network][]netip.Addr{}
	s.exits = make(map[netip.Addr]netip.Addr, len(s.locked))
	for _, name := range slices.SortedFunc(maps.Keys(s.locked), cluster.CompareNames) {
		p := s.locked[name]
		if _, known := of[p.in]; !known {
			of[p.in] = exitsIn(s.joined, p.in)
		}
		for _, a := range p.addrs {
			s.exits[a], _ = ipnet.FirstOf(of[p.in], a.Is4())
		}
	}
	other := func(e cluster.Endpoint) bool {
		before, had := was[e.Addr]
		now, has := s.exits[e.Addr]
		return e.Node == s.node && (had != has || before != now)
	}
	if maps.Equal(was, s.exits) {
		return
	}
	for _, all := range s.byService {
		for _, slice := range all {
			if slices.ContainsFunc(slice.Endpoints, other) {
				s.want(slice.Name, slice)
				s.version++
			}
		}
	}
}

// reached is a slice without this node's endpoints at locked addresses that have no exit, nil when there are no others.
func (s *endpointSlices) reached(slice *cluster.EndpointSlice) *cluster.EndpointSlice {
	unreached := func(e cluster.Endpoint) bool {
		exit, locked := s.exits[e.Addr]
		return e.Node == s.node && locked && !exit.IsValid()
	}
	if !slices.ContainsFunc(slice.Endpoints, unreached) {
		return slice
	}
	out := *slice
	if out.Endpoints = slices.DeleteFunc(slices.Clone(slice.Endpoints), unreached); len(out.Endpoints) == 0 {
		return nil
	}
	return &out
}
