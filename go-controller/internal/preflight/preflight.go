package preflight

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/doctor"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/nft"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/xtables"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// Config is what is to be installed on the machine.
type Config struct {
	Node       config.Node   // as `ovnkube node` is to have it; Name and ClusterSubnets may be empty
	Worker     bool          // the node agent and what it needs
	Central    bool          // the databases, ovn-northd and the master
	InPods     bool          // the chart brings Open vSwitch and OVN
	Kubernetes bool          // whether an API server was named
	Timeout    time.Duration // for its answer
}

// Facts is what a machine is like.
type Facts struct {
	Kernel    string            // its release, such as 6.1.0-31-amd64
	Modules   map[string]bool   // those of modules that are loaded, built in, or can be loaded
	Tun       bool              // /dev/net/tun is there
	IPv6      bool              // the kernel has not been started without IPv6
	Programs  map[string]string // the version of each program that was found; "" if it does not tell
	Links     map[string]bool   // names of interfaces
	Chains    []nft.Chain
	ConfFiles []string        // file names in the directory of CNI configurations
	Multus    bool            // the first of them is that of Multus, which is no other network
	Processes map[string]bool // names of running programs
	Busy      map[Port]error  // ports that nothing can listen on, and why
	Underlay  []Underlay      // where the tunnel addresses are
	API       client.Answer   // of the API server, if there is one
	UFW       UFW
	Legacy    []xtables.Table // of the old iptables
	InSync    bool            // the kernel's clock is synchronised with others (adjtimex(2))

	NetworkManager string // its configuration, if it runs

	Unknown map[string]error // what could not be found out, by the name of the check that needs it
}

// Underlay is a tunnel address, and its interface if there is one.
type Underlay struct {
	Addr  netip.Addr
	Place hostnet.Place // zero when no interface has the address
}

// Port is a port that something of ours listens on.
type Port struct {
	Network string // "tcp" or "udp"
	Address string // HOST:PORT; without a host for all addresses
}

// String is the port as ss(8) shows it: "udp :6081".
func (p Port) String() string { return p.Network + " " + p.Address }

// Check is one check.
type Check struct {
	Name string // the same in every version
	Why  string // what must be true, for the documentation
	run  func(Config, Facts) doctor.Finding
}

// Checks lists all checks, in the order of the output.
func Checks() []Check {
	return []Check{
		{"kernel", "Linux is 5.10 or newer, whose nftables the node's rules need", checkKernel},
		{"datapath", "Open vSwitch has a datapath: its kernel module, or `/dev/net/tun` with `--datapath-type netdev`",
			checkDatapath},
		{"tunnel-module", "the kernel has the module of the tunnel type, `geneve` or `vxlan`", checkTunnelModule},
		{"ipv6", "the kernel has IPv6 if the cluster has", checkIPv6},
		{"programs", "the programs of Open vSwitch and OVN are there, in versions that were tried; with `--in-pods`, the " +
			"machine's own Open vSwitch does not run", checkPrograms},
		{"ports", "nothing else listens where Northbound, OVN and the tunnels do", checkPorts},
		{"mtu", "the interface of the tunnels has room for the pods' packets and the tunnel's header", checkMTU},
		{"other-network", "no other network plugin than Multus has interfaces, rules, or a configuration that comes " +
			"before ours", checkOtherNetwork},
		{"kube-proxy", "kube-proxy does not run, and has left no rules: they would catch packets to services first",
			checkKubeProxy},
		{"firewall", "no firewall drops what the node forwards between pods and other machines", checkFirewall},
		{"ufw", "ufw, if enabled, accepts what the node forwards, the tunnels, and what nodes send to the databases",
			checkUFW},
		{"iptables-legacy", "the old iptables has no rules of kube-proxy, hostPorts or another network plugin, which act " +
			"beside nftables'", checkLegacy},
		{"networkmanager", "NetworkManager, if it runs, leaves Northbound's interfaces alone", checkNetworkManager},
		{"time-sync", "a program keeps the clock right, such as chrony: certificates and Leases depend on it", checkTimeSync},
		{"clock", "the clock is that of the API server, if one is named", checkClock},
	}
}

// Examine makes every check.
func Examine(c Config, f Facts, machine string) doctor.Diagnosis {
	d := doctor.Diagnosis{Node: machine}
	for _, check := range Checks() {
		finding := unchecked("%v", f.Unknown[check.Name])
		if f.Unknown[check.Name] == nil {
			finding = check.run(c, f)
		}
		finding.Check = check.Name
		if finding.Status == doctor.Problem {
			d.Problems++
		}
		d.Findings = append(d.Findings, finding)
	}
	return d
}

func fine(format string, args ...any) doctor.Finding {
	return doctor.Finding{Status: doctor.OK, Message: fmt.Sprintf(format, args...)}
}

func unchecked(format string, args ...any) doctor.Finding {
	return doctor.Finding{Status: doctor.NotChecked, Message: fmt.Sprintf(format, args...)}
}

// faults are the problems of one check, and the commands that solve them.
type faults struct{ wrong, fixes []string }

func (f *faults) add(fix, format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
	f.fixes = append(f.fixes, fix)
}
