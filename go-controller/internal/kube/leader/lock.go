package leader

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is the Lease as client-go's elector uses it. It tells its Leader what the elector does and sees.
type lock struct {
	*resourcelock.LeaseLock
	leader *Leader
}

// Get implements resourcelock.Interface. client-go goes on to lead until its deadline while another holds the Lease.
func (k *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := k.attempt(ctx)
	defer cancel()
	record, raw, err := k.LeaseLock.Get(ctx)
	k.leader.see(err)
	if err == nil && k.leader.led() && record.HolderIdentity != k.leader.identity {
		k.leader.lose(fmt.Errorf("the lease %s was lost: master %q holds it", k.Describe(), record.HolderIdentity))
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (k *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return k.write(ctx, func(ctx context.Context) error { return k.LeaseLock.Create(ctx, record) })
}

// Update implements resourcelock.Interface. The elector renews as often as a standby looks. Only a renewal after a
// seventh of the duration is sent.
func (k *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	k.leader.mu.Lock()
	fresh := time.Since(k.leader.renewed) < k.leader.config.Lease/7
	k.leader.mu.Unlock()
	if fresh {
		return nil
	}
	return k.write(ctx, func(ctx context.Context) error { return k.LeaseLock.Update(ctx, record) })
}

func (k *lock) write(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := k.attempt(ctx)
	defer cancel()
	sent := time.Now()
	if err := do(ctx); err != nil {
		return err
	}
	k.leader.renew(sent)
	return nil
}

// attempt limits one request, so that a dead connection leaves time for others before the deadline.
func (k *lock) attempt(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, k.leader.deadline/4)
}
