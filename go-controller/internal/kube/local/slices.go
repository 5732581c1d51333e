package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/reflector"
)

// endpointSlices is the watch of EndpointSlices, which starts when somebody needs it.
//
// An agent needs all endpoints of the services that clients from outside reach locally. Of other services it needs
// those on its own node: what happens to their endpoints elsewhere is no change. A service may become one of the former
// at any time, so the endpoints of all slices are kept.
type endpointSlices struct {
	node   string
	watch  reflector.Watch
	all    *table[*cluster.EndpointSlice] // the slices of services that have endpoints on nodes
	needed chan struct{}                  // closed by need
	need   func()
	notify func()

	mu        sync.Mutex
	byService map[cluster.Name][]*cluster.EndpointSlice // those of all
	local     map[cluster.Name]bool                     // services that are reached locally
	wanted    map[cluster.Name]*cluster.EndpointSlice   // what this node needs of all
	locked    map[cluster.Name]lockedPod                // the node's pods that are in primary networks
	joined    annotation.GatewayJoins                   // the Node's annotation that has the addresses of exits
	exits     map[netip.Addr]netip.Addr                 // of locked: the exit's address, the zero value for none
	version   uint64                                    // differs after each change of wanted
	refused   error                                     // with which the API server last refused the list or the watch
}

// ErrNotAllowed tells that the API server does not let this agent read what it needs.
var ErrNotAllowed = errors.New("this agent may not list and watch endpointslices.discovery.k8s.io: grant it that, " +
	"such as by the ClusterRole system:node-proxier")

// errSlicesAwaited tells that there is no list yet.
var errSlicesAwaited = errors.New("the API server has not listed the endpoint slices yet")

func newEndpointSlices(node string, k kinds.Kind, notify func()) *endpointSlices {
	s := &endpointSlices{
		node: node, needed: make(chan struct{}), notify: notify, version: 1,
		byService: map[cluster.Name][]*cluster.EndpointSlice{}, local: map[cluster.Name]bool{},
		wanted: map[cluster.Name]*cluster.EndpointSlice{}, locked: map[cluster.Name]lockedPod{},
	}
	s.need = sync.OnceFunc(func() { close(s.needed) })
	decode := decodeWith[*cluster.EndpointSlice](k)
	s.all = newTable(func(obj runtime.Object) (*cluster.EndpointSlice, bool) {
		if slice, ok := obj.(*discoveryv1.EndpointSlice); ok {
			if now, ok := decode(strip(slice)); ok && now.Service != "" && len(now.Endpoints) > 0 {
				return now, true
			}
		}
		return nil, false
	}, equal, s.changed, notify)
	return s
}

func (w *Watcher) runSlices(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-w.slices.needed:
		w.slices.watch.Run(ctx, w.clients)
	}
}

// Endpoints are EndpointSlices by service: all slices of services that clients from outside reach locally
// (cluster.Service.LocalFromOutside); of other services the slices with endpoints on this node, with these endpoints
// only. Pods of this node that are in primary networks are endpoints if this node has an exit of their network (Exits).
// version differs after each change of them or of their exits. The first call starts the watch. The error says why they
// are not known; it is ErrNotAllowed if waiting won't help.
func (w *Watcher) Endpoints() (byService map[cluster.Name][]*cluster.EndpointSlice, version uint64, err error) {
	s := w.slices
	s.need()
	listed := s.all.isListed()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !listed && s.refused != nil:
		return nil, 0, fmt.Errorf("%w (%w)", ErrNotAllowed, s.refused)
	case !listed:
		return nil, 0, errSlicesAwaited
	}
	byService = map[cluster.Name][]*cluster.EndpointSlice{}
	for _, name := range slices.SortedFunc(maps.Keys(s.wanted), cluster.CompareNames) {
		slice := s.wanted[name]
		byService[serviceOf(slice)] = append(byService[serviceOf(slice)], slice)
	}
	return byService, s.version, nil
}

func serviceOf(s *cluster.EndpointSlice) cluster.Name {
	return cluster.Name{Namespace: s.Name.Namespace, Name: s.Service}
}

// changed takes in changes of all.
func (s *endpointSlices) changed(changes []change[*cluster.EndpointSlice]) {
	s.mu.Lock()
	before := s.version
	for _, c := range changes {
		if c.was != nil {
			service := serviceOf(c.was)
			rest := slices.DeleteFunc(s.byService[service], func(o *cluster.EndpointSlice) bool { return o == c.was })
			if s.byService[service] = rest; len(rest) == 0 {
				delete(s.byService, service)
			}
		}
		if c.now != nil {
			s.byService[serviceOf(c.now)] = append(s.byService[serviceOf(c.now)], c.now)
		}
		s.want(c.name, c.now)
	}
	changed := s.version != before
	s.mu.Unlock()
	if changed {
		s.notify()
	}
}

// strip is a slice with only what an agent reads of it: the endpoints that are on a node.
func strip(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	out := *s
	out.Endpoints = nil
	for _, e := range s.Endpoints {
		if e.NodeName != nil && *e.NodeName != "" && len(e.Addresses) > 0 {
			out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{
				Addresses: e.Addresses[:1:1], Conditions: e.Conditions, NodeName: e.NodeName,
			})
		}
	}
	return &out
}

// want brings wanted up to date with a slice, nil for one that is gone. Call it with mu.
func (s *endpointSlices) want(name cluster.Name, now *cluster.EndpointSlice) {
	was := s.wanted[name]
	if now != nil && !s.local[serviceOf(now)] {
		now = s.here(now)
	}
	if now != nil {
		now = s.reached(now)
	}
	switch {
	case was == nil && now == nil, was != nil && now != nil && was.Equal(now):
		return
	case now == nil:
		delete(s.wanted, name)
	default:
		s.wanted[name] = now
	}
	s.version++
}

// here is a slice with its endpoints on this node only, nil when there are none.
func (s *endpointSlices) here(all *cluster.EndpointSlice) *cluster.EndpointSlice {
	var mine []cluster.Endpoint
	for _, e := range all.Endpoints {
		if e.Node == s.node {
			mine = append(mine, e)
		}
	}
	if mine == nil {
		return nil
	}
	out := *all
	out.Endpoints = mine
	return &out
}

// follow takes in whether a service is reached locally.
func (s *endpointSlices) follow(service cluster.Name, local bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.local[service] == local {
		return
	}
	if delete(s.local, service); local {
		s.local[service] = true
	}
	for _, slice := range s.byService[service] {
		s.want(slice.Name, slice)
	}
}

// refuse remembers whether the API server refuses the watch, for those who ask for endpoints.
func (s *endpointSlices) refuse(err error) {
	s.mu.Lock()
	news := (s.refused == nil) != (err == nil)
	s.refused = err
	s.mu.Unlock()
	if news {
		s.notify()
	}
}
