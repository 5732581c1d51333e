package local

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/reflector"
)

// endpointSlices is the watch of EndpointSlices, which starts when somebody needs it. It is a Sink.
//
// An agent needs all endpoints of the services that clients from outside reach locally. Of other services it needs
// those on its own node: what happens to their endpoints elsewhere is no change. A service may become one of the former
// at any time, so the endpoints of all slices are kept.
type endpointSlices struct {
	node   string
	watch  reflector.Watch
	decode func(runtime.Object) (*cluster.EndpointSlice, bool)
	needed chan struct{} // closed by need
	need   func()
	notify func()

	mu        sync.Mutex
	all       map[cluster.Name]*cluster.EndpointSlice
	byService map[cluster.Name][]cluster.Name
	local     map[cluster.Name]bool                   // services that are reached locally
	wanted    map[cluster.Name]*cluster.EndpointSlice // what this node needs of all
	version   uint64                                  // differs after each change of wanted
	listed    bool
	refused   error // what the API server said last, if it was that this agent may not list or watch
}

// ErrNotAllowed tells that the API server does not let this agent read what it needs.
var ErrNotAllowed = errors.New("this agent may not list and watch endpointslices.discovery.k8s.io: grant it that, " +
	"such as by the ClusterRole system:node-proxier")

// errSlicesAwaited tells that there is no list yet.
var errSlicesAwaited = errors.New("the API server has not listed the endpoint slices yet")

func newEndpointSlices(node string, k kinds.Kind, notify func()) *endpointSlices {
	s := &endpointSlices{
		node: node, decode: decodeWith[*cluster.EndpointSlice](k), needed: make(chan struct{}), notify: notify, version: 1,
		all: map[cluster.Name]*cluster.EndpointSlice{}, byService: map[cluster.Name][]cluster.Name{},
		local: map[cluster.Name]bool{}, wanted: map[cluster.Name]*cluster.EndpointSlice{},
	}
	s.need = sync.OnceFunc(func() { close(s.needed) })
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
// only. version differs after each change of them. The first call starts the watch. The error says why they are not
// known; it is ErrNotAllowed if waiting won't help.
func (w *Watcher) Endpoints() (byService map[cluster.Name][]*cluster.EndpointSlice, version uint64, err error) {
	s := w.slices
	s.need()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.listed && s.refused != nil:
		return nil, 0, fmt.Errorf("%w (%w)", ErrNotAllowed, s.refused)
	case !s.listed:
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

// Known implements reflector.Sink.
func (s *endpointSlices) Known() iter.Seq[cluster.Name] { return maps.Keys(s.all) }

// Decode implements reflector.Sink: it returns nil for a slice of no service, or with endpoints on no node.
func (s *endpointSlices) Decode(obj kinds.Object) (any, error) {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, fmt.Errorf("the watch of EndpointSlices delivers a %T", obj)
	}
	now, _ := s.decode(strip(slice))
	if now != nil && (now.Service == "" || len(now.Endpoints) == 0) {
		now = nil
	}
	return now, nil
}

// Put implements reflector.Sink.
func (s *endpointSlices) Put(came []reflector.Item, gone []cluster.Name, listed bool) error {
	s.mu.Lock()
	before, first := s.version, listed && !s.listed
	for _, it := range came {
		now, _ := it.Value.(*cluster.EndpointSlice)
		s.set(it.Name, now)
	}
	for _, name := range gone {
		s.set(name, nil)
	}
	s.listed = s.listed || listed
	changed := first || s.version != before
	s.mu.Unlock()
	if changed {
		s.notify()
	}
	return nil
}

// set keeps a slice, nil for one that is gone. Call it with mu.
func (s *endpointSlices) set(name cluster.Name, now *cluster.EndpointSlice) {
	was := s.all[name]
	switch {
	case now != nil && was != nil && now.Equal(was):
		return
	case was != nil && (now == nil || now.Service != was.Service):
		service := serviceOf(was)
		rest := slices.DeleteFunc(s.byService[service], func(n cluster.Name) bool { return n == name })
		if s.byService[service] = rest; len(rest) == 0 {
			delete(s.byService, service)
		}
	}
	if now == nil {
		delete(s.all, name)
	} else {
		if was == nil || was.Service != now.Service {
			s.byService[serviceOf(now)] = append(s.byService[serviceOf(now)], name)
		}
		s.all[name] = now
	}
	s.want(name)
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

// want brings wanted up to date with a slice. Call it with mu.
func (s *endpointSlices) want(name cluster.Name) {
	was, now := s.wanted[name], s.all[name]
	if now != nil && !s.local[serviceOf(now)] {
		now = s.here(now)
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
	for _, name := range s.byService[service] {
		s.want(name)
	}
}

// refuse remembers that the API server forbids the watch, for those who ask for endpoints.
func (s *endpointSlices) refuse(err error) {
	s.mu.Lock()
	first := s.refused == nil
	s.refused = err
	s.mu.Unlock()
	if first {
		s.notify()
	}
}
