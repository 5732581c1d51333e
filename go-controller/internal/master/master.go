package master

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/health"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/lease"
	"github.com/northbound-net/northbound/go-controller/internal/kube/source"
	"github.com/northbound-net/northbound/go-controller/internal/kube/write"
	"github.com/northbound-net/northbound/go-controller/internal/liveness"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbrecord"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/reconcile"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
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
	writer  *write.Writer

	mu       sync.Mutex
	leading  bool
	database *ovsdb.Database
	inSync   <-chan struct{}
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
	if err := ovsdb.Check(c.NB); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := &master{config: c, log: log, clients: clients, metrics: metrics.NewMaster(registry)}
	m.source = source.New(clients, kinds.All())
	m.writer = write.New(clients, kinds.All(), component, m.metrics, log)
	server, err := health.Listen(c.Metrics, registry, m.ready, log)
	if err != nil {
		return err
	}
	if started != nil {
		if err := started(ctx, &m.config); err != nil {
			return err
		}
		c = m.config
	}
	log.Info("master started", "metrics", server.Addr(), "northbound", c.NB.Addresses, "kubernetes", clients.Server,
		"subnets", fmt.Sprint(c.Cluster.Subnets))
	defer keepHeadroom()()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run(&wg, func() { server.Run(ctx) })
	if err := clients.WaitForServer(ctx, log); err != nil {
		return nil // ctx ended while waiting
	}
	if c.LeaderElect.Enabled {
		return m.elect(ctx)
	}
	m.lead(ctx)
	return nil
}

func run(wg *sync.WaitGroup, f func()) {
	wg.Add(1)
	go func() {
		defer wg.Done()
		f()
	}()
}

// ready is why the master does not do its work yet, nil when it does. A standby is ready.
func (m *master) ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !m.leading && m.config.LeaderElect.Enabled:
		return nil
	case !m.leading:
		return fmt.Errorf("the API server %s does not answer", m.clients.Server)
	case m.database.Session() == nil:
		return notConnected(m.database.Failure())
	}
	select {
	case <-m.inSync:
		return nil
	default:
		return errors.New("the Northbound database is not in sync yet")
	}
}

// lead does the master's work until ctx ends.
func (m *master) lead(ctx context.Context) {
	schema := nb.NewSchema()
	db := ovsdb.New(m.config.NB, schema, m.log)
	leases := lease.NewMonitor(m.clients, m.log)
	loop := reconcile.New(reconcile.Config{
		Core:     core.New(m.config.Cluster, schema, all.Translators(schema)),
		Database: db, Source: m.source, Writer: m.writer,
		Recorder: nbrecord.Records{Router: m.config.Cluster.RouterName},
		Monitor:  liveness.NewGateways(leases, m.metrics, m.log),
		Metrics:  m.metrics, Log: m.log, Verify: m.config.Verify,
	})
	m.mu.Lock()
	m.leading, m.database, m.inSync = true, db, loop.InSync()
	m.mu.Unlock()
	var wg sync.WaitGroup
	run(&wg, func() { m.source.Run(ctx) })
	run(&wg, func() { m.writer.Run(ctx) })
	run(&wg, func() { leases.Run(ctx) })
	// The database runs longer than the loop, so that a transaction in flight ends.
	dbCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	run(&wg, func() { db.Run(dbCtx) })
	run(&wg, func() {
		select {
		case <-loop.InSync():
			// The first lists are garbage now: return their memory.
			debug.FreeOSMemory()
			defer oneProcessor()()
			<-ctx.Done()
		case <-ctx.Done():
		}
	})
	loop.Run(ctx)
	stop()
	wg.Wait()
	m.log.Info("master stopped")
}

func notConnected(why error) error {
	if why == nil {
		return errors.New("the Northbound database is not connected yet")
	}
	return fmt.Errorf("the Northbound database is not connected: %w", why)
}

// elect leads while it holds the Lease. Losing the Lease ends the process: another leads now, and only a fresh start is
// surely in a right state. A leader that is told to stop releases the Lease after its last write.
func (m *master) elect(ctx context.Context) error {
	lock, err := m.lease()
	if err != nil {
		return err
	}
	le := m.config.LeaderElect
	electing, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	var mu sync.Mutex
	var led chan struct{} // closed when leading has ended; nil before it begins
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: le.Lease, RenewDeadline: le.Lease * 2 / 3, RetryPeriod: le.Lease / 7,
		ReleaseOnCancel: true, Name: le.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(holding context.Context) {
				mu.Lock()
				led = make(chan struct{})
				mu.Unlock()
				m.log.Info("leading", "lease", le.Namespace+"/"+le.Name)
				leading, cancel := context.WithCancel(holding)
				defer context.AfterFunc(ctx, cancel)()
				m.lead(leading)
				cancel()
				close(led)
				release()
			},
			OnStoppedLeading: func() {},
			OnNewLeader:      func(id string) { m.log.Info("leader elected", "identity", id) },
		},
	})
	if err != nil {
		return fmt.Errorf("preparing leader election: %w", err)
	}
	begun := func() chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		return led
	}
	defer context.AfterFunc(ctx, func() {
		if begun() == nil {
			release()
		}
	})()
	elector.Run(electing)
	lost := ctx.Err() == nil
	if l := begun(); l != nil {
		<-l
	}
	if lost {
		return fmt.Errorf("the lease %s/%s was lost", le.Namespace, le.Name)
	}
	return nil
}

func (m *master) lease() (*resourcelock.LeaseLock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("finding an identity for leader election: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: m.config.LeaderElect.Namespace, Name: m.config.LeaderElect.Name},
		Client:     m.clients.Kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s_%d", host, os.Getpid())},
	}, nil
}
