package kubeio

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
	Services  []*cluster.Service                        // all, in no order
	Endpoints map[cluster.Name][]*cluster.EndpointSlice // as of Local.Endpoints; nil when no service needs them, or they are not ours to see
	Ranges    []netip.Prefix                            // as of Local.ServiceRanges
}

// Served watches until everything is known, and no longer. needy tells which
// services need endpoints. It is for who does not run otherwise.
func (l *Local) Served(ctx context.Context, needy func(*cluster.Service) bool) (Served, error) {
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { l.Run(watching) })
	for {
		s, missing := l.served(needy)
		if missing == nil {
			return s, nil
		}
		select {
		case <-l.Changed():
		case <-ctx.Done():
			return s, fmt.Errorf("%w: %w", missing, ctx.Err())
		}
	}
}

// served is what is known now, and what is missing.
func (l *Local) served(needy func(*cluster.Service) bool) (s Served, missing error) {
	var ok bool
	if s.Services, _, ok = l.Services(); !ok {
		return s, errors.New("the API server does not list the services: may this identity list and watch them?")
	}
	if s.Ranges, ok = l.ServiceRanges(); !ok {
		return s, errors.New("the API server does not list the ServiceCIDRs")
	}
	if slices.ContainsFunc(s.Services, needy) {
		var err error
		if s.Endpoints, _, err = l.Endpoints(); err != nil && !errors.Is(err, ErrNotAllowed) {
			return s, err
		}
	}
	return s, nil
}
