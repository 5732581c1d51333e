package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/northbound-net/northbound/test/scale/load"
)

const (
	steadyInterval = 50 * time.Millisecond // between pods or changes: 20 a second
	steadyPods     = 300                   // for 15 seconds
	steadyChanges  = 300                   // of endpoints, also for 15 seconds
)

// sample is the timing of a request.
type sample struct {
	sent, answered time.Time
	err            error
}

// latency measures how long a pod takes while pods arrive at a steady rate.
func (b *bench) latency(ctx context.Context) error {
	const namespace = "latency"
	if err := b.prepare(ctx, namespace); err != nil {
		return err
	}
	before, err := spent(b.rig, b.master)
	if err != nil {
		return err
	}
	samples, err := steady(ctx, steadyPods, steadyInterval, func(i int) (sent, answered time.Time, err error) {
		return load.CreatePod(ctx, b.rig.Kube, namespace, i, b.Nodes)
	})
	if err != nil {
		return err
	}
	if _, _, err := b.done(ctx, namespace, steadyPods); err != nil {
		return err
	}
	b.pods += steadyPods
	after, err := spent(b.rig, b.master)
	if err != nil {
		return err
	}
	name := func(i int) load.Name { return load.Name{Namespace: namespace, Name: load.PodName(i)} }
	created, annotated, err := ways(samples, b.observer.Annotated, name)
	if err != nil {
		return err
	}
	_, ported, err := ways(samples, b.observer.Ported, name)
	if err != nil {
		return err
	}
	request := fmt.Sprintf("the create request itself %s", percentiles(created))
	b.report.add(namespace, "create to annotation, p50 p95 p99", "%s", percentiles(annotated)).beside("%s", request)
	b.report.add(namespace, "create to Northbound, p50 p95 p99", "%s", percentiles(ported)).beside("%s", request)
	took := after.sub(before)
	b.report.disturbed(namespace, took)
	b.report.add(namespace, "CPU time of the master", "%s a pod", perPod(took.master, steadyPods)).beside("%s", took)
	return nil
}

// steady sends n requests, one in each interval, however long each takes.
func steady(ctx context.Context, n int, interval time.Duration, request func(i int) (sent, answered time.Time,
	err error)) ([]sample, error) {
	samples := make([]sample, n)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range samples {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		wg.Go(func() {
			s := &samples[i]
			s.sent, s.answered, s.err = request(i)
		})
	}
	wg.Wait()
	var errs []error
	for _, s := range samples {
		errs = append(errs, s.err)
	}
	return samples, errors.Join(errs...)
}

// percentiles returns the 50th, 95th and 99th percentile.
func percentiles(d []time.Duration) string {
	at := func(p int) string { return milliseconds(percentile(d, p)) }
	return at(50) + ", " + at(95) + ", " + at(99)
}

// percentile returns the smallest sample that is not exceeded by p per cent of all samples. It sorts d.
func percentile(d []time.Duration, p int) time.Duration {
	slices.Sort(d)
	return d[(len(d)*p+99)/100-1]
}
