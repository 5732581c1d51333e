package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// Where OVN, Open vSwitch and containerd come from.
const (
	OVNRootfs = "rootfs" // a cached Debian 13 root filesystem
	// a cached Debian unstable root filesystem with the OVN of experimental where that is newer, as it was on the day when
	// it was made
	OVNNewest = "newest"
	OVNHost   = "host" // this machine's own packages
)

// OVNVariable is the environment variable that sets Options.OVN for sandboxes that leave it empty.
const OVNVariable = "SANDBOX_OVN"

// Options configure a sandbox. The zero value is a cluster of three IPv4 nodes with the name "sandbox".
type Options struct {
	Name        string       // default "sandbox"; sandboxes with different names can exist at the same time
	Nodes       int          // default 3
	NoNodes     bool         // only the API server, the OVN databases and northd: no master, no nodes
	HA          bool         // three control machines: databases as clusters; two each of ovn-northd and master
	Gateways    int          // how many of the nodes are gateways; if any, there is a host outside, too
	DualStack   bool         // IPv4 and IPv6: nodes, pods and services
	OVN         string       // OVNRootfs, OVNNewest or OVNHost; default that of OVNVariable, else OVNRootfs
	BinDir      string       // programs; default the repository's bin/
	StateRoot   string       // directory with a directory for each sandbox; default /var/lib/northbound
	Cache       string       // of root filesystems; default /var/cache/northbound
	Replace     bool         // take down a sandbox of the same name first
	Keep        bool         // keep everything if Up fails
	Progress    io.Writer    `json:"-"` // gets progress messages; default none
	Controllers string       // of kube-controller-manager, as its --controllers; default those that pods and services need
	ClusterDNS  []netip.Addr // of cluster DNS; default none
	MasterArgs  []string     // further arguments of ovnkube master
	AgentArgs   []string     // further arguments of ovnkube node
	Install     string       // InstallChart or InstallManifest; default that of InstallVariable, else host processes
	SwitchPods  bool         // Open vSwitch runs in pods of the chart; nodes have a second NIC for tunnels
	Audit       bool         // the API server records what ovnkube asks of it
	Monitoring  bool         // the chart serves metrics in the network
	Taint       string       // key of two taints that kubelets register their Nodes with, by which no pod starts
	// BeforeInstall is called, if it is set, when the nodes' kubelets run, and the chart, or masters, ovn-controllers and
	// agents as host processes, are about to be installed.
	BeforeInstall func(context.Context, *Cluster) error `json:"-"`
}

// Defaults of Options.
const (
	DefaultName      = "sandbox"
	DefaultNodes     = 3
	DefaultStateRoot = "/var/lib/northbound"
)

func (o Options) complete() (Options, error) {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&o.Name, DefaultName)
	set(&o.OVN, os.Getenv(OVNVariable))
	set(&o.OVN, OVNRootfs)
	set(&o.Install, os.Getenv(InstallVariable))
	set(&o.StateRoot, DefaultStateRoot)
	set(&o.Cache, rootfs.DefaultCache)
	if o.Nodes == 0 {
		o.Nodes = DefaultNodes
	}
	if o.NoNodes {
		o.Nodes = 0
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.BinDir == "" {
		dir, err := findBin()
		if err != nil {
			return o, err
		}
		o.BinDir = dir
	}
	return o, o.validate()
}

func (o Options) validate() error {
	var errs []error
	if ok, err := regexp.MatchString(`^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$`, o.Name); err != nil || !ok {
		errs = append(errs, fmt.Errorf("name %q: want 1 to 20 of a-z, 0-9 and -", o.Name))
	}
	if o.Nodes < 0 || o.Nodes > underlay.MaxNodes {
		errs = append(errs, fmt.Errorf("%d nodes: want 1 to %d", o.Nodes, underlay.MaxNodes))
	}
	if o.Gateways < 0 || o.Gateways > o.Nodes {
		errs = append(errs, fmt.Errorf("%d gateways: want 0 to %d, the number of nodes", o.Gateways, o.Nodes))
	}
	if all := []string{OVNRootfs, OVNNewest, OVNHost}; !slices.Contains(all, o.OVN) {
		errs = append(errs, fmt.Errorf("OVN from %q: want one of %s", o.OVN, strings.Join(all, ", ")))
	}
	if o.Install != "" && !o.RunsChart() {
		errs = append(errs, fmt.Errorf("install %q: want %s, %s, or nothing for processes of the host", o.Install,
			InstallChart, InstallManifest))
	}
	if o.RunsChart() && (o.HA || o.NoNodes || o.OVN == OVNHost) {
		errs = append(errs, fmt.Errorf("install %s: want one control machine, nodes, and OVN from a root filesystem",
			o.Install))
	}
	if o.SwitchPods && (!o.RunsChart() || o.Gateways > 0) {
		errs = append(errs, errors.New("Open vSwitch in pods: want install chart, and no gateways"))
	}
	// The path of a socket has at most 107 characters (unix(7)).
	if !filepath.IsAbs(o.StateRoot) || len(o.StateRoot) > 40 {
		errs = append(errs, fmt.Errorf("state directory %q: want an absolute path of at most 40 characters", o.StateRoot))
	}
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("a sandbox needs root: it makes network, mount and PID namespaces"))
	}
	for _, p := range o.programs() {
		if _, err := os.Stat(filepath.Join(o.BinDir, p)); err != nil {
			errs = append(errs, fmt.Errorf("program %s is missing in %s: run `make sandbox`", p, o.BinDir))
		}
	}
	return errors.Join(errs...)
}

func (o Options) programs() []string {
	if o.NoNodes {
		return []string{"sandbox", "sandbox-apiserver"}
	}
	all := []string{"sandbox", "sandbox-apiserver", "kubelet", "echo", "pause", "ovnkube", "ovn_cni"}
	if o.RunsChart() {
		all = append(all, "helm", "chart/Chart.yaml")
	}
	return all
}

// findBin looks for the repository's bin/: that of the running program, else the nearest above the working directory.
func findBin() (string, error) {
	var from []string
	if self, err := os.Executable(); err == nil {
		from = append(from, filepath.Dir(self))
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for bin/: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		from = append(from, filepath.Join(dir, "bin"))
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for _, dir := range from {
		if _, err := os.Stat(filepath.Join(dir, "sandbox-apiserver")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("the sandbox's programs are not built: run `make sandbox`")
}

// controlMachines is how many control machines there are.
func (o Options) controlMachines() int {
	if o.HA {
		return control.Machines
	}
	return 1
}

// State is the directory with everything of the sandbox.
func (o Options) State() string { return filepath.Join(o.StateRoot, o.Name) }

// Address ranges of the cluster.
const (
	podsV4, podsV6         = "10.244.0.0/16/24", "fd00:10:244::/48/64"
	servicesV4, servicesV6 = "10.96.0.0/16", "fd02::/112"
	servicesOfKubeadm      = "10.96.0.0/12" // kubeadm's default
)

func (o Options) families(v4, v6 string) string {
	if o.DualStack {
		return strings.Join([]string{v4, v6}, ",")
	}
	return v4
}

// ClusterSubnets are the ranges of pods, as ovnkube's --cluster-subnets.
func (o Options) ClusterSubnets() string { return o.families(podsV4, podsV6) }

// ServiceCIDRs are the ranges of ClusterIPs. With the chart, the cluster is as kubeadm makes one, and only the API
// server knows them.
func (o Options) ServiceCIDRs() string {
	if o.RunsChart() {
		return o.families(servicesOfKubeadm, servicesV6)
	}
	return o.families(servicesV4, servicesV6)
}
