package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// ErrNotLeader says that this master must not write any more.
var ErrNotLeader = errors.New("this master does not lead any more")

// Leader tells whether this process is the master that writes.
type Leader interface {
	// Identity is this process among all masters that there ever were.
	Identity() string
	// Holds is why this process must not write any more, as far as it knows without asking; nil while it may.
	Holds() error
	// Holder asks which master may write now.
	Holder(ctx context.Context) (identity string, err error)
}

// raiseAgain is the pause after an attempt to raise the leader epoch that failed.
const raiseAgain = 500 * time.Millisecond

// lead raises the leader epoch in the database of a new session, and in one in which it is no longer ours: a database
// may be restored, and a cluster router deleted.
func (l *Loop) lead(ctx context.Context) {
	switch {
	case l.session == nil || l.leads || l.inFlight || l.stopped != nil:
		return
	case !l.begun || time.Now().Before(l.raiseAt):
		return
	case l.Leader == nil:
		l.leads = true
		return
	}
	seen, err := l.session.Epoch()
	if err != nil {
		l.begun = false // there are several cluster routers now
		return
	}
	me := l.Leader.Identity()
	if !l.sameCluster(seen) {
		return
	}
	if l.epoch > 0 && seen.Number > l.epoch && seen.Leader != me {
		l.stopped = fmt.Errorf("%w: master %s has raised the leader epoch from %d to %d", ErrNotLeader, seen.Leader,
			l.epoch, seen.Number)
		return
	}
	plans := l.clusterPlan()
	session, started := l.session, time.Now()
	next := ovsdb.Epoch{Number: max(seen.Number, l.epoch) + 1, Leader: me, UID: l.Core.State.UID()}
	l.inFlight = true
	go func() {
		r := result{session: session, raised: next, plans: plans, batch: &core.Batch{}}
		r.outcome, r.err = raise(ctx, l.Leader, session, seen, next, plans)
		r.took = time.Since(started)
		l.results <- r
	}()
}

// raise asks whether this master may write after seen was read, and before the transaction. When another master raised
// the epoch in between, the transaction fails. When none did, none has begun to write.
func raise(
	ctx context.Context, leader Leader, s *ovsdb.Session, seen, next ovsdb.Epoch, plans []nb.Plan,
) (ovsdb.Outcome, error) {
	switch holder, err := leader.Holder(ctx); {
	case err != nil:
		return ovsdb.Outcome{}, fmt.Errorf("asking which master leads: %w", err)
	case holder != next.Leader:
		return ovsdb.Outcome{}, fmt.Errorf("%w: master %q does", ErrNotLeader, holder)
	}
	return s.Raise(ctx, seen, next, plans)
}

// clusterPlan is the plan of the cluster's own rows while there is no cluster router: the router comes with the epoch.
func (l *Loop) clusterPlan() []nb.Plan {
	if uuid, err := l.session.ClusterRouter(); uuid != "" || err != nil {
		return nil
	}
	b := l.Core.NewBatch(l.session.View(), l.session.Claim)
	b.Add(nb.Owner{Kind: names.KindCluster, Name: names.ClusterOwner})
	b.Settle()
	return b.Plans
}

// raised handles the result of raising the leader epoch.
func (l *Loop) raised(r result) {
	switch {
	case errors.Is(r.err, ErrNotLeader):
		l.stopped = r.err
	case r.err != nil:
		l.raiseAt = time.Now().Add(raiseAgain)
		l.Log.Warn("the leader epoch is not raised: nothing is written", "error", r.err, "retry", raiseAgain)
	case r.session == l.session:
		l.leads, l.epoch, l.cluster = true, r.raised.Number, r.raised.UID
		l.Metrics.Epoch.Set(float64(l.epoch))
		l.Log.Info("leader epoch raised", "epoch", l.epoch, "cluster", l.cluster)
		if len(r.plans) > 0 {
			l.committed(r)
		} else {
			l.Metrics.Transactions.WithLabelValues("ok").Inc()
		}
	}
}

// checkEpoch stops writing when the cluster router's record of the leader epoch is not what this master wrote.
func (l *Loop) checkEpoch() {
	if l.Leader == nil || !l.leads {
		return
	}
	if e, err := l.session.Epoch(); err != nil || e.Number != l.epoch || e.Leader != l.Leader.Identity() {
		l.leads = false
	}
}

// mayWrite tells whether this master leads, and ends the loop when it is known that it does not any more.
func (l *Loop) mayWrite() bool {
	if l.Leader == nil || !l.leads {
		return l.leads
	}
	if err := l.Leader.Holds(); err != nil {
		l.stopped = fmt.Errorf("%w: %w", ErrNotLeader, err)
		return false
	}
	return l.sameCluster(ovsdb.Epoch{UID: l.cluster})
}

// sameCluster tells whether the database is this cluster's, as far as that is recorded. The database of another cluster
// ends the loop: all its rows would be deleted.
func (l *Loop) sameCluster(recorded ovsdb.Epoch) bool {
	is := l.Core.State.UID()
	switch {
	case recorded.UID == "" || recorded.UID == is:
		return true
	case is == "":
		l.raiseAt = time.Now().Add(raiseAgain)
		if !l.noUID {
			l.noUID = true
			l.Log.Warn("the API server has no namespace kube-system: waiting, nothing is written")
		}
		return false
	case l.Adopt && l.cluster == "":
		l.Log.Warn("the database of another cluster is adopted", "recorded", recorded.UID, "cluster", is)
		return true
	}
	l.stopped = recorded.Of(is)
	return false
}
