package preflight

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/doctor"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// oldestKernel is the first with what the nftables rules need.
const oldestKernel = "5.10"

// finding joins the faults, or says what is fine without any.
func (f *faults) finding(format string, args ...any) doctor.Finding {
	if len(f.wrong) == 0 {
		return fine(format, args...)
	}
	return doctor.Finding{Status: doctor.Problem, Message: strings.Join(f.wrong, "; "), Fix: slices.Compact(f.fixes)}
}

func checkKernel(c Config, f Facts) doctor.Finding {
	var wrong faults
	if c.Worker && !doctor.AtLeast(f.Kernel, oldestKernel) {
		wrong.add("# upgrade Linux", "Linux %s is older than %s", f.Kernel, oldestKernel)
	}
	return wrong.finding("Linux %s", f.Kernel)
}

// fixModule gets the modules of Debian's own kernel.
const fixModule = "apt-get install linux-image-$(dpkg --print-architecture)  # or --datapath-type netdev"

func checkDatapath(c Config, f Facts) doctor.Finding {
	var wrong faults
	switch {
	case !c.Worker:
		return fine("not needed here")
	case c.Node.DatapathType == config.DatapathNetdev && !f.Tun:
		wrong.add("modprobe tun", "/dev/net/tun is missing, with which the userspace datapath makes its ports")
	case c.Node.DatapathType != config.DatapathNetdev && !f.Modules[moduleOVS]:
		wrong.add(fixModule,
			"the kernel %s has no module openvswitch", f.Kernel)
	}
	return wrong.finding("%s", c.Node.DatapathType)
}

func checkTunnelModule(c Config, f Facts) doctor.Finding {
	var wrong faults
	if !c.Worker || c.Node.DatapathType == config.DatapathNetdev {
		return fine("not needed here")
	}
	if !f.Modules[c.Node.EncapType] {
		wrong.add(fixModule,
			"the kernel %s has no module %s", f.Kernel, c.Node.EncapType)
	}
	return wrong.finding("%s", c.Node.EncapType)
}

func checkIPv6(c Config, f Facts) doctor.Finding {
	six := slices.ContainsFunc(c.Node.ClusterSubnets, func(s config.ClusterSubnet) bool { return s.CIDR.Addr().Is6() }) ||
		slices.ContainsFunc(c.Node.EncapIPs, netip.Addr.Is6)
	var wrong faults
	switch {
	case !six:
		return fine("not asked for by --cluster-subnets or --encap-ip")
	case !f.IPv6:
		wrong.add("# remove ipv6.disable=1 from the kernel's command line, and reboot", "the kernel was started without IPv6")
	}
	return wrong.finding("the kernel has IPv6")
}

// programs lists the programs that a machine needs, each with the oldest version and the Debian package.
func programs(c Config) map[string][2]string {
	out := map[string][2]string{"ovsdb-server": {doctor.OldestOVS, "openvswitch-switch"}}
	if c.Worker {
		out["ovs-vswitchd"] = [2]string{doctor.OldestOVS, "openvswitch-switch"}
		out["ovn-controller"] = [2]string{doctor.OldestOVN, "ovn-host"}
	}
	if c.Central {
		out["ovn-northd"] = [2]string{doctor.OldestOVN, "ovn-central"}
	}
	return out
}

func checkPrograms(c Config, f Facts) doctor.Finding {
	var wrong faults
	if c.InPods {
		if f.Processes["ovs-vswitchd"] || f.Processes["ovsdb-server"] {
			wrong.add("systemctl disable --now openvswitch-switch  # or openvswitch.inPods=false in the chart's values",
				"this machine's own Open vSwitch runs")
		}
		return wrong.finding("pods have them, and this machine's own Open vSwitch does not run")
	}
	var found []string
	needed := programs(c)
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		oldest, pkg := needed[name][0], needed[name][1]
		version, there := f.Programs[name]
		switch {
		case !there:
			wrong.add("apt-get install "+pkg, "%s is not installed", name)
		case version == "":
			wrong.add(name+" --version  # which should print it", "%s does not tell its version", name)
		case !doctor.AtLeast(version, oldest):
			wrong.add("apt-get install "+pkg+"  # from a newer release of the distribution", "%s is %s, older than %s", name,
				version, oldest)
		case name == "ovs-vswitchd" && c.Node.DatapathType == config.DatapathNetdev && doctor.BrokenUserspace(version):
			wrong.add("# upgrade Open vSwitch to 3.1.3, 3.2.3, 3.3.0 or newer",
				"the userspace datapath of Open vSwitch %s aborts now and then in connection tracking", version)
		}
		found = append(found, name+" "+version)
	}
	return wrong.finding("%s", strings.Join(found, ", "))
}

func checkClock(c Config, f Facts) doctor.Finding {
	switch {
	case !c.Kubernetes:
		return unchecked("no API server is given to compare with")
	case f.API.Date.IsZero():
		return unchecked("the API server does not tell the time")
	}
	return doctor.Clock(f.API)
}

func checkTimeSync(_ Config, f Facts) doctor.Finding {
	var wrong faults
	if !f.InSync {
		wrong.add("timedatectl set-ntp true",
			"the clock is not synchronised: no program keeps it right, or it has just started")
		wrong.fixes = append(wrong.fixes, "chronyc tracking  # where chrony keeps the time")
	}
	return wrong.finding("the clock is synchronised")
}

// Ports lists the ports that are to be listened on.
func Ports(c Config) (out []Port) {
	if c.Worker {
		out = append(out, Port{"udp", tunnelPort(c.Node.EncapType)}, Port{"tcp", c.Node.Metrics})
	}
	if c.Central {
		for port := 6641; port <= 6644; port++ { // Northbound, Southbound, and Raft of each (ovn-ctl(8))
			out = append(out, Port{"tcp", fmt.Sprintf(":%d", port)})
		}
		out = append(out, Port{"tcp", config.DefaultMaster().Metrics})
	}
	return out
}

// tunnelPort is the destination port of tunnels.
func tunnelPort(encapType string) string {
	if encapType == config.EncapVXLAN {
		return fmt.Sprintf(":%d", names.VXLANPort)
	}
	return fmt.Sprintf(":%d", names.GenevePort)
}

// ownTunnels lists the interfaces with which Open vSwitch's kernel module listens for tunnels.
func ownTunnels() map[string]string {
	return map[string]string{
		tunnelPort(config.EncapGeneve): "genev_sys_6081", tunnelPort(config.EncapVXLAN): "vxlan_sys_4789",
	}
}

func checkPorts(c Config, f Facts) doctor.Finding {
	var wrong faults
	var free []string
	for _, p := range Ports(c) {
		why, busy := f.Busy[p]
		if busy && (p.Network != "udp" || !f.Links[ownTunnels()[p.Address]]) {
			number := p.Address[strings.LastIndex(p.Address, ":"):]
			wrong.add(fmt.Sprintf("ss -lnp --%s 'sport = %s'  # end that program", p.Network, number), "%s: %v", p, why)
		}
		free = append(free, p.String())
	}
	return wrong.finding("free: %s", strings.Join(free, ", "))
}
