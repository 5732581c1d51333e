package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox/cgroup"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// Names of its services.
const (
	OVSDB      = "ovsdb-server"
	VSwitchd   = "ovs-vswitchd"
	Controller = "ovn-controller"
	Containerd = "containerd"
	Kubelet    = "kubelet"
	Agent      = "ovnkube-node"
)

// AgentMetrics is the address of ovnkube node's metrics in the node's network.
const AgentMetrics = "127.0.0.1:9410"

// GatewayLabel is a label of the Nodes that are gateways.
const GatewayLabel = "gateway=true"

// PhysicalBridge has the node's addresses and carries its tunnels.
const PhysicalBridge = "br-phys"

// Config configures a node.
type Config struct {
	Index          int            // from 1
	Addrs          []netip.Prefix // of the node, IPv4 first
	Control        netip.Addr     // of the control machine
	Machines       []netip.Addr   // of every control machine, by which to reach its Southbound database
	Cgroup         string         // name of the control group of its pods
	ClusterSubnets string
	ServiceCIDRs   string
	Images         []string       // tar files
	ClusterDNS     []netip.Addr   // of cluster DNS; none if there is no cluster DNS
	Taint          string         // key of two taints that the Node is registered with; "" for none
	Router         []netip.Prefix // next hops to the outside; none if there is no outside
	Gateway        bool           // whether the node is a gateway
	AgentArgs      []string       // further arguments of ovnkube node
	Chart          bool           // ovn-controller and the agent are pods
	Later          bool           // Install starts ovn-controller and the agent, if they are no pods
	SwitchPods     bool           // Open vSwitch, too
	Tunnel         netip.Prefix   // of the NIC for tunnels, with SwitchPods
}

// Node is the machine.
type Node struct {
	*member.Member
	Config Config
}

// Name is the name of the machine and of the Kubernetes Node.
func Name(index int) string { return fmt.Sprintf("n%d", index) }

// Sysctls are those that the userspace datapath needs.
func Sysctls(dualStack bool) map[string]string {
	s := map[string]string{
		"net.ipv4.ip_forward": "1",
		// The kernel sees the frames on the veths that Open vSwitch reads. It must not answer ARP for an address of another
		// link.
		"net.ipv4.conf.all.arp_ignore":    "1",
		"net.ipv4.conf.all.rp_filter":     "0",
		"net.ipv4.conf.default.rp_filter": "0",
		"net.ipv6.conf.all.forwarding":    "1",
		"net.ipv6.conf.default.accept_ra": "0",
	}
	if !dualStack {
		s["net.ipv6.conf.default.disable_ipv6"] = "1"
	}
	return s
}

// StartNetwork connects the node to the underlay and starts Open vSwitch and
// ovn-controller.
func (n *Node) StartNetwork(ctx context.Context, c *control.Control) error {
	if err := n.StartSwitch(ctx, c.Member); err != nil {
		return err
	}
	if n.Config.Chart {
		return n.bare(ctx)
	}
	if n.Config.Later {
		_, err := n.Run(ctx, "rm", plugin)
		return err
	}
	return n.startController(ctx)
}

// plugin is where the container runtime looks for the CNI plugin.
const plugin = member.CNIBinDir + "/ovn_cni"

// Install brings the CNI plugin to a node that never had it, and starts ovn-controller and the agent.
func (n *Node) Install(ctx context.Context) error {
	if _, err := n.Run(ctx, "install", "-m", "755", member.BinDir+"/ovn_cni", plugin); err != nil {
		return err
	}
	if err := n.startController(ctx); err != nil {
		return err
	}
	return n.StartAgent(ctx)
}

func (n *Node) startController(ctx context.Context) error {
	return n.service(ctx, Controller, "ovn-controller", "unix:/run/openvswitch/db.sock", "--no-chdir", "-vsyslog:off",
		"--pidfile")
}

// StartSwitch connects the node to the underlay, whose bridge is on another machine. It starts Open vSwitch, with the
// node's addresses on the physical bridge.
func (n *Node) StartSwitch(ctx context.Context, bridge *member.Member) error {
	if err := underlay.Attach(bridge, n.Member); err != nil {
		return err
	}
	if n.Config.SwitchPods {
		return n.startBareNetwork(bridge)
	}
	if err := n.linkLogs(); err != nil {
		return err
	}
	const db = "/etc/openvswitch/conf.db"
	if _, err := n.Run(ctx, "ovsdb-tool", "create", db, "/usr/share/openvswitch/vswitch.ovsschema"); err != nil {
		return err
	}
	err := n.service(ctx, OVSDB, "ovsdb-server", "--no-chdir", "-vsyslog:off", "--pidfile",
		"--remote=punix:/run/openvswitch/db.sock", db)
	if err != nil {
		return err
	}
	err = n.Until(ctx, "the Open_vSwitch database listens", func(context.Context) bool {
		c, err := net.Dial("unix", filepath.Join(n.Spec.RunDir(), "openvswitch/db.sock"))
		if err == nil {
			err = c.Close() // the file is there before the server listens
		}
		return err == nil
	}, OVSDB)
	if err != nil {
		return err
	}
	row := []string{"ovs-vsctl", "--no-wait", "init", "--", "set", "Open_vSwitch", ".",
		"other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1",
		"external_ids:system-id=" + n.Spec.Name, "external_ids:hostname=" + n.Spec.Name}
	if len(n.Config.Machines) > 1 {
		row = append(row, fmt.Sprintf("external_ids:ovn-remote-probe-interval=%d", control.NodeProbe))
	}
	if _, err = n.Run(ctx, row...); err != nil {
		return err
	}
	// With --monitor, the datapath restarts after a crash and logs it, as on a real node.
	if err := n.service(ctx, VSwitchd, "ovs-vswitchd", "--monitor", "--no-chdir", "-vsyslog:off",
		"--pidfile"); err != nil {
		return err
	}
	_, err = n.Run(ctx, "ovs-vsctl", "--timeout=30", "--", "add-br", PhysicalBridge, "--", "set", "bridge", PhysicalBridge,
		"datapath_type=netdev", "fail-mode=standalone", fmt.Sprintf("other_config:hwaddr=02:00:00:00:00:%02x",
			n.Config.Index),
		"--", "add-port", PhysicalBridge, underlay.Uplink)
	if err != nil {
		return err
	}
	return n.address(PhysicalBridge)
}

// bare makes the node one that has never seen the product, as kubeadm leaves it.
func (n *Node) bare(ctx context.Context) error {
	kubeconfig, _ := control.NodeKubeconfigs(n.Spec.State, n.Spec.Name)
	for _, argv := range [][]string{
		{"rm", plugin},
		{"install", "-D", "-m", "600", kubeconfig, "/etc/kubernetes/kubelet.conf"},
	} {
		if _, err := n.Run(ctx, argv...); err != nil {
			return err
		}
	}
	return nil
}

// linkLogs links the logs of Open vSwitch and OVN to their usual paths.
func (n *Node) linkLogs() error {
	for dir, names := range map[string][]string{"openvswitch": {OVSDB, VSwitchd}, "ovn": {Controller}} {
		if err := os.MkdirAll(filepath.Join(n.Spec.LogDir(), dir), 0o755); err != nil {
			return fmt.Errorf("making log directories: %w", err)
		}
		for _, name := range names {
			if err := os.Symlink("../"+name+".log", filepath.Join(n.Spec.LogDir(), dir, name+".log")); err != nil {
				return fmt.Errorf("making log directories: %w", err)
			}
		}
	}
	return nil
}

// startBareNetwork gives the node its addresses without Open vSwitch, and a second NIC for tunnels. Without the
// kernel's module, that one goes into a bridge. The first one must not: the node would lose the API server with its
// pods.
func (n *Node) startBareNetwork(bridge *member.Member) error {
	if err := n.address(underlay.Uplink); err != nil {
		return err
	}
	if err := underlay.AttachTunnel(bridge, n.Member); err != nil {
		return err
	}
	h, err := n.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	return underlay.Address(h, underlay.TunnelUplink, []netip.Prefix{n.Config.Tunnel})
}

// address gives the node's addresses to a link.
func (n *Node) address(link string) error {
	h, err := n.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	if err := underlay.Address(h, link, n.Config.Addrs); err != nil {
		return err
	}
	return underlay.DefaultRoutes(h, link, n.Config.Router)
}

func (n *Node) service(ctx context.Context, name string, argv ...string) error {
	return n.StartService(ctx, member.Service{Name: name, Argv: argv})
}

// StartRuntime starts containerd and gives it the images.
func (n *Node) StartRuntime(ctx context.Context) error {
	if err := cgroup.Make(n.Config.Cgroup); err != nil {
		return err
	}
	config := filepath.Join(n.Spec.Dir(), "containerd.toml")
	if err := os.WriteFile(config, []byte(containerdConfig()), 0o644); err != nil {
		return fmt.Errorf("configuring containerd: %w", err)
	}
	if err := n.service(ctx, Containerd, "containerd", "--config", config); err != nil {
		return err
	}
	err := n.Until(ctx, "containerd answers", func(ctx context.Context) bool {
		_, err := n.Run(ctx, "ctr", "version")
		return err == nil
	}, Containerd)
	if err != nil {
		return err
	}
	for _, file := range n.Config.Images {
		if err := n.Load(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

// Load gives containerd the images of a file.
func (n *Node) Load(ctx context.Context, file string) error {
	_, err := n.Run(ctx, "ctr", "-n", "k8s.io", "images", "import", file)
	return err
}

// StartAgent starts ovnkube node. Settings that every ovnkube on the node needs are in the settings file, so that
// people need not give them.
func (n *Node) StartAgent(ctx context.Context) error {
	settings := filepath.Join(n.Spec.Dir(), "ovn_k8s.conf")
	if err := os.WriteFile(settings, []byte(n.settings()), 0o644); err != nil {
		return fmt.Errorf("writing the settings: %w", err)
	}
	if _, err := n.Run(ctx, "cp", settings, "/etc/openvswitch/ovn_k8s.conf"); err != nil {
		return err
	}
	keys := control.NodeKeys(n.Spec.State, n.Spec.Name)
	argv := append([]string{
		"ovnkube", "node", "--node-name", n.Spec.Name,
		"--sb-address", control.Remote(n.Config.Machines, control.SBPort),
		"--sb-privkey", keys.Key, "--sb-cert", keys.Cert, "--sb-cacert", keys.CA,
		"--ovs-address", "unix:/run/openvswitch/db.sock", "--encap-ip", n.Config.Addrs[0].Addr().String(),
		"--bridge-mappings", "physnet:" + PhysicalBridge,
		"--metrics-bind-address", AgentMetrics,
	}, n.Config.AgentArgs...)
	if n.Config.Gateway {
		argv = append(argv, "--gateway-mode", "shared", "--gateway-interface", PhysicalBridge)
	}
	return n.service(ctx, Agent, argv...)
}

// settings is the node's settings file.
func (n *Node) settings() string {
	_, kubeconfig := control.NodeKubeconfigs(n.Spec.State, n.Spec.Name)
	return fmt.Sprintf("[default]\ncluster-subnets = %s\ndatapath-type = netdev\nmtu = 1400\n[kubernetes]\nkubeconfig "+
		"= %s\nservice-cidrs = %s\n",
		n.Config.ClusterSubnets, kubeconfig, n.Config.ServiceCIDRs)
}

// StartKubelet starts the kubelet, which registers the node.
func (n *Node) StartKubelet(ctx context.Context) error {
	config := filepath.Join(n.Spec.Dir(), "kubelet.yaml")
	if err := os.WriteFile(config, []byte(n.kubeletConfig()), 0o644); err != nil {
		return fmt.Errorf("configuring the kubelet: %w", err)
	}
	kubeconfig, _ := control.NodeKubeconfigs(n.Spec.State, n.Spec.Name)
	argv := []string{"kubelet", "--config=" + config, "--kubeconfig=" + kubeconfig, "--hostname-override=" + n.Spec.Name,
		"--node-ip=" + n.addrs(), "--cert-dir=/var/lib/kubelet/pki", "--v=2"}
	if n.Config.Gateway {
		argv = append(argv, "--node-labels="+GatewayLabel)
	}
	return n.service(ctx, Kubelet, argv...)
}

func (n *Node) addrs() string {
	var all []string
	for _, p := range n.Config.Addrs {
		all = append(all, p.Addr().String())
	}
	return strings.Join(all, ",")
}

// Reach pings an address until it answers: the first packet between two machines is lost while they resolve the
// neighbour.
func (n *Node) Reach(ctx context.Context, addr netip.Addr) error {
	needs := []string{VSwitchd}
	if n.Config.SwitchPods {
		needs = nil
	}
	return n.Until(ctx, fmt.Sprintf("%s reaches %s", n.Spec.Name, addr), func(ctx context.Context) bool {
		_, err := n.Run(ctx, "ping", "-n", "-q", "-c1", "-W1", addr.String())
		return err == nil
	}, needs...)
}
