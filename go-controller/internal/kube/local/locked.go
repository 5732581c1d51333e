package local

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// lockedAddrs is the addresses in the cluster's own network of a pod that is in a primary network. Such a pod has no
// gateways there.
func lockedAddrs(p Pod) []netip.Addr {
	n, err := annotation.ParsePodNetworks(p.Network)
	if err != nil || p.Released || len(n.Gateways) > 0 {
		return nil
	}
	return ipnet.Addrs(n.IPs)
}

// lock takes in a change of a pod of this node. An endpoint at a locked address is none: Services lead to such pods by
// exits of their networks, which this node's agent does not know.
func (s *endpointSlices) lock(was, now Pod) {
	if was.Network == now.Network && was.Released == now.Released {
		return
	}
	s.mu.Lock()
	before, version := maps.Clone(s.locked), s.version
	defer func() {
		changed := s.version != version
		s.mu.Unlock()
		if changed {
			s.notify()
		}
	}()
	for _, a := range lockedAddrs(was) {
		delete(s.locked, a)
	}
	for _, a := range lockedAddrs(now) {
		s.locked[a] = true
	}
	if maps.Equal(before, s.locked) {
		return
	}
	for _, all := range s.byService {
		for _, slice := range all {
			s.want(slice.Name, slice)
		}
	}
}

// reached is a slice without this node's endpoints at locked addresses, nil when there are no others.
func (s *endpointSlices) reached(slice *cluster.EndpointSlice) *cluster.EndpointSlice {
	locked := func(e cluster.Endpoint) bool { return e.Node == s.node && s.locked[e.Addr] }
	if !slices.ContainsFunc(slice.Endpoints, locked) {
		return slice
	}
	out := *slice
	if out.Endpoints = slices.DeleteFunc(slices.Clone(slice.Endpoints), locked); len(out.Endpoints) == 0 {
		return nil
	}
	return &out
}
