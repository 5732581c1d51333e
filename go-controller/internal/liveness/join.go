package liveness

import (
	"context"
	"slices"
	"sync"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// Monitor is what finds out one kind of thing.
type Monitor interface {
	Signal() <-chan struct{}
	Take() []cluster.Event
	Recall(s *cluster.State, session *ovsdb.Session) []cluster.Event
	Changed(s *cluster.State, changes []cluster.Change) []cluster.Problem
}

// Joined is several monitors as one. Its signals need Run.
type Joined struct {
	monitors []Monitor
	signal   chan struct{}
}

// Join joins monitors.
func Join(monitors ...Monitor) *Joined { return &Joined{monitors, make(chan struct{}, 1)} }

// Run passes signals on until ctx ends.
func (j *Joined) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, m := range j.monitors {
		running.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-m.Signal():
				}
				select {
				case j.signal <- struct{}{}:
				default:
				}
			}
		})
	}
	running.Wait()
}

// Signal delivers a value when Take has something. Values merge.
func (j *Joined) Signal() <-chan struct{} { return j.signal }

// Take returns what any of the monitors found out.
func (j *Joined) Take() []cluster.Event {
	return all(j, func(m Monitor) []cluster.Event { return m.Take() })
}

// Recall reads from the database what the monitors of an earlier master found out.
func (j *Joined) Recall(s *cluster.State, session *ovsdb.Session) []cluster.Event {
	return all(j, func(m Monitor) []cluster.Event { return m.Recall(s, session) })
}

// Changed tells all monitors of changes in the cluster.
func (j *Joined) Changed(s *cluster.State, changes []cluster.Change) []cluster.Problem {
	return all(j, func(m Monitor) []cluster.Problem { return m.Changed(s, changes) })
}

// all is what the monitors return, one after the other.
func all[T any](j *Joined, f func(Monitor) []T) []T {
	lists := make([][]T, len(j.monitors))
	for i, m := range j.monitors {
		lists[i] = f(m)
	}
	return slices.Concat(lists...)
}
