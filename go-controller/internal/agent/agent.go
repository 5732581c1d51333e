package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/northbound-net/northbound/go-controller/internal/cni/server"
	"github.com/northbound-net/northbound/go-controller/internal/cniconf"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/before"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// The intervals and limits of the agent's work: the time between passes without a
// change, the least time between two passes, the first and the longest delay after a
// failed pass, and the time that a pass, its patch of the Node, and an attempt to reach
// Open vSwitch may take.
const (
	tickInterval = 10 * time.Second
	passGap      = 20 * time.Millisecond
	firstRetry   = 500 * time.Millisecond
	lastRetry    = 5 * time.Second
	passTimeout  = 30 * time.Second
	patchTimeout = 5 * time.Second
	openRetry    = time.Second
	stuckAfter   = 2 * time.Minute // no pass has begun for so long: none will
)

// Agent is one node's daemon.
type Agent struct {
	config  config.Node
	kube    *local.Watcher
	log     *slog.Logger
	metrics *metrics.Node
	gate    *gate

	ovs    *ovs.DB
	flows  *ovs.Flows
	kernel *hostnet.Netlink
	kicked chan struct{} // something has changed
	wanted *sync.Map     // names of links and destinations of routes whose events matter
	memory passMemory    // what the last pass knew; the loop's own
	health *healthChecks // the loop's own, too

	life       context.Context // of Run
	parts      sync.WaitGroup  // what Run has started
	diagnosis  diagnosis       // of the management port
	controller diagnosis       // of ovn-controller
	outage     *outage         // what is wrong with the gateway
	before     *before.Sysctls // what `ovnkube cleanup node` puts back
	isGateway  atomic.Bool     // whether the node is to be one
	reported   atomic.Bool     // the Node says of its gateway what this agent found
	found      bool            // ovn-controller was, in its run directory; measureDaemons' own
	noOVS      error           // that the database of Open vSwitch does not answer

	turned atomic.Pointer[time.Time]  // when the loop last turned; nil before it runs
	denied map[ovs.DenyingFlow]uint64 // what ACLs had dropped, nil at first; measureDaemons' own
}

// New prepares an agent. Its metrics go to registry.
func New(c config.Node, kube *local.Watcher, registry prometheus.Registerer, log *slog.Logger) (*Agent, error) {
	if err := errors.Join(c.Validate(), refuseTCP(c, log, "--sb-address", c.SBAddresses())); err != nil {
		return nil, err
	}
	a := &Agent{
		config: c, kube: kube, log: log, metrics: metrics.NewNode(registry), gate: newGate(),
		flows: ovs.NewFlows(c.OVSAddress), kicked: make(chan struct{}, 1), wanted: &sync.Map{},
		outage: newOutage(), noOVS: fmt.Errorf("the Open vSwitch database at %s does not answer: is ovsdb-server running?",
			c.OVSAddress),
		memory: passMemory{optional: map[string]attempt{}},
	}
	kube.Refusals.Count, kube.Refusals.Log = a.metrics.KindsRefused, log
	a.health = newHealthChecks(log, a.metrics.HealthPortsFailed)
	return a, nil
}

// Ready is nil when the node is set up, pods can be served, and the API server tells of changes. Otherwise it says what
// is missing.
func (a *Agent) Ready() error { return cmp.Or(a.gate.Missing(), a.kube.Behind()) }

// Alive is why the process must be started again: its loop stands still. It is nil otherwise.
func (a *Agent) Alive() error {
	if turned := a.turned.Load(); turned != nil {
		if since := time.Since(*turned); since > stuckAfter { // whatever the machine's clock says
			return fmt.Errorf("the agent has begun no pass for %s", since.Round(time.Second))
		}
	}
	return nil
}

// Run works until ctx ends. An error means that it could not start, or not go on.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.life = ctx
	defer a.parts.Wait()
	defer cancel()

	kernel, err := hostnet.NewNetlink()
	if err != nil {
		return err
	}
	defer kernel.Close()
	a.kernel = kernel
	if a.before, err = before.Open(filepath.Join(a.config.CNISocketDir, before.FileName)); err != nil {
		a.log.Warn("what this node's sysctls were before is lost: they will stay as they are", "node", a.config.Name,
			"error", err)
	}
	defer a.health.close()
	a.parts.Go(func() { a.kube.Run(ctx) })
	if err := a.openOVS(ctx); err != nil {
		return ignoreCancel(ctx, err)
	}
	defer a.ovs.Close()
	if err := a.checkRemote(); err != nil {
		return err
	}

	listener, err := server.Listen(a.config.CNISocket())
	if err != nil {
		return err
	}
	var serveErr error
	a.parts.Go(func() {
		defer cancel()
		serveErr = a.cniServer().Serve(ctx, listener)
	})
	a.parts.Go(func() { a.watchKernel(ctx) })
	a.parts.Go(func() { a.watchDaemons(ctx) })
	a.parts.Go(func() { a.measureDaemons(ctx) })
	a.parts.Go(func() { a.measureExpiry(ctx) })
	a.parts.Go(func() { a.kube.KeepLease(ctx, a.isAliveGateway) })
	a.parts.Go(func() { a.forward(ctx, a.ovs.Changed(), a.kube.Changed()) })
	a.loop(ctx)
	a.parts.Wait()
	return serveErr
}

// checkRemote refuses tcp: addresses of the Southbound database that others have set, and that this agent leaves alone.
func (a *Agent) checkRemote() error {
	remote, err := a.ovs.ExternalID(names.OVSRemote)
	if err != nil || a.config.SBAddress != "" {
		return nil // without the row, no address is set yet
	}
	return refuseTCP(a.config, a.log, "external_ids:"+names.OVSRemote, config.ParseRemotes(remote))
}

// refuseTCP is the error that the Southbound database has a tcp: address. If that is allowed, it is a warning.
func refuseTCP(c config.Node, log *slog.Logger, where string, addresses []string) error {
	err := config.RefuseTCP(where, addresses)
	if err != nil && c.AllowTCP {
		log.Warn("the Southbound database is open to whoever reaches it", "error", err)
		return nil
	}
	return err
}

func (a *Agent) cniServer() *server.Server {
	return &server.Server{
		Switch: a.ovs, Pods: a.kube, Node: a.gate, Observer: observer{a.metrics}, Log: a.log, Binding: a.ovs.Binding,
		MultusFirst: func() bool { return cniconf.MultusFirst(a.config.CNIConfDir) },
	}
}

// openOVS connects to Open vSwitch, however long that takes. Meanwhile it keeps the
// parts of the node that need no Open vSwitch.
func (a *Agent) openOVS(ctx context.Context) error {
	told := ""
	for {
		db, err := ovs.Open(ctx, a.config.OVSAddress, a.log)
		if err == nil {
			a.ovs = db
			a.gate.watch(a.connected)
			return nil
		}
		host := a.passHost(ctx)
		a.answerHealth(host.served, false)
		err = errors.Join(err, host.err())
		a.gate.miss(&server.LimitedError{Reason: err})
		if err.Error() != told {
			told = err.Error()
			a.log.Warn("waiting for Open vSwitch", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(openRetry):
		}
	}
}

// connected is the error that Open vSwitch does not answer, nil when it does.
func (a *Agent) connected() error {
	if a.ovs.Connected() {
		return nil
	}
	return a.noOVS
}

// watchKernel starts a pass for each relevant event of the kernel. When events were
// lost it subscribes again.
func (a *Agent) watchKernel(ctx context.Context) {
	for ctx.Err() == nil {
		watch, cancel := context.WithCancelCause(ctx)
		filter := hostnet.Filter{
			Link: func(name string) bool { _, ok := a.wanted.Load(name); return ok },
			Dest: func(dest netip.Prefix) bool { _, ok := a.wanted.Load(dest); return ok },
		}
		err := hostnet.Watch(watch, filter, a.kick, func(err error) { cancel(err) })
		if err != nil {
			cancel(err)
		}
		a.kick()
		<-watch.Done()
		if cause := context.Cause(watch); ctx.Err() == nil {
			a.log.Warn("kernel network events were lost, listening again", "error", cause)
			select {
			case <-ctx.Done():
			case <-time.After(openRetry):
			}
		}
		cancel(nil)
	}
}

// forward turns change notices of other parts into passes.
func (a *Agent) forward(ctx context.Context, sources ...<-chan struct{}) {
	var wg sync.WaitGroup
	for _, source := range sources {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-source:
					a.kick()
				}
			}
		})
	}
	wg.Wait()
}

func (a *Agent) kick() {
	select {
	case a.kicked <- struct{}{}:
	default:
	}
}

// loop runs passes until ctx ends.
func (a *Agent) loop(ctx context.Context) {
	retry := firstRetry
	for ctx.Err() == nil {
		start := time.Now()
		a.turned.Store(&start)
		wait := tickInterval
		err := a.timedPass(ctx)
		a.metrics.Pass.Observe(time.Since(start).Seconds())
		if err != nil {
			wait, retry = retry, min(2*retry, lastRetry)
		} else {
			retry = firstRetry
		}
		a.report(ctx, err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		case <-a.kicked:
			select {
			case <-ctx.Done():
			case <-time.After(passGap): // what comes together is done together
			}
		}
	}
}

func (a *Agent) timedPass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	return a.pass(ctx)
}

// isAliveGateway tells whether the agent must keep a Lease: whether the node is to be a
// gateway, and the Node's annotation has the state that this agent found.
func (a *Agent) isAliveGateway() bool { return a.isGateway.Load() && a.reported.Load() }

// report logs the outcome of a pass, and sets it in the gate and the metrics. It logs
// only changes.
func (a *Agent) report(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	before := a.gate.Missing()
	a.gate.miss(err)
	a.metrics.Ready.Set(0)
	if err == nil {
		a.metrics.Ready.Set(1)
	}
	switch {
	case err == nil && before != nil:
		a.log.Info("node is ready for pods", "node", a.config.Name)
	case err != nil && (before == nil || before.Error() != err.Error()):
		a.log.Warn("node is not as it should be", "node", a.config.Name, "error", err)
	}
}

func ignoreCancel(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// observer counts CNI requests; it implements server.Observer.
type observer struct{ m *metrics.Node }

func (o observer) Phase(p server.Phase, took time.Duration) {
	o.m.Phases.WithLabelValues(string(p)).Observe(took.Seconds())
}

func (o observer) Request(command string, code uint, took time.Duration) {
	o.m.Requests.WithLabelValues(command, strconv.FormatUint(uint64(code), 10)).Observe(took.Seconds())
}
