package config

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// Encapsulations (ovn-controller(8) "ovn-encap-type") and datapaths (ovs-vswitchd.conf.db(5) "datapath_type").
const (
	EncapGeneve    = "geneve"
	EncapVXLAN     = "vxlan"
	DatapathSystem = "system"
	DatapathNetdev = "netdev"
)

// BridgeMapping maps a physical network to the OVS bridge that is connected to it.
type BridgeMapping struct {
	Network string // network_name of localnet ports
	Bridge  string // OVS bridge
}

// String is "network:bridge".
func (m BridgeMapping) String() string { return m.Network + ":" + m.Bridge }

// Node is the node agent's configuration.
type Node struct {
	Kubernetes     Kubernetes
	Name           string          // of the Kubernetes Node
	ClusterSubnets []ClusterSubnet // ranges of all pods, reached through the management port
	ServiceCIDRs   []netip.Prefix  // ranges of ClusterIPs, reached through the management port
	JoinSubnets    []netip.Prefix  // of the switch between the cluster router and the gateway routers
	Services       Services
	OVSAddress     string          // the local Open_vSwitch database, unix:PATH or tcp:HOST:PORT
	SystemID       string          // chassis name; empty: system-id stays as it is
	SBAddress      string          // the Southbound database for ovn-controller; empty: ovn-remote stays as it is
	SBKeys         Keys            // for ovn-controller; empty: the SSL row of Open vSwitch stays as it is
	AllowTCP       bool            // take tcp: addresses of the Southbound database
	EncapIPs       []netip.Addr    // tunnel end points; empty: ovn-encap-ip, else the Node's InternalIP
	EncapType      string          // geneve or vxlan, the same on every node
	DatapathType   string          // of br-int: system or netdev
	BridgeMappings []BridgeMapping // empty: ovn-bridge-mappings stays as it is
	Gateway        Gateway
	MTU            int    // of pods and the management port in bytes; 0: the tunnel interface's MTU less the overhead
	OVNRunDir      string // directory of ovn-controller's control socket
	CNIConfDir     string // directory of the runtime's network configurations
	CNIBinDir      string // directory of the runtime's plugins
	CNISocketDir   string // directory of the socket that ovn_cni connects to
	Metrics        string // HOST:PORT of /metrics, /healthz and /readyz
}

// CNISocketName is the file name of the agent's socket in CNISocketDir.
const CNISocketName = "ovn-cni-server.sock"

// CNISocket is the path of the agent's socket.
func (n Node) CNISocket() string { return filepath.Join(n.CNISocketDir, CNISocketName) }

// OVSRunDir is the directory of Open vSwitch's sockets, that of the database among them. ok is false if the database is
// not on this host.
func (n Node) OVSRunDir() (dir string, ok bool) {
	path, ok := strings.CutPrefix(n.OVSAddress, "unix:")
	return filepath.Dir(path), ok
}

// SBAddresses are the servers in SBAddress.
func (n Node) SBAddresses() []string { return ParseRemotes(n.SBAddress) }

// ParseRemotes lists the connection methods in a comma-separated list (ovn-controller(8), "ovn-remote").
func ParseRemotes(s string) (out []string) {
	for r := range strings.SplitSeq(s, ",") {
		if r = strings.TrimSpace(r); r != "" {
			out = append(out, r)
		}
	}
	return out
}

// RemoteHosts lists HOST:PORT of the connection methods that have one, such as "tcp:192.0.2.1:6642" and
// "ssl:[2001:db8::1]:6642" (ovsdb(7)).
func RemoteHosts(remotes string) (out []string) {
	for _, remote := range ParseRemotes(remotes) {
		if scheme, host, _ := strings.Cut(remote, ":"); scheme == "tcp" || scheme == "ssl" {
			out = append(out, host)
		}
	}
	return out
}

// DefaultNode is a node with the kernel datapath. Its tunnel end point comes from OVS or from the Node object.
func DefaultNode() Node {
	c := DefaultCluster()
	return Node{
		ClusterSubnets: c.Subnets,
		ServiceCIDRs:   c.ServiceCIDRs,
		JoinSubnets:    c.JoinSubnets,
		Services:       c.Services,
		OVSAddress:     "unix:/var/run/openvswitch/db.sock",
		EncapType:      EncapGeneve,
		DatapathType:   DatapathSystem,
		OVNRunDir:      "/var/run/ovn",
		CNIConfDir:     "/etc/cni/net.d",
		CNIBinDir:      "/opt/cni/bin",
		CNISocketDir:   "/run/ovn-kubernetes/cni",
		Metrics:        DefaultNodeMetrics,
	}
}

// Validate returns an error for everything that is wrong, with the flag's name.
func (n Node) Validate() error {
	var errs []error
	if n.Name == "" {
		errs = append(errs, errors.New("--node-name: the name of this machine's Kubernetes Node is needed"))
	}
	if len(n.ClusterSubnets) == 0 {
		errs = append(errs, errors.New("--cluster-subnets: at least one is needed, the same as the master has, "+
			"such as 10.128.0.0/14/23"))
	}
	if n.EncapType == "" {
		errs = append(errs, fmt.Errorf("--encap-type \"\": want %s or %s", EncapGeneve, EncapVXLAN))
	}
	if n.DatapathType != DatapathSystem && n.DatapathType != DatapathNetdev {
		errs = append(errs, fmt.Errorf("--datapath-type %q: want %s (kernel module) or %s (userspace)",
			n.DatapathType, DatapathSystem, DatapathNetdev))
	}
	errs = append(errs, Tunnels{n.EncapType, n.MTU}.validate(n.ClusterSubnets), n.validateEncapIPs(),
		n.Gateway.Validate(), n.Services.Validate(),
		validateRemote("--ovs-address", n.OVSAddress))
	for _, r := range n.SBAddresses() {
		errs = append(errs, validateRemote("--sb-address", r))
	}
	errs = append(errs, n.SBKeys.validate("sb", false))
	for flag, dir := range map[string]string{
		"--ovn-rundir": n.OVNRunDir, "--cni-conf-dir": n.CNIConfDir, "--cni-bin-dir": n.CNIBinDir,
		"--cni-socket-dir": n.CNISocketDir,
	} {
		if !filepath.IsAbs(dir) {
			errs = append(errs, fmt.Errorf("%s %q: want an absolute path", flag, dir))
		}
	}
	return errors.Join(errs...)
}

func (n Node) validateEncapIPs() error {
	for i, a := range n.EncapIPs {
		if slices.Contains(n.EncapIPs[:i], a) {
			return fmt.Errorf("--encap-ip %s: given twice", a)
		}
		if a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() {
			return fmt.Errorf("--encap-ip %s: want an address of this node that the other nodes can reach", a)
		}
	}
	return nil
}

// validateRemote checks the form of an active OVSDB connection method
// (ovsdb(7), "Active Connection Methods").
func validateRemote(flag, r string) error {
	scheme, rest, ok := strings.Cut(r, ":")
	if !ok || rest == "" || (scheme != "unix" && scheme != "tcp" && scheme != "ssl") {
		return fmt.Errorf("%s %q: want unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT", flag, r)
	}
	return nil
}

// ParseAddrs reads a comma-separated list of IP addresses. what names the setting in errors.
func ParseAddrs(what, s string) ([]netip.Addr, error) {
	return parseList(what, s, func(item string) (netip.Addr, error) {
		a, err := netip.ParseAddr(item)
		if err != nil || a.Zone() != "" || a.Is4In6() {
			return a, errors.New("want an IP address such as 172.18.0.2")
		}
		return a, nil
	})
}

// ParseBridgeMappings reads a list such as "physnet:br-phys,other:br-other".
func ParseBridgeMappings(s string) ([]BridgeMapping, error) {
	seen := map[string]bool{}
	return parseList("--bridge-mappings", s, func(item string) (BridgeMapping, error) {
		network, bridge, ok := strings.Cut(item, ":")
		if !ok || network == "" || bridge == "" || strings.Contains(bridge, ":") {
			return BridgeMapping{}, errors.New("want NETWORK:BRIDGE such as physnet:br-phys")
		}
		if seen[network] {
			return BridgeMapping{}, fmt.Errorf("network %q is given twice", network)
		}
		seen[network] = true
		return BridgeMapping{network, bridge}, nil
	})
}
