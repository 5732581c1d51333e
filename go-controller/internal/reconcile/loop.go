package reconcile

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// Source delivers what the API server says of the cluster.
type Source interface {
	// Signal delivers a value when Take has something. Values merge.
	Signal() <-chan struct{}
	// Synced is true when Take has returned everything that existed at the start, or will with its next call.
	Synced() bool
	// Take returns what happened since the last call.
	Take() ([]cluster.Event, []cluster.Problem)
	// Received is when the oldest event came that the last call of Take returned.
	Received() time.Time
}

// Writer writes annotations and Kubernetes Events. Its methods return at once; it retries by itself.
type Writer interface {
	Patch(p allocate.Patch)
	Report(p cluster.Problem)
}

// Recorder reads what only the Northbound database knows of the cluster.
type Recorder interface {
	// Begin reads a database after a new connection. While it fails, nothing is written; the events hold all the same.
	Begin(s *cluster.State, session *ovsdb.Session) ([]cluster.Event, []cluster.Problem, error)
	// Changed reads the rows of owners that changed.
	Changed(s *cluster.State, session *ovsdb.Session, owners []nb.Owner) ([]cluster.Event, []cluster.Problem)
	// Freed is what must not be given before some time, in seconds since 1970: it was freed lately.
	Freed(s *cluster.State, session *ovsdb.Session) map[names.Range]int64
	// Unclaimed is the addresses and subnets in the rows of owners whose objects do not claim them, or are gone.
	Unclaimed(s *cluster.State, session *ovsdb.Session, owners []nb.Owner) []names.Range
}

// Monitor finds out what can only be known by waiting: which gateways are down, and which addresses names have.
type Monitor interface {
	// Signal delivers a value when Take has something. Values merge.
	Signal() <-chan struct{}
	// Take returns what was found out since the last call.
	Take() []cluster.Event
	// Recall reads from the database what the monitor of an earlier master found out. It is called before each full pass.
	Recall(s *cluster.State, session *ovsdb.Session) []cluster.Event
	// Changed is called with changes in the cluster, and returns what to report.
	Changed(s *cluster.State, changes []cluster.Change) []cluster.Problem
}

// pace is the least time between the starts of two transactions, unless there is enough for a full one. A single change
// after a quiet time is sent at once. Under load, a transaction carries what gathered in that time: that costs northd
// and ovn-controller far less than the same rows one by one.
const pace = 40 * time.Millisecond

// Config is what a Loop works with.
type Config struct {
	Core     *core.Core // of an empty cluster
	Database *ovsdb.Database
	Source   Source
	Writer   Writer
	Recorder Recorder
	Monitor  Monitor
	Leader   Leader // nil: no other master is reckoned with, and no leader epoch is raised
	Adopt    bool   // take over the database of another cluster
	Metrics  *metrics.Master
	Log      *slog.Logger
	Verify   bool              // compare with a full translation whenever there is nothing else to do
	Options  map[string]string // of NB_Global: set once the database has everything, in each session
}

// Loop is the reconciler. Its fields belong to the goroutine of Run.
type Loop struct {
	Config
	born          time.Time
	dirty         *dirtySet
	session       *ovsdb.Session
	synced        bool      // the source is
	begun         bool      // the records of this session are known
	leads         bool      // the leader epoch in this session's database is ours
	epoch         uint64    // the last one that was raised here
	cluster       string    // the UID that was recorded with it
	noUID         bool      // that this cluster has no UID was logged
	raiseAt       time.Time // when to try again to raise it
	stopped       error     // why the loop must end
	fullPassBegun bool      // the full pass over this session has begun
	fullPassSince time.Time // when it began; zero once it has ended
	inFlight      bool
	sentAt        time.Time         // when the last transaction was started
	paused        bool              // the pause had not ended when step looked
	halves        [][]nb.Owner      // parts of rejected batches, to be sent first
	most          int               // owners in a transaction, after one had no answer; 0 for any
	verified      bool              // nothing was written since the last verification
	suspects      map[nb.Owner]bool // owners that the last verification found different
	verifyAt      time.Time         // when to look at them again; zero for as soon as there is nothing else to do
	refusal       string            // why the full pass can't begin; logged once
	guard         guard             // what the full pass does not remove yet
	results       chan result
	known         chan struct{}
	inSync        chan struct{}
	compared      atomic.Pointer[ovsdb.Session] // the session whose full pass has ended
	heldBack      atomic.Pointer[error]         // what waits for approval
	refused       atomic.Pointer[error]         // why nothing is written to the database
	failing       atomic.Pointer[error]         // why an owner's rows are not written
	marked        *ovsdb.Session                // the session whose database is marked as filled
	markAt        time.Time                     // when to try again to mark it
	patience      struct {                      // until when the mark of a session waits for owners that have failed
		session *ovsdb.Session
		end     time.Time
	}
	turned   atomic.Pointer[time.Time] // when the loop last turned
	measured measured
}

// New makes a Loop.
func New(c Config) *Loop {
	now := time.Now()
	l := &Loop{Config: c, born: now, dirty: newDirtySet(), results: make(chan result, 1), known: make(chan struct{}),
		inSync: make(chan struct{})}
	l.turned.Store(&now)
	return l
}

// result is how a transaction ended.
type result struct {
	session *ovsdb.Session
	raised  ovsdb.Epoch // what the transaction was to record; zero for others
	marks   bool        // the transaction was that of markFilled
	plans   []nb.Plan
	batch   *core.Batch
	causes  map[nb.Owner]cause
	since   map[nb.Owner]time.Time
	outcome ovsdb.Outcome
	err     error
	took    time.Duration
}

// Known is closed when everything that the API server listed at the start is known, and granted what it asks for.
func (l *Loop) Known() <-chan struct{} { return l.known }

// InSync is closed when the database holds what the cluster wants for the first time.
func (l *Loop) InSync() <-chan struct{} { return l.inSync }

// heartbeat is how often the loop turns although there is nothing to do.
const heartbeat = 10 * time.Second

// Compared tells whether every owner was compared with the database of a session.
func (l *Loop) Compared(s *ovsdb.Session) bool { return l.compared.Load() == s }

// Turned is when the loop last turned. What time has passed since then does not depend on the machine's clock.
func (l *Loop) Turned() time.Time { return *l.turned.Load() }

// Run works until ctx ends, and then waits for the transaction in flight. It returns ErrNotLeader as soon as another
// master leads.
func (l *Loop) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		l.turned.Store(new(time.Now()))
		select {
		case <-ctx.Done():
			if l.inFlight {
				l.finish(<-l.results)
			}
			return nil
		case <-l.Source.Signal():
		case <-l.Database.Signal():
		case <-l.Monitor.Signal():
		case <-timer.C:
		case r := <-l.results:
			l.finish(r)
		}
		l.takeSession()
		l.advance()
		l.lead(ctx)
		l.takeEvents()
		l.takeFindings()
		l.takeDirty()
		l.step(ctx)
		l.measure(time.Now())
		if l.stopped != nil && !l.inFlight {
			return l.stopped
		}
		timer.Reset(min(l.untilNext(), l.untilMeasured(), heartbeat))
	}
}

// untilNext is how long Run may wait for a signal. While nothing may be sent, only a signal can change that.
func (l *Loop) untilNext() time.Duration {
	next := time.Hour
	if l.session != nil && l.begun && !l.leads && !l.inFlight {
		return max(time.Until(l.raiseAt), time.Millisecond)
	}
	if l.session == nil || !l.fullPassBegun || l.inFlight {
		return next
	}
	if !l.verifyAt.IsZero() && l.dirty.size == 0 {
		next = max(time.Until(l.verifyAt), l.pause(), time.Millisecond)
	}
	if d, ok := l.untilFree(); ok {
		next = min(next, max(d, time.Millisecond))
	}
	if t, ok := l.dirty.nextAttempt(); ok {
		next = min(next, max(time.Until(t), time.Millisecond))
	}
	if l.paused && (l.dirty.size > 0 || l.unfinished()) {
		next = min(next, max(l.pause(), 0)) // the pause may have ended since step looked
	}
	return next
}

// unfinished is true when idle has something to do as soon as there is nothing to write.
func (l *Loop) unfinished() bool {
	return !l.fullPassSince.IsZero() || l.Verify && !l.verified && l.verifyAt.IsZero()
}

// pause is how long to gather changes before the next transaction.
func (l *Loop) pause() time.Duration {
	if len(l.halves) > 0 || l.dirty.size >= core.FullOps/2 {
		return 0
	}
	return pace - time.Since(l.sentAt)
}

// takeEvents applies what the API server said. Before the source is in sync nothing is granted: an object that is not
// known yet may claim it.
func (l *Loop) takeEvents() {
	ready := l.synced || l.Source.Synced()
	events, problems := l.Source.Take()
	l.reportAll(problems)
	changed := l.Core.Step(events)
	l.carryOut(changed)
	if len(events) > 0 {
		l.dirty.received(changed.Dirty, l.Source.Received())
	}
	if !ready || l.synced {
		return
	}
	s := l.Core.State
	if len(s.Namespaces) == 0 {
		// Every cluster has namespaces: an empty list is a fault of the API server.
		l.Log.Warn("the API server lists no namespaces: waiting, nothing is written")
		return
	}
	if l.session == nil {
		return // the database may have nodes that hold subnets
	}
	if l.begin(); !l.leads { // the nodes set up by hand have claims, too
		return // another master may grant the same
	}
	l.synced = true
	l.Log.Info("cluster known", "nodes", len(s.Nodes), "pods", len(s.Pods), "services", len(s.Services))
	l.keepFreed()
	l.carryOut(l.Core.Start())
	close(l.known)
}

// takeFindings applies what the monitor found out.
func (l *Loop) takeFindings() {
	if l.synced {
		l.carryOut(l.Core.Step(l.Monitor.Take()))
	}
}

// begin applies the records in the database of a new session, until that succeeds. ok is false while the database is
// refused; that and what is wrong with records is reported once.
func (l *Loop) begin() (ok bool) {
	if l.begun {
		return true
	}
	events, problems, err := l.Recorder.Begin(l.Core.State, l.session)
	if err == nil || err.Error() != l.refusal {
		l.reportAll(problems)
	}
	if err != nil && err.Error() != l.refusal {
		l.refusal = err.Error()
		l.Log.Error("northbound database is refused: nothing is written", "error", err)
	}
	l.refused.Store(&err)
	l.carryOut(l.Core.Step(events))
	l.begun = err == nil
	return l.begun
}

// Refused is why nothing is written to the database; nil when there is no such reason.
func (l *Loop) Refused() error {
	if err := l.refused.Load(); err != nil {
		return *err
	}
	return nil
}

// Failing is why an owner's rows are not as they should be although they were tried several times; nil when there is
// none such.
func (l *Loop) Failing() error {
	if err := l.failing.Load(); err != nil {
		return *err
	}
	return nil
}

// carryOut writes to Kubernetes what a step led to, and marks the owners that it concerns as dirty.
func (l *Loop) carryOut(r core.Result) {
	for _, p := range r.Patches {
		l.Writer.Patch(p)
	}
	l.reportAll(r.Problems)
	for _, o := range r.Dirty {
		l.dirty.add(o, clusterChange)
	}
	if len(r.Changes) == 0 {
		return
	}
	l.verified, l.measured.old = false, true
	if l.synced {
		l.reportAll(l.Monitor.Changed(l.Core.State, r.Changes))
	}
}

func (l *Loop) reportAll(problems []cluster.Problem) {
	for _, p := range problems {
		l.Metrics.Problems.WithLabelValues(p.Reason).Inc()
		l.Log.Warn("problem in an object", "object", p.Ref.String(), "reason", p.Reason, "message", p.Message)
		l.Writer.Report(p)
	}
}

// takeSession notices a new connection. It leads to a full pass.
func (l *Loop) takeSession() {
	s := l.Database.Session()
	if s == l.session {
		return
	}
	l.session, l.begun, l.leads, l.fullPassBegun, l.halves = s, false, false, false, nil
	l.dirty.forgive() // earlier attempts may have failed because the connection was lost
	l.suspects, l.refusal = nil, ""
	l.Metrics.InSync.Set(0)
}

// compareAll marks as dirty the owners that have rows, and those that want rows.
func (l *Loop) compareAll(there []nb.Owner) {
	for _, owners := range [][]nb.Owner{there, l.Core.Owners()} {
		for _, o := range owners {
			l.dirty.add(o, fullPass)
		}
	}
}

// takeDirty marks the owners that changes in the database concern as dirty. It starts the full pass once cluster and
// database are both known.
func (l *Loop) takeDirty() {
	if l.session == nil || !l.synced {
		return
	}
	if l.fullPassBegun {
		dirty := l.session.TakeDirty()
		for _, o := range dirty {
			l.dirty.add(o, databaseChange)
			if o.Kind == names.KindCluster {
				l.checkEpoch()
				l.guard.review = true
			}
		}
		if l.session.TakeCleared() {
			l.dirty.retrySoon(time.Now())
		}
		if len(dirty) > 0 {
			events, problems := l.Recorder.Changed(l.Core.State, l.session, dirty)
			l.reportAll(problems)
			l.carryOut(l.Core.Step(events))
		}
		return
	}
	if !l.begin() || !l.leads {
		return
	}
	l.session.TakeDirty()
	l.carryOut(l.Core.Step(l.Monitor.Recall(l.Core.State, l.session)))
	there := l.session.Owners()
	l.holdBack(there)
	l.compareAll(there)
	l.recordFreed()
	l.fullPassBegun, l.fullPassSince = true, time.Now()
	l.Metrics.FullPasses.Inc()
	l.Log.Info("full pass", "owners", l.dirty.size)
}
