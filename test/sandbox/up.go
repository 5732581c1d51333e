package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/image"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/sandbox/outside"
	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// Timeout is how long the machines may take to become ready, on a slow machine.
const Timeout = 5 * time.Minute

// Up makes a sandbox and returns when it is ready: all nodes Ready, or with NoNodes the API server and the databases.
// If it fails, or ctx ends, it removes everything that it made, unless Options.Keep.
func Up(ctx context.Context, options Options) (*Cluster, error) {
	o, err := options.complete()
	if err != nil {
		return nil, err
	}
	if err := vacate(ctx, o); err != nil {
		return nil, err
	}
	log := progress.New(o.Progress)
	source, err := provide(ctx, o, log)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Options: o}
	err = c.up(ctx, source, log)
	if err == nil {
		log.Total(fmt.Sprintf("sandbox %s is up", o.Name))
		return c, nil
	}
	if o.Keep {
		return nil, fmt.Errorf("bringing up sandbox %s (kept in %s): %w", o.Name, o.State(), err)
	}
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return nil, errors.Join(fmt.Errorf("bringing up sandbox %s: %w", o.Name, err), c.Down(down))
}

// vacate deals with an earlier sandbox of the same name. That is an error, unless it is to be replaced or nothing of it
// runs.
func vacate(ctx context.Context, o Options) error {
	members, err := member.List(o.State())
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.PID() != 0 && !o.Replace {
			return fmt.Errorf("sandbox %s is up already: `sandbox --name %s down` removes it", o.Name, o.Name)
		}
	}
	return Down(ctx, o.StateRoot, o.Name)
}

// provide returns the directory of the system whose programs the machines use.
func provide(ctx context.Context, o Options, log *progress.Log) (string, error) {
	switch o.OVN {
	case OVNHost:
		return "/", rootfs.Install(ctx, log, hostPackages(o)...)
	case OVNNewest:
		return rootfs.Ensure(ctx, o.Cache, rootfs.Newest, log)
	default:
		return rootfs.Ensure(ctx, o.Cache, rootfs.Tested, log)
	}
}

// hostPackages are the Debian packages that a sandbox needs on the host if it does not use a root filesystem.
func hostPackages(o Options) []string {
	all := []string{"ovn-central", "iproute2", "ethtool"}
	if o.NoNodes {
		return all
	}
	return append(all, "ovn-host", "openvswitch-switch", "containerd", "runc", "containernetworking-plugins",
		"busybox-static", "iputils-ping")
}

func (c *Cluster) up(ctx context.Context, source string, log *progress.Log) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("it took longer than %v", Timeout))
	defer cancel()
	o := c.Options
	if err := os.MkdirAll(o.State(), 0o755); err != nil {
		return err
	}
	if err := c.save(); err != nil {
		return err
	}
	step := log.Begin("Kubernetes control plane and OVN databases")
	if err := step.End(c.upControl(ctx, source)); err != nil {
		return err
	}
	if o.NoNodes {
		return c.Control.WaitDefaults(ctx)
	}
	images, err := image.Sandbox(filepath.Join(o.State(), "images"), o.BinDir, filepath.Join(source, "usr/bin/busybox"))
	if err != nil {
		return fmt.Errorf("making images: %w", err)
	}
	if c.RunsChart() {
		return c.upChart(ctx, source, images, log)
	}
	if o.BeforeInstall != nil {
		return c.upBare(ctx, source, images, log)
	}
	step = log.Begin("ovnkube master")
	if err := step.End(c.startMasters(ctx)); err != nil {
		return err
	}
	step = log.Begin(fmt.Sprintf("%d nodes: Open vSwitch, ovn-controller, containerd, kubelet, ovnkube node", o.Nodes))
	if err := step.End(c.upNodes(ctx, source, images)); err != nil {
		return err
	}
	step = log.Begin("nodes Ready: their networks work")
	return step.End(c.waitReady(ctx, step))
}

// upBare makes bare nodes, calls BeforeInstall, and starts the product's daemons as host processes.
func (c *Cluster) upBare(ctx context.Context, source string, images []string, log *progress.Log) error {
	step := log.Begin(fmt.Sprintf("%d nodes: Open vSwitch, containerd, kubelet", c.Options.Nodes))
	if err := step.End(c.upNodes(ctx, source, images)); err != nil {
		return err
	}
	if err := c.Options.BeforeInstall(ctx, c); err != nil {
		return err
	}
	step = log.Begin("ovnkube master")
	if err := step.End(c.startMasters(ctx)); err != nil {
		return err
	}
	step = log.Begin(fmt.Sprintf("%d nodes: ovn-controller, ovnkube node", c.Options.Nodes))
	g, all := errgroup.WithContext(ctx)
	for _, n := range c.Nodes {
		g.Go(func() error { return n.Install(all) })
	}
	if err := step.End(g.Wait()); err != nil {
		return err
	}
	step = log.Begin("nodes Ready: their networks work")
	return step.End(c.waitReady(ctx, step))
}

// upChart makes bare nodes, and installs the chart.
func (c *Cluster) upChart(ctx context.Context, source string, images []string, log *progress.Log) error {
	step := log.Begin("the container image")
	file, name, err := c.chartImage(ctx, source, c.Options.BinDir)
	if err := step.End(err); err != nil {
		return err
	}
	step = log.Begin(fmt.Sprintf("%d nodes: %scontainerd, kubelet", c.Options.Nodes, hostSwitch(c.Options)))
	if err := step.End(c.upNodes(ctx, source, append(images, file))); err != nil {
		return err
	}
	if before := c.Options.BeforeInstall; before != nil {
		if err := before(ctx, c); err != nil {
			return err
		}
	}
	step = log.Begin("helm install " + ReleaseName)
	if err := step.End(c.installChart(ctx, name, step)); err != nil {
		return err
	}
	step = log.Begin("nodes Ready: their networks work")
	if err := step.End(c.waitReady(ctx, step)); err != nil {
		return err
	}
	return c.Rollout(ctx)
}

// hostSwitch names Open vSwitch if the nodes have their own.
func hostSwitch(o Options) string {
	if o.SwitchPods {
		return ""
	}
	return "Open vSwitch, "
}

func (c *Cluster) spec(name, source string, sysctls map[string]string) member.Spec {
	return member.Spec{Name: name, State: c.Options.State(), Source: source, Bin: c.Options.BinDir, Sysctls: sysctls}
}

func (c *Cluster) program() string { return filepath.Join(c.Options.BinDir, "sandbox") }

func (c *Cluster) upControl(ctx context.Context, source string) error {
	m, err := member.Start(ctx, c.program(), c.spec(control.Name, source, control.Sysctls()))
	if err != nil {
		return err
	}
	c.Control = c.control(m, 0)
	if err := underlay.MakeBridge(m, c.Control.Config.Addrs); err != nil {
		return err
	}
	// Open vSwitch needs packets with checksums.
	if _, err := m.Run(ctx, "ethtool", "-K", underlay.Bridge, "tx", "off"); err != nil {
		return err
	}
	if c.Options.Gateways > 0 {
		if c.Outside, err = member.Start(ctx, c.program(), c.spec(outside.Name, source, nil)); err != nil {
			return err
		}
		if err := outside.Connect(ctx, c.Outside, m, c.families()); err != nil {
			return err
		}
	}
	if err := c.upStandby(ctx, source); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	if !c.RunsChart() {
		g.Go(func() error { return c.startOVN(ctx) })
	}
	g.Go(func() error { return c.Control.StartAPI(ctx) })
	return g.Wait()
}

// upStandby makes the further control machines, and connects them to the underlay.
func (c *Cluster) upStandby(ctx context.Context, source string) error {
	for i := 1; i < c.Options.controlMachines(); i++ {
		m, err := member.Start(ctx, c.program(), c.spec(control.MachineName(i), source, nil))
		if err != nil {
			return err
		}
		standby := c.control(m, i)
		c.Standby = append(c.Standby, standby)
		if err := underlay.Connect(c.Control.Member, m, standby.Config.Addrs); err != nil {
			return err
		}
		// Open vSwitch needs packets with checksums.
		if _, err := m.Run(ctx, "ethtool", "-K", underlay.Uplink, "tx", "off"); err != nil {
			return err
		}
	}
	return nil
}

// startOVN starts the databases and ovn-northd.
func (c *Cluster) startOVN(ctx context.Context) error {
	for _, m := range c.Controls() {
		if err := m.StartDatabases(ctx); err != nil {
			return err
		}
	}
	for _, m := range c.active() {
		if err := m.StartNorthd(ctx); err != nil {
			return err
		}
	}
	return c.Control.WaitNorthd(ctx)
}

func (c *Cluster) startMasters(ctx context.Context) error {
	for _, m := range c.active() {
		if err := m.StartMaster(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) upNodes(ctx context.Context, source string, images []string) error {
	for i := 1; i <= c.Options.Nodes; i++ {
		m, err := member.Start(ctx, c.program(), c.spec(node.Name(i), source, node.Sysctls(c.Options.DualStack)))
		if err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, c.node(m, i, images))
	}
	g, all := errgroup.WithContext(ctx)
	for _, n := range c.Nodes {
		g.Go(func() error { return c.upNode(all, n) })
	}
	return g.Wait()
}

func (c *Cluster) upNode(ctx context.Context, n *node.Node) error {
	g, both := errgroup.WithContext(ctx)
	g.Go(func() error { return n.StartNetwork(both, c.Control) })
	g.Go(func() error { return n.StartRuntime(both) })
	if err := g.Wait(); err != nil {
		return err
	}
	for _, p := range c.Control.Config.Addrs {
		if err := n.Reach(ctx, p.Addr()); err != nil {
			return err
		}
	}
	if err := n.StartKubelet(ctx); err != nil {
		return err
	}
	if c.RunsChart() || n.Config.Later {
		return nil
	}
	return n.StartAgent(ctx)
}

// waitReady waits until every node is Ready and pods can be created.
func (c *Cluster) waitReady(ctx context.Context, step *progress.Step) error {
	client, err := c.Control.Client()
	if err != nil {
		return err
	}
	reasons := ""
	for {
		if list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
			waiting := notReady(list.Items, len(c.Nodes))
			if len(waiting) == 0 {
				break
			}
			reasons = strings.Join(waiting, "; ")
			step.Detail("waiting for: %s", summary(waiting))
		}
		for _, n := range c.Nodes {
			if err := n.Ended(ctx); err != nil {
				return fmt.Errorf("waiting for the nodes to be Ready: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the nodes to be Ready: %w: %s", context.Cause(ctx), reasons)
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := c.prime(ctx); err != nil {
		return err
	}
	return c.Control.WaitDefaults(ctx)
}

// summary returns the first of several reasons, which are often the same.
func summary(reasons []string) string {
	if len(reasons) == 1 {
		return reasons[0]
	}
	return fmt.Sprintf("%s; and %d more", reasons[0], len(reasons)-1)
}

// prime makes the nodes resolve each other's link addresses.
func (c *Cluster) prime(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range c.Nodes {
		for _, other := range c.Nodes {
			if n == other {
				continue
			}
			for _, p := range other.Config.Addrs {
				g.Go(func() error { return n.Reach(ctx, p.Addr()) })
			}
		}
	}
	return g.Wait()
}

func (c *Cluster) save() error {
	b, err := json.MarshalIndent(c.Options, "", "  ")
	if err != nil {
		return fmt.Errorf("recording the sandbox: %w", err)
	}
	if err := os.WriteFile(optionsFile(c.Options.State()), b, 0o600); err != nil {
		return fmt.Errorf("recording the sandbox: %w", err)
	}
	return nil
}

func optionsFile(state string) string { return filepath.Join(state, "sandbox.json") }
