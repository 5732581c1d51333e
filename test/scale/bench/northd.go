package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/scale/central"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
	"github.com/northbound-net/northbound/test/scale/process"
	"github.com/northbound-net/northbound/test/scale/rig"
)

// phaseNorthd measures ovn-northd and the Southbound database with the rows that the master makes. It runs only when it
// is named.
const phaseNorthd = "northd"

// Northd says what phase northd measures.
type Northd struct {
	Nodes   []int // numbers of nodes, ascending
	Rounds  int   // repetitions of each change
	Systems []central.Release
}

// Each node has so many pods, and there are so many services for each node.
const (
	northdPods     = 50
	northdServices = 2
)

// check returns what is wrong with a Northd.
func (n Northd) check() error {
	var errs []error
	before := 0
	for _, nodes := range n.Nodes {
		if nodes <= before || nodes > maxScaleNodes {
			errs = append(errs, fmt.Errorf("--northd-nodes %v: want ascending numbers of 1 to %d", n.Nodes, maxScaleNodes))
			break
		}
		before = nodes
	}
	if len(n.Nodes) == 0 || len(n.Systems) == 0 || n.Rounds < 1 {
		errs = append(errs, errors.New("--northd-nodes, --ovn, --northd-rounds: want at least one of each"))
	}
	return errors.Join(errs...)
}

// northd is a running measurement of one release at one size.
type northd struct {
	*bench
	system *central.System
	nodes  int
	rounds int

	nb, sb               *ovsdbwire.Client
	nbServer, sbServer   *process.Process
	daemon               *process.Process
	seen                 *load.Tracker // in the Southbound database
	watches              []*ovsdbwire.Client
	config, nextPod      int // nb_cfg so far; pods so far
	nextNode, nextServed int
	out                  *northdResult
}

// runNorthd measures phase northd: one cluster that grows, and at each size each release with databases of its own.
func runNorthd(ctx context.Context, c Config, report *Report, tell func(string)) (err error) {
	tell(phaseNorthd + ": starting the API server")
	r, err := rig.New(ctx, c.Programs, "--service-cidrs="+scaleServices)
	if err != nil {
		return err
	}
	b := &bench{Config: c, rig: r, report: report}
	defer func() {
		tell("removing everything")
		err = errors.Join(err, b.close())
	}()
	report.Northd = &Northds{Machine: hardware()}
	for _, s := range c.Northd.Systems {
		dir := filepath.Join(r.Dir, s.Version)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("making a directory: %w", err)
		}
		if err := central.Mount(s.Root, dir); err != nil {
			return err
		}
	}
	if err := load.Namespace(ctx, r.Kube, phaseScale); err != nil {
		return err
	}
	g := &grown{}
	for _, nodes := range c.Northd.Nodes {
		if err := b.growNodes(ctx, g, nodes); err != nil {
			return err
		}
		for _, s := range c.Northd.Systems {
			tell(fmt.Sprintf("%s: OVN %s, %d nodes, %d pods", phaseNorthd, s.Version, nodes, g.pods))
			if err := b.northd(ctx, s, g, nodes); err != nil {
				return fmt.Errorf("measuring OVN %s with %d nodes: %w", s.Version, nodes, err)
			}
		}
	}
	return nil
}

// grown is what the cluster has so far.
type grown struct{ nodes, pods, namespaces, services int }

// growNodes makes nodes, with their pods and services, until there are so many. No master runs.
func (b *bench) growNodes(ctx context.Context, g *grown, nodes int) error {
	kube := b.rig.Kube
	pods, services := nodes*northdPods, nodes*northdServices
	namespaces := (pods + podsPerNamespace - 1) / podsPerNamespace
	from := *g
	*g = grown{nodes, pods, namespaces, services}
	return errors.Join(
		load.Parallel(ctx, nodes-from.nodes, func(ctx context.Context, i int) error {
			return load.Node(ctx, kube, from.nodes+i)
		}),
		load.Parallel(ctx, namespaces-from.namespaces, func(ctx context.Context, i int) error {
			return load.Namespace(ctx, kube, namespaceOf((from.namespaces+i)*podsPerNamespace))
		}),
		load.Parallel(ctx, pods-from.pods, func(ctx context.Context, i int) error {
			return b.podOn(ctx, from.pods+i, pods, (from.pods+i)/northdPods)
		}),
		load.Parallel(ctx, services-from.services, func(ctx context.Context, i int) error {
			i += from.services
			return errors.Join(load.CreateDualService(ctx, kube, phaseScale, i),
				load.CreateBackends(ctx, kube, phaseScale, i, true), load.CreateBackends(ctx, kube, phaseScale, i, false))
		}))
}

// podOn makes the i-th pod, on a node. Pods that the changes make share the namespaces of the others.
func (b *bench) podOn(ctx context.Context, i, pods, node int) error {
	namespace := namespaceOf(i % pods)
	pod := load.Pod(namespace, i, 1)
	pod.Spec.NodeName = load.NodeName(node)
	if _, err := b.rig.Kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a pod: %w", err)
	}
	return nil
}

// northd measures one release at one size, and removes the objects that it made beside.
func (b *bench) northd(ctx context.Context, s central.Release, g *grown, nodes int) (err error) {
	system, err := central.New(s.Root, filepath.Join(b.rig.Dir, s.Version), fmt.Sprint(nodes))
	if err != nil {
		return err
	}
	n := &northd{bench: b, system: system, nodes: nodes, rounds: b.Northd.Rounds, nextPod: g.pods, nextNode: g.nodes,
		nextServed: g.services, seen: load.NewTracker("the Southbound database"),
		out: &northdResult{Version: s.Version, Nodes: nodes, Pods: g.pods, Services: g.services}}
	defer func() { err = errors.Join(err, n.end(), b.clean(context.WithoutCancel(ctx), g, n)) }()
	for _, step := range []func(context.Context) error{n.fill, n.chassis, n.start, n.bind, n.memory, n.changes} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	b.report.Northd.Results = append(b.report.Northd.Results, *n.out)
	return nil
}

// clean removes what the changes made, so that the next release meets the same cluster.
func (b *bench) clean(ctx context.Context, g *grown, n *northd) error {
	kube, now := b.rig.Kube, int64(0)
	at := metav1.DeleteOptions{GracePeriodSeconds: &now}
	var errs []error
	for i := g.pods; i < n.nextPod; i++ {
		errs = append(errs, kube.CoreV1().Pods(namespaceOf(i%g.pods)).Delete(ctx, load.PodName(i), at))
	}
	for i := g.nodes; i < n.nextNode; i++ {
		errs = append(errs, kube.CoreV1().Nodes().Delete(ctx, load.NodeName(i), at))
	}
	for i := g.services; i < n.nextServed; i++ {
		errs = append(errs, kube.CoreV1().Services(phaseScale).Delete(ctx, load.ServiceName(i), at),
			kube.DiscoveryV1().EndpointSlices(phaseScale).Delete(ctx, load.ServiceName(i), at))
	}
	return errors.Join(errs...)
}

// end ends everything that was started for one release and size.
func (n *northd) end() error {
	var errs []error
	if n.master != nil {
		errs = append(errs, n.stopNorthdMaster())
	}
	for _, c := range append(n.watches, n.nb, n.sb) {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	if n.daemon != nil {
		errs = append(errs, n.daemon.Kill())
	}
	return errors.Join(append(errs, n.system.Close())...)
}

func (n *northd) stopNorthdMaster() error {
	m := n.master
	n.master = nil
	return m.Stop()
}

// fill has a master fill an empty Northbound database.
func (n *northd) fill(ctx context.Context) (err error) {
	if n.nb, n.nbServer, err = n.system.Database(ctx, "nb", "ovn/ovn-nb.ovsschema"); err != nil {
		return err
	}
	if n.sb, n.sbServer, err = n.system.Database(ctx, "sb", "ovn/ovn-sb.ovsschema"); err != nil {
		return err
	}
	if err := n.nb.Transact("OVN_Northbound", map[string]any{"op": "insert", "table": "NB_Global",
		"row": map[string]any{}}); err != nil {
		return err
	}
	file := filepath.Join(n.system.Dir, "nb.db")
	n.rig.NB = &rig.Northbound{Process: n.nbServer, Socket: n.system.Socket("nb"), File: file,
		Log: ovsdbwire.OpenLog(file)}
	n.master, err = n.rig.StartMasterAt(ctx, rig.MetricsAddr, "--leader-elect=false", "--cluster-subnets", scaleSubnets,
		"--k8s-service-cidrs", scaleServices, "--max-namespace-vips=0") // all services are in one namespace
	if err != nil {
		return err
	}
	if _, err = n.master.WaitReady(ctx); err != nil {
		return err
	}
	_, err = n.settle(ctx)
	return err
}

// start starts ovn-northd, and measures how long it takes to fill the Southbound database.
func (n *northd) start(ctx context.Context) (err error) {
	began := time.Now()
	if n.daemon, err = n.system.Northd(); err != nil {
		return err
	}
	if err := n.watch(ctx); err != nil {
		return err
	}
	at, err := n.sync(ctx)
	if err != nil {
		return err
	}
	after, err := n.settle(ctx)
	n.out.Start, n.out.StartCPU = at.Sub(began), after.northd
	return err
}
