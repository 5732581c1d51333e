package master

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/health"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/leader"
	"github.com/northbound-net/northbound/go-controller/internal/kube/lease"
	"github.com/northbound-net/northbound/go-controller/internal/kube/source"
	"github.com/northbound-net/northbound/go-controller/internal/kube/write"
	"github.com/northbound-net/northbound/go-controller/internal/latency"
	"github.com/northbound-net/northbound/go-controller/internal/limits"
	"github.com/northbound-net/northbound/go-controller/internal/liveness"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbrecord"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/reconcile"
	"github.com/northbound-net/northbound/go-controller/internal/resolve"
	"github.com/northbound-net/northbound/go-controller/internal/tlsfiles"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
	"github.com/northbound-net/northbound/go-controller/internal/version"
)

// component is the name of the master in Events and requests.
const component = "northbound-master"

// master is the parts of a running master.
type master struct {
	config  config.Master
	log     *slog.Logger
	clients *client.Clients
	metrics *metrics.Master
	source  *source.Source
	leader  *leader.Leader
	garbage *collector

	mu       sync.Mutex
	leading  bool
	database *ovsdb.Database
	loop     *reconcile.Loop
}

// Run works until ctx ends. It returns an error only when it can't start at all; it waits for servers that are not up
// yet. started, if not nil, is called when everything is set up that can fail at once. It may complete the
// configuration of the cluster.
func Run(ctx context.Context, c config.Master, log *slog.Logger,
	started func(context.Context, *config.Master) error) error {
	clients, err := client.New(c.Kubernetes, component)
	if err != nil {
		return err
	}
	if err := errors.Join(ovsdb.Check(c.NB), refuseTCP(c, log)); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := &master{config: c, log: log, clients: clients, metrics: metrics.NewMaster(registry)}
	m.source = source.New(clients, kinds.Within(c.Cluster.Policies))
	m.source.Refusals.Count, m.source.Refusals.Log = m.metrics.KindsRefused, log
	if m.leader, err = leader.New(clients, c.LeaderElect, log); err != nil {
		return err
	}
	server, err := health.Listen(c.Metrics, registry, health.Probes{Alive: m.alive, Ready: m.ready}, log)
	if err != nil {
		return err
	}
	if started != nil {
		if err := started(ctx, &m.config); err != nil {
			return err
		}
		c = m.config
	}
	log.Info("master started", "version", version.Get().Version, "metrics", server.Addr(),
		"northbound", c.NB.Addresses, "kubernetes", clients.Server, "subnets", fmt.Sprint(c.Cluster.Subnets))
	m.garbage = keepHeadroom()
	defer m.garbage.stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run(&wg, func() { limits.Keep(ctx, log) })
	run(&wg, func() { m.garbage.releaseAtRest(ctx, restTime) })
	run(&wg, func() { server.Run(ctx) })
	run(&wg, func() {
		tlsfiles.WatchExpiry(ctx, c.NB.Keys, func(part string, at float64) {
			m.metrics.Expiry.WithLabelValues("nb", part).Set(at)
		})
	})
	if err := clients.WaitForServer(ctx, log); err != nil {
		return nil // ctx ended while waiting
	}
	m.warnOfOldPolicies(ctx)
	return m.leader.Run(ctx, m.lead)
}

// warnOfOldPolicies warns if the API server has kinds of policies that look as if they were in effect.
func (m *master) warnOfOldPolicies(ctx context.Context) {
	switch old, err := m.clients.OldPolicyKinds(ctx); {
	case err != nil:
		m.log.Warn("cannot tell whether there are old kinds of policies", "error", err)
	case len(old) > 0:
		m.log.Warn("policies of these kinds are ignored: use ClusterNetworkPolicy", "kinds", old)
	}
}

// refuseTCP is the error that the Northbound database has a tcp: address. If that is allowed, it is a warning.
func refuseTCP(c config.Master, log *slog.Logger) error {
	err := config.RefuseTCP("--nb-address", c.NB.Addresses)
	if err != nil && c.AllowTCP {
		log.Warn("the Northbound database is open to whoever reaches it", "error", err)
		return nil
	}
	return err
}

func run(wg *sync.WaitGroup, f func()) {
	wg.Add(1)
	go func() {
		defer wg.Done()
		f()
	}()
}

// A loop that has not turned for turnWithin does not do its work. After stuckAfter it will not do it any more.
const (
	turnWithin = 30 * time.Second
	stuckAfter = 2 * time.Minute
)

// alive is why the process must be started again, nil when it need not.
func (m *master) alive() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leading {
		return turning(m.loop.Turned(), stuckAfter)
	}
	return nil
}

// turning is an error when the loop last turned longer ago than within.
func turning(last time.Time, within time.Duration) error {
	if since := time.Since(last); since > within {
		return fmt.Errorf("the loop has not turned for %s", since.Round(time.Second))
	}
	return nil
}

// ready is why the master does not do its work, nil when it does. A standby's is to look at the Lease.
func (m *master) ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !m.leading && m.config.LeaderElect.Enabled:
		return m.leader.Watches()
	case !m.leading:
		return fmt.Errorf("the API server %s does not answer", m.clients.Server)
	}
	session := m.database.Session()
	if session == nil {
		return notConnected(m.database.Failure())
	}
	if err := m.source.Refusals.Err(); err != nil {
		return err
	}
	switch {
	case m.loop.HeldBack() != nil:
		return m.loop.HeldBack()
	case m.loop.Refused() != nil:
		return m.loop.Refused()
	case !m.loop.Compared(session):
		return errors.New("the Northbound database is not in sync yet")
	}
	if err := turning(m.loop.Turned(), turnWithin); err != nil {
		return err
	}
	return cmp.Or(m.loop.Failing(), m.source.Behind())
}

// lead does the master's work until ctx ends, or until another master leads.
func (m *master) lead(ctx context.Context) error {
	schema := nb.NewSchema()
	db := ovsdb.New(m.config.NB, schema, m.log)
	leases := lease.NewMonitor(m.clients, m.log)
	resolver := resolve.New(resolve.Options{
		Client:   resolve.Client{Servers: m.config.DomainNames.Servers, ResolvConf: resolvConf},
		Families: m.config.Cluster.Families(), Grace: m.config.DomainNames.Grace, Metrics: m.metrics, Log: m.log,
	})
	monitor := liveness.Join(liveness.NewGateways(leases, m.metrics, m.log), liveness.NewNames(resolver))
	writer := write.New(m.clients, kinds.All(), component, m.metrics, m.log) // it has goroutines, which end with Run
	writer.While(m.leader.Holds)
	loop := reconcile.New(reconcile.Config{
		Core:     core.New(m.config.Cluster, schema, all.Translators(schema)),
		Database: db, Source: m.source, Writer: writer,
		Recorder: nbrecord.Records{Router: m.config.Cluster.RouterName},
		Monitor:  monitor, Leader: m.leader, Adopt: m.config.Adopt,
		Metrics: m.metrics, Log: m.log, Verify: m.config.Verify, Options: globalOptions(m.config),
	})
	m.source.Existed = func(ctx context.Context, k cluster.Kind) bool { return hasOwners(ctx, db.Session, k) }
	m.mu.Lock()
	m.leading, m.database, m.loop = true, db, loop
	m.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	run(&wg, func() { m.source.Run(ctx) })
	run(&wg, func() { writer.Run(ctx) })
	run(&wg, func() { leases.Run(ctx) })
	run(&wg, func() { resolver.Run(ctx) })
	run(&wg, func() { monitor.Run(ctx) })
	// The database runs longer than the loop, so that a transaction in flight ends.
	dbCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	run(&wg, func() { db.Run(dbCtx) })
	run(&wg, func() { m.started(ctx, loop) })
	run(&wg, func() { m.measureOVN(ctx, db, loop) })
	m.metrics.Leader.Set(1)
	err := loop.Run(ctx)
	m.metrics.Leader.Set(0)
	cancel()
	stop()
	wg.Wait()
	m.log.Info("master stopped")
	return err
}

// started does what follows from the steps of a start.
func (m *master) started(ctx context.Context, loop *reconcile.Loop) {
	select {
	case <-loop.Known():
		m.garbage.read()
	case <-ctx.Done():
		return
	}
	select {
	case <-loop.InSync():
		m.garbage.release() // the first lists are garbage
		m.publish(ctx)
	case <-ctx.Done():
	}
}

// measureOVN measures how long OVN takes to follow, while the database has all rows.
func (m *master) measureOVN(ctx context.Context, db *ovsdb.Database, loop *reconcile.Loop) {
	if m.config.OVNLatency == 0 {
		return
	}
	probe := latency.Probe{Every: m.config.OVNLatency, Metrics: m.metrics, Log: m.log, Database: func() latency.Database {
		if s := db.Session(); s != nil && loop.Compared(s) {
			return s
		}
		return nil
	}}
	probe.Run(ctx)
}

// resolvConf names the servers of DNS of this host.
const resolvConf = "/etc/resolv.conf"

func notConnected(why error) error {
	if why == nil {
		return errors.New("the Northbound database is not connected yet")
	}
	return fmt.Errorf("the Northbound database is not connected: %w", why)
}

// globalOptions is what the configuration wants of NB_Global's options.
func globalOptions(c config.Master) map[string]string {
	if !c.ACLConntrack {
		return nil
	}
	return map[string]string{names.ACLConntrackOption: "true"}
}
