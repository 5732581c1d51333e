package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// replay measures a restart in which the API server only takes the patch of the pod that waits. Masters read the
// cluster from memory: elsewhere the API server has processors of its own.
func (s *scale) replay(ctx context.Context, out *scaled) (err error) {
	through, err := s.rig.StartReplay()
	if err != nil {
		return err
	}
	s.rig.Through = through
	defer func() {
		s.rig.Through = nil
		err = errors.Join(err, through.Close())
	}()
	if err := s.restarted(ctx); err != nil { // it tells the replay what masters ask for
		return err
	}
	before, err := s.again(ctx)
	if err != nil {
		return err
	}
	if err := s.addPod(ctx); err != nil {
		return err
	}
	if err := through.Record(ctx); err != nil {
		return err
	}
	if err := s.atRest(ctx); err != nil {
		return err
	}
	if out.replayed, err = s.startWithPod(ctx); err != nil {
		return err
	}
	if missed := through.Missed(); len(missed) > 0 {
		s.report.violate("%d pods: the API server answered the watches %q, want none", out.pods, missed)
	}
	if err := s.withoutNeed(ctx, before, out.pods, &out.replayed); err != nil {
		return err
	}
	s.rig.Through = nil
	return s.restarted(ctx) // with a master that hears of changes
}

// The API server is at rest when it takes less than atRestCPU in atRestFor. It collects garbage for long after a list.
const (
	atRestFor   = time.Second
	atRestCPU   = 50 * time.Millisecond
	atRestLimit = 2 * time.Minute
)

// atRest waits until the API server is at rest.
func (s *scale) atRest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, atRestLimit)
	defer cancel()
	for {
		before, err := spent(s.rig, nil)
		if err != nil {
			return err
		}
		if err := pause(ctx, atRestFor); err != nil {
			return fmt.Errorf("waiting until the API server is at rest: %w", err)
		}
		after, err := spent(s.rig, nil)
		if err != nil {
			return err
		}
		if after.sub(before).apiServer < atRestCPU {
			return nil
		}
	}
}

// restarted stops the master, and starts another one.
func (s *scale) restarted(ctx context.Context) error {
	if err := s.stopMaster(); err != nil {
		return err
	}
	_, err := s.startScale(ctx)
	return err
}
