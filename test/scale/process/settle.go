package process

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Idle is the CPU time that an idle process spends at most between two measurements that Settle compares.
const Idle = 3 * time.Millisecond

const (
	settlePoll  = 40 * time.Millisecond
	settlePolls = 5 // between the measurements that are compared
)

// Settle measures until idle says of two measurements, the later one first, that nothing is left to compute. It returns
// the last measurement.
func Settle[T any](ctx context.Context, spent func() (T, error), idle func(now, before T) bool) (T, error) {
	var last []T
	for {
		now, err := spent()
		if err != nil {
			return now, err
		}
		last = append(last, now)
		if n := len(last) - 1 - settlePolls; n >= 0 && idle(now, last[n]) {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return now, fmt.Errorf("waiting until nothing is left to compute: %w", ctx.Err())
		case <-time.After(settlePoll):
		}
	}
}

// Median is the median of a figure of samples, of which there is at least one.
func Median[S any](all []S, figure func(S) time.Duration) time.Duration {
	values := make([]time.Duration, len(all))
	for i, s := range all {
		values[i] = figure(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
