package bench

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/northbound-net/northbound/test/scale/attach"
	"github.com/northbound-net/northbound/test/scale/load"
)

// phaseFlows measures the time from an endpoint's change to the flows of a real node, with as many services as phase
// services creates at once.
const phaseFlows = "flows"

// flowInterval is the time between changes. OVN needs so long for one that changes at the rate of the other phases
// would queue.
const flowInterval = 250 * time.Millisecond

// flowChanges is how many endpoints change.
const flowChanges = 100

func runFlows(ctx context.Context, c Config, r *Report, progress io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, phaseTimeout)
	defer cancel()
	bed, err := attach.New(ctx, "bench", c.Bin, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	seen, err := load.ObserveServices(bed.NBSocket())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seen.Close()) }()
	there := load.NewTracker("the flows")
	watch, err := bed.WatchFlows(there)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, watch.Close()) }()
	began := time.Now()
	addresses, err := bed.CreateServices(ctx, phaseFlows, c.Services)
	if err != nil {
		return err
	}
	created := time.Since(began)
	flowing, err := waitFlows(ctx, there, addresses)
	if err != nil {
		return err
	}
	r.add(phaseFlows, "services made at once: until all are in the node's flows", "%.0f services/s (%s)",
		perSecond(c.Services, flowing.Sub(began)), seconds(flowing.Sub(began))).
		beside("made in %s; %d services with %d endpoints", seconds(created), c.Services, load.Backends)
	changed := load.NewTracker("the changed flows")
	watch.To(changed)
	changes := min(flowChanges, c.Services)
	samples, err := steady(ctx, changes, flowInterval, func(i int) (sent, answered time.Time, err error) {
		return bed.SetBackends(ctx, phaseFlows, i, load.Backends-1)
	})
	if err != nil {
		return err
	}
	if _, err := waitFlows(ctx, changed, addresses[:changes]); err != nil {
		return err
	}
	request, written, err := ways(samples, seen.Short, func(i int) load.Name {
		return load.Name{Namespace: phaseFlows, Name: load.ServiceName(i)}
	})
	if err != nil {
		return err
	}
	_, whole, err := ways(samples, changed, func(i int) load.Name { return load.Name{Name: addresses[i]} })
	if err != nil {
		return err
	}
	r.add(phaseFlows, "an endpoint goes: request to the node's flows, p50 p95 p99", "%s", percentiles(whole)).
		beside("request to Northbound %s; the request itself %s; %d changes", percentiles(written), percentiles(request),
			changes)
	return nil
}

// waitFlows waits until all addresses were seen, and returns when the last one was.
func waitFlows(ctx context.Context, t *load.Tracker, addresses []string) (last time.Time, err error) {
	for _, a := range addresses {
		at, err := t.WaitName(ctx, load.Name{Name: a})
		if err != nil {
			return last, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}
