package extbridge

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/gateway"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// The time between comparisons without a change, the delay after a failure, and the
// least time between two comparisons.
const (
	keepInterval = 10 * time.Second
	keepRetry    = time.Second
	keepGap      = 20 * time.Millisecond
)

// Keeper holds the flows of one external bridge in place.
type Keeper struct {
	DB     *ovs.DB
	Kernel *hostnet.Netlink
	Flows  *ovs.Flows
	Query  Query
	Log    *slog.Logger
}

// Want is the flows that the bridge should have, given its present ports.
func (k *Keeper) Want() (hostplan.Flows, error) {
	e, err := Find(k.DB, k.Kernel, k.Query)
	if err != nil {
		return hostplan.Flows{}, err
	}
	if err := gateway.Fits(*e); err != nil {
		return hostplan.Flows{}, err
	}
	encaps, err := k.DB.ExternalID(names.OVSEncapType)
	if err != nil {
		return hostplan.Flows{}, err
	}
	encap, _, _ := strings.Cut(encaps, ",")
	guard, databases, err := k.drops()
	return gateway.Flows(*e, strings.TrimSpace(encap), guard, databases), err
}

// drops are what the agent or minion-init has had the kernel drop. Before that it is nothing.
func (k *Keeper) drops() (guard hostplan.AntiSpoof, databases hostplan.DatabaseDrop, err error) {
	have, err := k.Kernel.Read([]hostplan.Item{guard, databases})
	for _, i := range have {
		switch i := i.(type) {
		case hostplan.AntiSpoof:
			guard = i
		case hostplan.DatabaseDrop:
			databases = i
		}
	}
	return guard, databases, err
}

// Run works until ctx ends, and leaves the flows then. Once they are in place for the
// first time it calls ready. A failure before that is returned; a later one is logged,
// and Run tries again.
func (k *Keeper) Run(ctx context.Context, ready func()) error {
	if err := k.pass(ctx); err != nil {
		return err
	}
	ready()
	told := make(chan struct{}, 1)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		k.Flows.Watch(ctx, k.Query.Bridge, func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	k.loop(ctx, told)
	<-watched
	return nil
}

func (k *Keeper) loop(ctx context.Context, told <-chan struct{}) {
	wait, last := keepInterval, ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		case <-told:
		case <-k.DB.Changed():
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(keepGap): // what comes together is done together
		}
		wait = keepInterval
		err := k.pass(ctx)
		if err != nil && ctx.Err() == nil {
			wait = keepRetry
			if err.Error() != last {
				k.Log.Warn("the flows are not as they should be", "bridge", k.Query.Bridge, "error", err)
			}
			last = err.Error()
			continue
		}
		if last != "" {
			k.Log.Info("the flows are as they should be again", "bridge", k.Query.Bridge)
		}
		last = ""
	}
}

// pass compares and repairs once.
func (k *Keeper) pass(ctx context.Context) error {
	want, err := k.Want()
	if err != nil {
		return err
	}
	changes, err := k.Flows.Converge(ctx, want)
	for _, c := range changes {
		k.Log.Info("flow changed", "change", c.String())
	}
	return err
}
