package local

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Served is what a node needs to know to serve services.
type Served struct {
	Services  []*cluster.Service                        // as of Watcher.Services
	Endpoints map[cluster.Name][]*cluster.EndpointSlice // as of Watcher.Endpoints; nil when not needed or not allowed
	Exits     map[netip.Addr]netip.Addr                 // as of Watcher.Exits
	Ranges    []netip.Prefix                            // as of Watcher.ServiceRanges
	// APIServers is as of Watcher.APIServers; nil while no service has external addresses.
	APIServers []netip.Addr
}

// Served watches until everything is known, and no longer. It is for programs that do not Run the Watcher. needy tells
// which services need endpoints.
func (w *Watcher) Served(ctx context.Context, needy func(*cluster.Service) bool) (Served, error) {
	watching, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { w.Run(watching) })
	for {
		s, missing := w.served(needy)
		if missing == nil {
			return s, nil
		}
		select {
		case <-w.Changed():
		case <-ctx.Done():
			return s, fmt.Errorf("%w: %w", missing, ctx.Err())
		}
	}
}

// served is what is known now, and what is missing.
func (w *Watcher) served(needy func(*cluster.Service) bool) (s Served, missing error) {
	var ok bool
	if err := w.Refusals.Err(); err != nil {
		return s, err
	}
	if s.Services, _, ok = w.Services(); !ok {
		return s, errors.New("the API server does not list the services: may this identity list and watch them?")
	}
	if s.Ranges, ok = w.ServiceRanges(); !ok {
		return s, errors.New("the API server does not list the ServiceCIDRs")
	}
	if slices.ContainsFunc(s.Services, func(s *cluster.Service) bool { return len(s.ExternalIPs)+len(s.Ingress) > 0 }) {
		if s.APIServers, ok = w.APIServers(); !ok {
			return s, errors.New("the API server does not list its own addresses")
		}
	}
	if slices.ContainsFunc(s.Services, needy) {
		if !w.pods.isListed() {
			return s, errors.New("the API server does not list this node's pods")
		}
		if !w.nodes.isListed() {
			return s, errors.New("the API server does not list this node's Node")
		}
		var err error
		if s.Endpoints, _, err = w.Endpoints(); err != nil && !errors.Is(err, ErrNotAllowed) {
			return s, err
		}
		s.Exits = w.Exits()
	}
	return s, nil
}
