package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/networks"
	"github.com/northbound-net/northbound/test/scale/rig"
)

// maxTransactionsPerPod limits the transactions of the burst.
const maxTransactionsPerPod = 0.1

// phaseTimeout limits the duration of a phase, on any machine.
const phaseTimeout = 10 * time.Minute

// Config says what to measure.
type Config struct {
	rig.Programs
	Pods        int // for the raw limits, the backlog and the burst
	Nodes       int // fake ones, in all phases
	RestartPods int // exist when the master restarts
	Services    int // that wait for the master; as many come while it runs, and in phase flows
	Adds        int // ADDs of each kind, in phase add
	// PolicyNamespaces is the number of namespaces in phase policies.
	PolicyNamespaces int
	Bin              string   // directory of the sandbox's programs and of ovn_cni
	Hello            string   // a hello-world program, to compare the plugin with
	Only             []string // phases; empty: all but those that are long
	Scale            Scale
	Northd           Northd
	Networks         networks.Config
}

// phaseAdd measures the CNI plugin.
const phaseAdd = "add"

// Phases lists the phases in the order in which they run.
func Phases() []string {
	out := masterPhases()
	for _, p := range nodePhases() {
		out = append(out, p.name)
	}
	return append(out, longPhases()...)
}

// phaseNetworks measures many primary networks. It runs only when it is named.
const phaseNetworks = "networks"

// longPhases are the phases that run only when they are named.
func longPhases() []string { return []string{phaseScale, phaseNorthd, phaseNetworks} }

// nodePhase is a phase that has a cluster with a real node to itself.
type nodePhase struct {
	name string
	run  func(context.Context, Config, *Report, io.Writer) error
}

func nodePhases() []nodePhase {
	return []nodePhase{{phaseFlows, runFlows}, {phasePolicies, runPolicies}, {phaseAdd, runAdds}}
}

// NeedsNode reports whether a phase with a real node is to run.
func (c Config) NeedsNode() bool {
	return slices.ContainsFunc(nodePhases(), func(p nodePhase) bool { return c.Runs(p.name) })
}

func masterPhases() []string {
	return []string{"raw", "backlog", "burst", "latency", phaseWebhook, "restart", phaseServices, phaseNodes}
}

// Plugin is the path of the CNI plugin.
func (c Config) Plugin() string { return filepath.Join(c.Bin, "ovn_cni") }

// Runs reports whether a phase is to run.
func (c Config) Runs(phase string) bool {
	return len(c.Only) == 0 && !slices.Contains(longPhases(), phase) || slices.Contains(c.Only, phase)
}

// maxPodsPerNode is the number of pods in a /23, the default node subnet.
const maxPodsPerNode = 508

// maxServices limits the services that wait, and those that come later.
const maxServices = 2000

// subnets is the number of nodes that the master's default subnets have room for.
const subnets = 512

// maxNodes limits the nodes at the beginning: phase nodes makes as many again.
func maxNodes(c Config) int {
	if c.Runs(phaseNodes) {
		return subnets / 2
	}
	return subnets
}

// Validate returns what is wrong with a Config.
func (c Config) Validate() error {
	errs := []error{c.checkAdds()}
	if c.Runs(phaseScale) {
		errs = append(errs, c.Scale.check())
	}
	if c.Runs(phaseNorthd) {
		errs = append(errs, c.Northd.check())
	}
	if c.Runs(phaseNetworks) {
		errs = append(errs, c.Networks.Check())
	}
	if c.Pods < 1 || c.Nodes < 1 || c.RestartPods < 1 {
		errs = append(errs, fmt.Errorf("--pods %d --nodes %d --restart-pods %d: want at least 1 of each", c.Pods, c.Nodes,
			c.RestartPods))
	}
	if c.Services < 1 || c.Services > maxServices {
		errs = append(errs, fmt.Errorf("--services %d: want 1 to %d", c.Services, maxServices))
	}
	if c.PolicyNamespaces < 1 || c.PolicyNamespaces > maxPolicyNamespaces {
		errs = append(errs, fmt.Errorf("--policy-namespaces %d: want 1 to %d", c.PolicyNamespaces, maxPolicyNamespaces))
	}
	if most := maxNodes(c); c.Nodes > most {
		errs = append(errs, fmt.Errorf("--nodes %d: want at most %d, since the master's default subnets have room for %d",
			c.Nodes, most, subnets))
	}
	most := max(c.RestartPods, 2*c.Pods+(1+len(webhookPhases()))*steadyPods)
	if c.Nodes > 0 && most/c.Nodes >= maxPodsPerNode {
		errs = append(errs, fmt.Errorf("--nodes %d: %d pods need at least %d nodes", c.Nodes, most, most/maxPodsPerNode+1))
	}
	for _, p := range c.Only {
		if !slices.Contains(Phases(), p) {
			errs = append(errs, fmt.Errorf("--only %q: want some of %s", p, strings.Join(Phases(), ",")))
		}
	}
	return errors.Join(errs...)
}

// bench is a running measurement.
type bench struct {
	Config
	rig      *rig.Rig
	observer *load.Observer
	master   *rig.Master
	limits   limits
	report   *Report
	pods     int // pods that exist and have their network
	grown    int // of these, the pods in the namespace of the restart
}

// Run measures. It returns its results even if it fails, and leaves nothing running. w gets progress messages.
func Run(ctx context.Context, c Config, w io.Writer) (*Report, error) {
	report := &Report{Machine: machine(c)}
	if err := c.Validate(); err != nil {
		return report, err
	}
	began := time.Now()
	tell := func(what string) { fmt.Fprintf(w, "%6.1f s  %s\n", time.Since(began).Seconds(), what) }
	if slices.ContainsFunc(masterPhases(), c.Runs) {
		if err := runMaster(ctx, c, report, tell); err != nil {
			return report, err
		}
	}
	if c.Runs(phaseScale) {
		if err := runScale(ctx, c, report, tell); err != nil {
			return report, fmt.Errorf("measuring %s: %w", phaseScale, err)
		}
	}
	if c.Runs(phaseNorthd) {
		if err := runNorthd(ctx, c, report, tell); err != nil {
			return report, fmt.Errorf("measuring %s: %w", phaseNorthd, err)
		}
	}
	if c.Runs(phaseNetworks) {
		if err := runNetworks(ctx, c, report, tell); err != nil {
			return report, fmt.Errorf("measuring %s: %w", phaseNetworks, err)
		}
	}
	for _, p := range nodePhases() {
		if !c.Runs(p.name) {
			continue
		}
		tell(p.name)
		if err := p.run(ctx, c, report, w); err != nil {
			return report, fmt.Errorf("measuring %s: %w", p.name, err)
		}
	}
	return report, nil
}

func runNetworks(ctx context.Context, c Config, report *Report, tell func(string)) (err error) {
	report.Networks, err = networks.Run(ctx, c.Programs, c.Networks, tell)
	report.Networks.Machine = hardware()
	report.Violations = append(report.Violations, report.Networks.Violations()...)
	return err
}

// runMaster measures the phases without real nodes.
func runMaster(ctx context.Context, c Config, report *Report, tell func(string)) (err error) {
	tell("starting the API server and ovsdb-server")
	r, err := rig.New(ctx, c.Programs)
	if err != nil {
		return err
	}
	b := &bench{Config: c, rig: r, report: report}
	defer func() {
		tell("removing everything")
		err = errors.Join(err, b.close())
		tell("done")
	}()
	if err := load.Nodes(ctx, r.Kube, c.Nodes); err != nil {
		return err
	}
	// Watch from the beginning, so that watching costs the servers the same in all phases, including the raw ones.
	if b.observer, err = load.Observe(ctx, r.Kube, r.NB.Socket); err != nil {
		return err
	}
	for _, p := range masterPhases() {
		if !c.Runs(p) {
			continue
		}
		tell(p)
		if err := b.phase(ctx, p); err != nil {
			return fmt.Errorf("measuring %s: %w", p, err)
		}
	}
	return nil
}

func (b *bench) phase(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, phaseTimeout)
	defer cancel()
	switch name {
	case "raw":
		return b.raw(ctx)
	case "backlog":
		return b.backlog(ctx)
	case "burst":
		return b.burst(ctx)
	case "latency":
		return b.latency(ctx)
	case phaseWebhook:
		return b.webhook(ctx)
	case "restart":
		return b.restart(ctx)
	case phaseServices:
		return b.services(ctx)
	default:
		return b.nodes(ctx)
	}
}

func (b *bench) close() error {
	var errs []error
	if b.master != nil {
		errs = append(errs, b.master.Stop())
	}
	if b.observer != nil {
		b.observer.Close()
	}
	return errors.Join(append(errs, b.rig.Close())...)
}

// prepare starts a master, waits until it is ready, and makes an empty namespace that is observed.
func (b *bench) prepare(ctx context.Context, namespace string) error {
	if err := load.Namespace(ctx, b.rig.Kube, namespace); err != nil {
		return err
	}
	if b.master != nil {
		return nil
	}
	var err error
	if b.master, err = b.rig.StartMaster(ctx); err != nil {
		return err
	}
	if _, err = b.master.WaitReady(ctx); err != nil {
		return err
	}
	return load.WaitNodes(ctx, b.rig.Kube, b.Nodes)
}

// done waits until n pods of a namespace have their network. It returns when they had annotations and when ports.
func (b *bench) done(ctx context.Context, namespace string, n int) (annotated, ported time.Time, err error) {
	if annotated, err = b.observer.Annotated.Wait(ctx, namespace, n); err != nil {
		return annotated, ported, err
	}
	ported, err = b.observer.Ported.Wait(ctx, namespace, n)
	return annotated, ported, err
}

// machine describes this machine.
func machine(c Config) string {
	return fmt.Sprintf("%d pods on %d fake nodes, %d ADDs of each kind on a real one; %s", c.Pods, c.Nodes, c.Adds,
		hardware())
}

// hardware describes this machine and how busy it is.
func hardware() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	fields := strings.Fields(string(load))
	return fmt.Sprintf("%d processors, %s/%s, load average before: %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH,
		strings.Join(fields[:min(3, len(fields))], " "))
}
