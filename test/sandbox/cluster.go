package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/test/sandbox/cgroup"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/sandbox/outside"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// Cluster is a running sandbox.
type Cluster struct {
	Options Options
	Control *control.Control
	Standby []*control.Control // further control machines with Options.HA
	Nodes   []*node.Node       // in the order of their numbers
	Outside *member.Member     // the host outside the cluster; nil in a sandbox without gateways
}

// Open finds a running sandbox.
func Open(stateRoot, name string) (*Cluster, error) {
	c := &Cluster{}
	b, err := os.ReadFile(optionsFile(Options{Name: name, StateRoot: stateRoot}.State()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no sandbox %s: `sandbox --name %s up` makes one", name, name)
	}
	if err == nil {
		err = json.Unmarshal(b, &c.Options)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of sandbox %s: %w", name, err)
	}
	m, err := member.Open(c.Options.State(), control.Name)
	if err != nil {
		return nil, fmt.Errorf("sandbox %s never got as far as a control machine: `sandbox --name %s down` removes it", name,
			name)
	}
	c.Control = c.control(m, 0)
	for i := 1; i < c.Options.controlMachines(); i++ {
		m, err := member.Open(c.Options.State(), control.MachineName(i))
		if errors.Is(err, fs.ErrNotExist) {
			break // up was interrupted
		}
		if err != nil {
			return nil, err
		}
		c.Standby = append(c.Standby, c.control(m, i))
	}
	if c.Options.Gateways > 0 {
		if c.Outside, err = member.Open(c.Options.State(), outside.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	for i := 1; i <= c.Options.Nodes; i++ {
		m, err := member.Open(c.Options.State(), node.Name(i))
		if errors.Is(err, fs.ErrNotExist) {
			break // up was interrupted
		}
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, c.node(m, i, nil))
	}
	return c, nil
}

func (c *Cluster) families() underlay.Families {
	return underlay.Families{DualStack: c.Options.DualStack}
}

// machines returns the address by which others reach each control machine. In a dual-stack sandbox, some use IPv6.
func (c *Cluster) machines() []netip.Addr {
	var all []netip.Addr
	for i := range c.Options.controlMachines() {
		addrs := c.families().ControlMachine(i)
		all = append(all, addrs[i%len(addrs)].Addr())
	}
	return all
}

func (c *Cluster) control(m *member.Member, i int) *control.Control {
	var names []string
	for i := 1; i <= c.Options.Nodes; i++ {
		names = append(names, node.Name(i))
	}
	return &control.Control{Member: m, Config: control.Config{
		Addrs: c.families().ControlMachine(i), Index: i, Machines: c.machines(),
		ServiceCIDRs: c.Options.ServiceCIDRs(), ClusterSubnets: c.Options.ClusterSubnets(),
		Nodes: names, Controllers: c.Options.Controllers, MasterArgs: c.Options.MasterArgs,
		Chart: c.RunsChart(), Audit: c.Options.Audit,
	}}
}

func (c *Cluster) node(m *member.Member, index int, images []string) *node.Node {
	return &node.Node{Member: m, Config: node.Config{
		Index: index, Addrs: c.families().Node(index), Control: c.families().Control()[0].Addr(), Machines: c.machines(),
		Cgroup:         CgroupName(c.Options.Name, m.Spec.Name),
		ClusterSubnets: c.Options.ClusterSubnets(), ServiceCIDRs: c.Options.ServiceCIDRs(),
		Images: images, ClusterDNS: c.Options.ClusterDNS, Taint: c.Options.Taint,
		AgentArgs: c.Options.AgentArgs, Router: c.router(),
		Gateway: index <= c.Options.Gateways, Chart: c.RunsChart(), SwitchPods: c.Options.SwitchPods,
		Later: c.Options.BeforeInstall != nil, Tunnel: c.families().Tunnel(index),
	}}
}

// router returns the next hops from the underlay to the host outside, if there is one.
func (c *Cluster) router() []netip.Prefix {
	if c.Options.Gateways == 0 {
		return nil
	}
	return c.families().Control()
}

// CgroupName is the name of the control group for a machine's pods. Down removes it.
func CgroupName(sandbox, member string) string { return "northbound-" + sandbox + "-" + member }

// Down removes every trace of the sandbox.
func (c *Cluster) Down(ctx context.Context) error {
	return Down(ctx, c.Options.StateRoot, c.Options.Name)
}

// Down removes every trace of a sandbox, whatever its state. It succeeds if there is none.
func Down(ctx context.Context, stateRoot, name string) error {
	state := Options{Name: name, StateRoot: stateRoot}.State()
	members, err := member.List(state)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range members {
		errs = append(errs, m.Kill(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("taking down sandbox %s: %w", name, err)
	}
	for _, m := range members {
		if err := cgroup.Remove(ctx, CgroupName(name, m.Spec.Name)); err != nil {
			return fmt.Errorf("taking down sandbox %s: %w", name, err)
		}
	}
	if err := os.RemoveAll(state); err != nil {
		return fmt.Errorf("taking down sandbox %s: %w", name, err)
	}
	// The directory of all sandboxes is removed with the last one.
	if err := os.Remove(stateRoot); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) &&
		!isNotEmpty(stateRoot) {
		return fmt.Errorf("taking down sandbox %s: %w", name, err)
	}
	return nil
}

func isNotEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// notReady lists, of count nodes, those that are not Ready, with the reason.
func notReady(nodes []corev1.Node, count int) []string {
	var waiting []string
	if len(nodes) < count {
		waiting = append(waiting, fmt.Sprintf("%d of %d nodes have registered", len(nodes), count))
	}
	for _, n := range nodes {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				waiting = append(waiting, n.Name+": "+c.Message)
			}
		}
	}
	return waiting
}

// Kubectl runs the kubectl that is built into the sandbox program, as the administrator. It sees the host's files.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	cmd := c.Control.NetworkCommand(ctx, append([]string{c.program(), "kubectl-in-place"}, args...)...)
	// The plugin kubectl-northbound is beside the sandbox.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Control.AdminKubeconfig(),
		"PATH="+filepath.Dir(c.program())+":"+os.Getenv("PATH"))
	return cmd
}

// PodNetworkCommand returns a program of the host to run with the host's files in the network of a pod. Unlike kubectl
// exec, it does not go through the API server, the kubelet and containerd.
func (c *Cluster) PodNetworkCommand(ctx context.Context, namespace, pod string, argv ...string) (*exec.Cmd, error) {
	for _, n := range c.Nodes {
		path, err := n.PodNetwork(namespace, pod)
		if err != nil {
			return nil, err
		}
		if path != "" {
			return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + path, "--"}, argv...)...), nil
		}
	}
	return nil, fmt.Errorf("running %s in the network of pod %s/%s: no node runs that pod", argv[0], namespace, pod)
}

// NBCtl runs ovn-nbctl on the Northbound database and returns what it printed.
func (c *Cluster) NBCtl(ctx context.Context, args ...string) (string, error) {
	if c.RunsChart() {
		return c.inPod(ctx, "daemonset/ovn-db", "nb", append([]string{"ovn-nbctl"}, args...)...)
	}
	return c.Control.Run(ctx, append(c.Control.NBCtl(), args...)...)
}

// SBCtl runs ovn-sbctl on the Southbound database and returns what it printed.
func (c *Cluster) SBCtl(ctx context.Context, args ...string) (string, error) {
	if c.RunsChart() {
		return c.inPod(ctx, "daemonset/ovn-db", "sb", append([]string{"ovn-sbctl"}, args...)...)
	}
	return c.Control.Run(ctx, append(c.Control.SBCtl(), args...)...)
}

// OVNKube runs ovnkube with the master's addresses and an administrator's rights. On a cluster of the chart it runs in
// a master's pod, and does not see the host's files.
func (c *Cluster) OVNKube(ctx context.Context, args ...string) *exec.Cmd {
	if c.RunsChart() {
		return c.Kubectl(ctx, append([]string{"--namespace", Namespace, "exec", "--stdin", "daemonset/ovnkube-master",
			"--container", "master", "--", "ovnkube"}, args...)...)
	}
	argv := append(c.Control.OVNKube(), filepath.Join(c.Options.BinDir, "ovnkube"))
	return c.Control.NetworkCommand(ctx, append(argv, args...)...)
}

// Node finds a node by number ("2") or name ("n2").
func (c *Cluster) Node(which string) (*node.Node, error) {
	for i, n := range c.Nodes {
		if which == n.Spec.Name || which == fmt.Sprint(i+1) {
			return n, nil
		}
	}
	return nil, fmt.Errorf("there is no node %q: want 1 to %d", which, len(c.Nodes))
}

// Controls lists the control machines.
func (c *Cluster) Controls() []*control.Control {
	return append([]*control.Control{c.Control}, c.Standby...)
}

// Members lists the control machines, the host outside if there is one, and the nodes.
func (c *Cluster) Members() []*member.Member {
	var all []*member.Member
	for _, m := range c.Controls() {
		all = append(all, m.Member)
	}
	if c.Outside != nil {
		all = append(all, c.Outside)
	}
	for _, n := range c.Nodes {
		all = append(all, n.Member)
	}
	return all
}

// Logs maps components ("master", "n1/kubelet") to the files with their output.
func (c *Cluster) Logs() (map[string]string, error) {
	all := map[string]string{}
	for _, m := range c.Members() {
		files, err := filepath.Glob(filepath.Join(m.Spec.LogDir(), "*.log"))
		if err != nil {
			return nil, fmt.Errorf("listing the logs: %w", err)
		}
		for _, f := range files {
			name := strings.TrimSuffix(filepath.Base(f), ".log")
			if m != c.Control.Member || name == "init" {
				name = m.Spec.Name + "/" + name
			}
			all[name] = f
		}
	}
	return all, nil
}
