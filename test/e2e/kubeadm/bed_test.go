package kubeadm

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

//go:embed testdata/kubelet.service.sh
var kubeletUnit string

//go:embed testdata/systemctl
var systemctl string

// limit is how long the machines may take to start, or to be removed, on a slow machine.
const limit = 5 * time.Minute

// name is that of the machines' directory and control groups.
const name = "kubeadm"

// router is the machine with the underlay's bridge. The others have their default route, and their name server, there.
const router = "router"

// bed is machines that are ready for kubeadm: with Open vSwitch, containerd, images and a kubelet's unit. The first
// becomes the control plane.
type bed struct {
	*sandbox.Cluster
	tools string // directory with what operators have in their PATH
	image string // name of the product's container image, when all machines have it

	podSubnet string // of kubeadm's configuration
}

// start makes machines. They are gone when the test ends. Their OVN is the tested one, whatever sandbox.OVNVariable
// says: what differs here is kubeadm.
func start(t *testing.T, count int) *bed {
	t.Helper()
	return startWith(t, count, options{})
}

// options say how machines differ from those of start.
type options struct {
	switchPods bool   // they have no Open vSwitch, which the chart is to bring, and a second NIC
	podSubnet  string // for the nodes' podCIDRs, which other network plugins use
}

func startWith(t *testing.T, count int, with options) *bed {
	t.Helper()
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	o := sandbox.Options{Name: name, Nodes: count, BinDir: bin, StateRoot: sandbox.DefaultStateRoot,
		OVN: sandbox.OVNRootfs, Cache: rootfs.DefaultCache, Install: sandbox.InstallChart,
		SwitchPods: with.switchPods}
	b := &bed{Cluster: &sandbox.Cluster{Options: o}, tools: filepath.Join(o.State(), "tools"),
		podSubnet: with.podSubnet}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := b.Down(ctx); err != nil { // that of an interrupted test
		t.Fatal(err)
	}
	t.Cleanup(func() { b.remove(t) })
	log := progress.New(os.Stderr)
	source, err := rootfs.Ensure(ctx, o.Cache, rootfs.Tested, log)
	if err != nil {
		t.Fatal(err)
	}
	step := log.Begin("images of Kubernetes")
	images, err := b.images(ctx, source)
	if err := step.End(err); err != nil {
		t.Fatal(err)
	}
	step = log.Begin(fmt.Sprintf("%d machines: Open vSwitch, containerd", count))
	if err := step.End(b.machines(ctx, source, images)); err != nil {
		t.Fatal(err)
	}
	return b
}

// remove removes the machines, with every process, mount and control group. First it logs why the test may have failed.
func (b *bed) remove(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), limit) // the test's context has ended
	defer cancel()
	if t.Failed() {
		b.explain(ctx, t)
	}
	if err := b.Down(ctx); err != nil {
		t.Error(err)
	}
}

// machines starts the router and the machines.
func (b *bed) machines(ctx context.Context, source string, images map[string][]string) error {
	family := underlay.Families{}
	m, err := b.machine(ctx, router, source, control.Sysctls())
	if err != nil {
		return err
	}
	if err := underlay.MakeBridge(m, family.Control()); err != nil {
		return err
	}
	// Open vSwitch needs packets with checksums.
	if _, err := m.Run(ctx, "ethtool", "-K", underlay.Bridge, "tx", "off"); err != nil {
		return err
	}
	if err := b.writeTools(ctx); err != nil {
		return err
	}
	for i := 1; i <= b.Options.Nodes; i++ {
		one, err := b.machine(ctx, node.Name(i), source, node.Sysctls(false))
		if err != nil {
			return err
		}
		b.Nodes = append(b.Nodes, &node.Node{Member: one, Config: node.Config{
			Index: i, Addrs: family.Node(i), Router: family.Control(), Cgroup: sandbox.CgroupName(name, node.Name(i)),
			Images: images[role(i)], SwitchPods: b.Options.SwitchPods, Tunnel: family.Tunnel(i),
		}})
	}
	b.Control = &control.Control{Member: b.Nodes[0].Member}
	g, all := errgroup.WithContext(ctx)
	for _, n := range b.Nodes {
		g.Go(func() error { return b.prepare(all, m, n) })
	}
	return g.Wait()
}

// role is what a machine becomes, by its number.
func role(i int) string {
	if i == 1 {
		return "control plane"
	}
	return "worker"
}

func (b *bed) machine(ctx context.Context, name, source string, sysctls map[string]string) (*member.Member, error) {
	return member.Start(ctx, filepath.Join(b.Options.BinDir, "sandbox"), member.Spec{
		Name: name, State: b.Options.State(), Source: source, Bin: b.Options.BinDir, Sysctls: sysctls,
	})
}

// prepare makes a machine one on which kubeadm can be run.
func (b *bed) prepare(ctx context.Context, bridge *member.Member, n *node.Node) error {
	g, both := errgroup.WithContext(ctx)
	g.Go(func() error { return n.StartSwitch(both, bridge) })
	g.Go(func() error { return n.StartRuntime(both) })
	if err := g.Wait(); err != nil {
		return err
	}
	if err := b.files(ctx, n); err != nil {
		return err
	}
	return n.StartService(ctx, member.Service{Name: node.Kubelet, Argv: []string{filepath.Join(b.tools, "kubelet-unit")}})
}

// files makes the files that a machine with a system of its own would have.
func (b *bed) files(ctx context.Context, n *node.Node) error {
	addr := underlay.Families{}.Control()[0].Addr().String()
	for path, text := range map[string]string{
		"/etc/resolv.conf":                            "nameserver " + addr + "\n",
		"/etc/default/kubelet":                        "KUBELET_EXTRA_ARGS=--config-dir=/etc/kubernetes/kubelet.conf.d\n",
		"/etc/kubernetes/kubelet.conf.d/machine.conf": kubeletConfig(n),
	} {
		if err := write(n, path, text); err != nil {
			return err
		}
	}
	for _, argv := range [][]string{
		{"rm", "/opt/cni/bin/ovn_cni"}, // the chart brings it
		// kube-proxy's pod mounts the directory of the kernel's modules, which Debian's file system here lacks.
		{"sh", "-c", "mkdir -p /run/lib/modules && rm /lib && mkdir /lib && " +
			"mount -t overlay overlay -o lowerdir=/run/lib:/usr/lib /lib"},
	} {
		if _, err := n.Run(ctx, argv...); err != nil {
			return err
		}
	}
	return nil
}
