package config

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// Encapsulations and datapaths that ovn-controller and Open vSwitch know
// (ovn-controller(8) "ovn-encap-type", ovs-vswitchd.conf.db(5) "datapath_type").
const (
	EncapGeneve    = "geneve"
	EncapVXLAN     = "vxlan"
	DatapathSystem = "system"
	DatapathNetdev = "netdev"
)

// BridgeMapping says which OVS bridge reaches a physical network.
type BridgeMapping struct {
	Network string // network_name of localnet ports
	Bridge  string // OVS bridge
}

// String is "network:bridge".
func (m BridgeMapping) String() string { return m.Network + ":" + m.Bridge }

// Node is what the node agent is told.
type Node struct {
	Kubernetes     Kubernetes
	Name           string          // of the Kubernetes Node
	ClusterSubnets []ClusterSubnet // ranges of all pods, reached through the management port
	ServiceCIDRs   []netip.Prefix  // ranges of ClusterIPs, likewise
	OVSAddress     string          // the local Open_vSwitch database, unix:PATH or tcp:HOST:PORT
	SBAddress      string          // the Southbound database for ovn-controller; empty leaves what is set
	EncapIPs       []netip.Addr    // tunnel end points; empty: what is set in OVS, else the Node's InternalIP
	EncapType      string          // geneve or vxlan, the same on every node
	DatapathType   string          // of br-int: system or netdev
	BridgeMappings []BridgeMapping // empty leaves what is set
	Gateway        Gateway
	MTU            int    // of pods and the management port, bytes; 0: the tunnel interface's less the overhead
	OVNRunDir      string // where ovn-controller has its socket
	CNIConfDir     string // where the runtime looks for network configurations
	CNIBinDir      string // where the runtime looks for plugins
	CNISocketDir   string // directory of the socket that ovn_cni talks to
	Metrics        string // HOST:PORT of /metrics, /healthz and /readyz
}

// CNISocketName is the file name of the agent's socket in CNISocketDir.
const CNISocketName = "ovn-cni-server.sock"

// CNISocket is the path of the agent's socket.
func (n Node) CNISocket() string { return filepath.Join(n.CNISocketDir, CNISocketName) }

// OVSRunDir is where Open vSwitch's daemons have their sockets: beside that of
// the database. ok is false when that is not on this host.
func (n Node) OVSRunDir() (dir string, ok bool) {
	path, ok := strings.CutPrefix(n.OVSAddress, "unix:")
	return filepath.Dir(path), ok
}

// DefaultNode is a node with the kernel datapath whose tunnel end point is
// found in OVS or in the Node object.
func DefaultNode() Node {
	c := DefaultCluster()
	return Node{
		ClusterSubnets: c.Subnets,
		ServiceCIDRs:   c.ServiceCIDRs,
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

// The smallest MTU of IPv4 (RFC 791) and of IPv6 (RFC 8200 section 5), and the
// largest that an interface can have.
const (
	minMTUv4 = 576
	minMTUv6 = 1280
	maxMTU   = 65535
)

// Validate tells everything that is wrong, each error naming the flag.
func (n Node) Validate() error {
	var errs []error
	if n.Name == "" {
		errs = append(errs, errors.New("--node-name: the name of this machine's Kubernetes Node is needed"))
	}
	if len(n.ClusterSubnets) == 0 {
		errs = append(errs, errors.New("--cluster-subnets: at least one is needed, the same as the master has, such as 10.128.0.0/14/23"))
	}
	if n.EncapType != EncapGeneve && n.EncapType != EncapVXLAN {
		errs = append(errs, fmt.Errorf("--encap-type %q: want %s or %s", n.EncapType, EncapGeneve, EncapVXLAN))
	}
	if n.DatapathType != DatapathSystem && n.DatapathType != DatapathNetdev {
		errs = append(errs, fmt.Errorf("--datapath-type %q: want %s (kernel module) or %s (userspace)", n.DatapathType, DatapathSystem, DatapathNetdev))
	}
	errs = append(errs, n.validateMTU(), n.validateEncapIPs(), n.Gateway.Validate(), validateRemote("--ovs-address", n.OVSAddress))
	if n.SBAddress != "" {
		for _, r := range strings.Split(n.SBAddress, ",") {
			errs = append(errs, validateRemote("--sb-address", r))
		}
	}
	for flag, dir := range map[string]string{"--ovn-rundir": n.OVNRunDir, "--cni-conf-dir": n.CNIConfDir, "--cni-bin-dir": n.CNIBinDir, "--cni-socket-dir": n.CNISocketDir} {
		if !filepath.IsAbs(dir) {
			errs = append(errs, fmt.Errorf("%s %q: want an absolute path", flag, dir))
		}
	}
	return errors.Join(errs...)
}

func (n Node) validateMTU() error {
	if n.MTU == 0 {
		return nil
	}
	least := minMTUv4
	for _, s := range n.ClusterSubnets {
		if s.CIDR.Addr().Is6() {
			least = minMTUv6
		}
	}
	if n.MTU < least || n.MTU > maxMTU {
		return fmt.Errorf("--mtu %d: want between %d and %d bytes, or 0 to derive it from the tunnel interface", n.MTU, least, maxMTU)
	}
	return nil
}

func (n Node) validateEncapIPs() error {
	for i, a := range n.EncapIPs {
		if slices.Contains(n.EncapIPs[:i], a) {
			return fmt.Errorf("--encap-ip %s: given twice", a)
		}
		if a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() {
			return fmt.Errorf("--encap-ip %s: want an address of this node that the other nodes reach", a)
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

// ParseAddrs reads a comma-separated list of IP addresses; an empty string is
// an empty list. what names the setting in errors.
func ParseAddrs(what, s string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, item := range strings.Split(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		a, err := netip.ParseAddr(item)
		if err != nil || a.Zone() != "" || a.Is4In6() {
			return nil, fmt.Errorf("parsing %s %q: want an IP address such as 172.18.0.2", what, item)
		}
		out = append(out, a)
	}
	return out, nil
}

// ParseBridgeMappings reads "physnet:br-phys,other:br-other"; an empty string
// is an empty list.
func ParseBridgeMappings(s string) ([]BridgeMapping, error) {
	var out []BridgeMapping
	seen := map[string]bool{}
	for _, item := range strings.Split(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		network, bridge, ok := strings.Cut(item, ":")
		if !ok || network == "" || bridge == "" || strings.Contains(bridge, ":") {
			return nil, fmt.Errorf("parsing --bridge-mappings %q: want NETWORK:BRIDGE such as physnet:br-phys", item)
		}
		if seen[network] {
			return nil, fmt.Errorf("parsing --bridge-mappings %q: network %q is given twice", item, network)
		}
		seen[network] = true
		out = append(out, BridgeMapping{network, bridge})
	}
	return out, nil
}
