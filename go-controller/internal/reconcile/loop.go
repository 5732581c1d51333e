package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/assign"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Source is where the cluster comes from.
type Source interface {
	// Signal delivers a value when there is something to take. Values merge.
	Signal() <-chan struct{}
	// Synced tells whether everything that existed at the start has been handed
	// to Take, or will be by the next call.
	Synced() bool
	// Take hands out what happened since the last call.
	Take() ([]cluster.Event, []cluster.Problem)
}

// Writer is where annotations and Kubernetes Events go. It returns at once and
// sees to retries by itself.
type Writer interface {
	Patch(p assign.Patch)
	Report(p cluster.Problem)
}

// Life tells which gateways are dead, sooner than their Nodes do.
type Life interface {
	// Signal delivers a value when Silent has changed. Values merge.
	Signal() <-chan struct{}
	// Follow says which nodes are gateways.
	Follow(nodes []string)
	// Presume has gateways be silent until something is heard of them.
	Presume(nodes []string)
	// Silent is the dead ones of those that are followed.
	Silent() map[string]bool
}

// maxOps is about how many operations a transaction holds.
const maxOps = 1000

// pace is the least time between the starts of two transactions, unless there
// is enough for a full one. A single change after a quiet time is sent at once;
// under load a transaction then carries what gathered in that time, which costs
// everyone behind the database (northd, ovn-controller) far less than the same
// rows one by one.
const pace = 40 * time.Millisecond

// Config is what a Loop works with.
type Config struct {
	State       *cluster.State // empty
	Ledger      *assign.Ledger // empty
	Translators translate.Set
	Schema      *nb.Schema
	Database    *ovsdb.Database
	Source      Source
	Writer      Writer
	Life        Life // nil: only the Nodes tell
	Metrics     *metrics.Master
	Log         *slog.Logger
	Verify      bool // compare with a full translation whenever there is nothing else to do
}

// Loop is the reconciler. Its fields belong to the goroutine of Run.
type Loop struct {
	Config
	dirty    *dirtySet
	session  *ovsdb.Session
	synced   bool      // the source is
	passed   bool      // the full pass over this session has begun
	passedAt time.Time // when; zero once it has ended
	inFlight bool
	sentAt   time.Time         // when the last transaction was started
	halves   [][]nb.Owner      // parts of refused batches, to be sent first
	verified bool              // nothing was written since the last verification
	suspects map[nb.Owner]bool // owners that the last verification found different
	verifyAt time.Time         // when to look at them again; zero for whenever there is nothing else
	router   string            // the cluster router's configured name
	refusal  string            // why the full pass can't begin; told once
	results  chan result
	inSync   chan struct{}
	unheard  map[string]bool // gateways that Life says are silent
	recalled bool            // which of them were when we started
}

// New makes a Loop.
func New(c Config) *Loop {
	return &Loop{Config: c, dirty: newDirtySet(), results: make(chan result, 1), inSync: make(chan struct{}), router: c.State.Config.RouterName}
}

// result is how a transaction ended.
type result struct {
	session *ovsdb.Session
	plans   []nb.Plan
	causes  map[nb.Owner]cause
	outcome ovsdb.Outcome
	err     error
	took    time.Duration
}

// InSync is closed once the database is equal to what the cluster wants for
// the first time.
func (l *Loop) InSync() <-chan struct{} { return l.inSync }

// Run works until ctx ends, and then waits for the transaction under way.
func (l *Loop) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var life <-chan struct{}
	if l.Life != nil {
		life = l.Life.Signal()
	}
	for {
		select {
		case <-ctx.Done():
			if l.inFlight {
				l.finish(<-l.results)
			}
			return
		case <-l.Source.Signal():
		case <-l.Database.Signal():
		case <-life:
		case <-timer.C:
		case r := <-l.results:
			l.finish(r)
		}
		l.takeSession()
		l.takeEvents()
		l.takeLife()
		l.takeDirty()
		l.step(ctx)
		timer.Reset(l.untilNext())
	}
}

// untilNext is how long until something is to be done without being signalled:
// nothing, as long as nothing may be sent.
func (l *Loop) untilNext() time.Duration {
	next := time.Hour
	if l.session == nil || !l.passed || l.inFlight {
		return next
	}
	if !l.verifyAt.IsZero() && l.dirty.size == 0 {
		next = max(time.Until(l.verifyAt), l.pause(), time.Millisecond)
	}
	if t, ok := l.dirty.nextAttempt(); ok {
		next = min(next, max(time.Until(t), time.Millisecond))
	}
	if p := l.pause(); p > 0 && (l.dirty.size > 0 || l.unfinished()) {
		next = min(next, p)
	}
	return next
}

// unfinished tells whether idle has something to do as soon as there is nothing
// to write.
func (l *Loop) unfinished() bool {
	return !l.passedAt.IsZero() || l.Verify && !l.verified && l.verifyAt.IsZero()
}

// pause is how long to gather before the next transaction.
func (l *Loop) pause() time.Duration {
	if len(l.halves) > 0 || l.dirty.size >= maxOps/2 {
		return 0
	}
	return pace - time.Since(l.sentAt)
}

// takeEvents applies what the API server said. Before the source is in sync
// nothing is assigned: a claim not yet heard must not be given to another.
func (l *Loop) takeEvents() {
	ready := l.synced || l.Source.Synced()
	events, problems := l.Source.Take()
	for _, p := range problems {
		l.report(p)
	}
	var changes []cluster.Change
	for _, e := range events {
		if c, ok := l.State.Apply(l.unheardOf(l.inherited(e))); ok {
			changes = append(changes, c)
		}
	}
	if !ready {
		return
	}
	if !l.synced {
		if len(l.State.Namespaces) == 0 {
			// Every cluster has namespaces: an empty list is a fault, not news.
			l.Log.Warn("the API server lists no namespaces: waiting, nothing is written")
			return
		}
		if l.session == nil && l.Database.Failure() == nil {
			return // it is being connected to, and may know of nodes that hold subnets
		}
		l.synced = true
		if l.session != nil {
			l.takeByHand() // now, so that everybody's claims are heard together
		}
		l.Log.Info("cluster known", "nodes", len(l.State.Nodes), "pods", len(l.State.Pods), "services", len(l.State.Services))
		changes = everything(l.State)
	}
	l.follow(changes)
}

// everything is the state as if each node, pod and service had just come.
func everything(s *cluster.State) []cluster.Change {
	var out []cluster.Change
	for _, n := range s.Nodes {
		out = append(out, cluster.Change{Ref: n.Ref(), New: n})
	}
	for _, p := range s.Pods {
		out = append(out, cluster.Change{Ref: p.Ref(), New: p})
	}
	for _, svc := range s.Services {
		out = append(out, cluster.Change{Ref: svc.Ref(), New: svc})
	}
	return out
}

// follow assigns what changes ask for and marks dirty whom they concern.
func (l *Loop) follow(changes []cluster.Change) {
	res := l.Ledger.Assign(l.State, changes)
	for _, p := range res.Patches {
		l.Writer.Patch(p)
	}
	for _, p := range res.Problems {
		l.report(p)
	}
	l.tellGateways(append(slices.Clone(changes), res.Changes...))
	for _, cs := range [][]cluster.Change{changes, res.Changes} {
		for _, c := range cs {
			for _, o := range l.Translators.Affected(l.State, c) {
				l.dirty.add(o, clusterChange)
			}
		}
	}
}

func (l *Loop) report(p cluster.Problem) {
	l.Metrics.Problems.WithLabelValues(p.Reason).Inc()
	l.Log.Warn("problem in an object", "object", p.Ref.String(), "reason", p.Reason, "message", p.Message)
	l.Writer.Report(p)
}

// takeSession notices a new connection: everything is to be looked at.
func (l *Loop) takeSession() {
	s := l.Database.Session()
	if s == l.session {
		return
	}
	l.session, l.passed, l.halves = s, false, nil
	l.dirty.forgive() // what failed before may have failed for want of a connection
	l.suspects, l.refusal = nil, ""
	l.Metrics.InSync.Set(0)
}

// takeDirty marks whom changes in the database concern, and starts the full
// pass once both sides are known.
func (l *Loop) takeDirty() {
	if l.session == nil || !l.synced {
		return
	}
	if l.passed {
		dirty := l.session.TakeDirty()
		for _, o := range dirty {
			l.dirty.add(o, databaseChange)
		}
		l.followByHand(dirty)
		return
	}
	l.State.Config.RouterName = l.router
	if err := Adopt(l.State, l.session); err != nil {
		if l.refusal != err.Error() {
			l.refusal = err.Error()
			l.Log.Error("northbound database is ambiguous: nothing is written", "error", err)
		}
		return
	}
	l.session.TakeDirty()
	l.follow(l.takeByHand())
	l.recallSilence()
	for _, o := range l.session.Owners() {
		l.dirty.add(o, fullPass)
	}
	for _, o := range l.Translators.Owners(l.State) {
		l.dirty.add(o, fullPass)
	}
	l.passed, l.passedAt = true, time.Now()
	l.Metrics.FullPasses.Inc()
	l.Log.Info("full pass", "owners", l.dirty.size)
}

// Adopt looks for a cluster router that is there already and puts it into the
// state: its UUID if it was not made by us, and its name unless one was asked
// for.
func Adopt(s *cluster.State, session *ovsdb.Session) error {
	uuid, err := session.ClusterRouter()
	if err != nil {
		return err
	}
	s.RouterUUID = uuid
	ours := names.IsUUIDOf(names.ClusterRow(nbdb.LogicalRouterTable, names.RoleRouter), uuid)
	if ours {
		s.RouterUUID = ""
	}
	r, ok := session.View().Row(nb.Ref{Table: nbdb.LogicalRouterTable, UUID: uuid}).(*nbdb.LogicalRouter)
	if ok && (!ours || !s.Config.RouterNamed) {
		s.Config.RouterName = r.Name
	}
	return nil
}
