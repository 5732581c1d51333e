package preflight

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/doctor"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/nft"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/xtables"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// healthy is a machine on which Northbound can be installed in every role.
func healthy() (Config, Facts) {
	n := config.DefaultNode()
	n.ClusterSubnets = config.DefaultCluster().Subnets
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return Config{Node: n, Worker: true, Central: true, Kubernetes: true}, Facts{
		Kernel: "6.1.0-31-amd64", IPv6: true, Tun: true,
		Modules: map[string]bool{"openvswitch": true, "geneve": true, "vxlan": true},
		Programs: map[string]string{"ovs-vswitchd": "3.5.0", "ovsdb-server": "3.5.0", "ovn-controller": "25.03.0",
			"ovn-northd": "25.03.0"},
		Links: map[string]bool{"lo": true, "eth0": true},
		Chains: []nft.Chain{{Table: "filter", Name: "FORWARD", Forwards: true},
			{Table: "filter", Name: "INPUT", Drops: true}},
		ConfFiles: []string{names.CNIConfFile, "87-podman-bridge.conflist"},
		Processes: map[string]bool{"kubelet": true},
		Busy:      map[Port]error{},
		Underlay: []Underlay{{netip.MustParseAddr("192.0.2.7"), hostnet.Place{Link: "eth0", MTU: 1500,
			Prefix: netip.MustParsePrefix("192.0.2.7/24")}}},
		API: client.Answer{Date: now, Asked: now, Read: now}, InSync: true,
		Legacy: []xtables.Table{{Name: "filter", Rules: 3, Chains: []string{"KUBE-FIREWALL"}}}, // the kubelet's
	}
}

// fault is something wrong with a machine.
type fault struct {
	check  string
	inject func(*Config, *Facts)
	want   string // of the message
	fix    string // of the first command
}

func injected() []fault {
	return []fault{
		{"kernel", func(_ *Config, f *Facts) { f.Kernel = "5.4.0-150-generic" }, "Linux 5.4.0-150-generic is older than 5.10",
			"# upgrade Linux"},
		{"datapath", func(_ *Config, f *Facts) { f.Modules["openvswitch"] = false }, "has no module openvswitch",
			"--datapath-type netdev"},
		{"datapath", func(c *Config, f *Facts) { c.Node.DatapathType, f.Tun = config.DatapathNetdev, false },
			"/dev/net/tun is missing", "modprobe tun"},
		{"tunnel-module", func(c *Config, f *Facts) { c.Node.EncapType, f.Modules["vxlan"] = config.EncapVXLAN, false },
			"has no module vxlan", "apt-get install linux-image"},
		{"ipv6", func(c *Config, f *Facts) {
			c.Node.EncapIPs, f.IPv6 = []netip.Addr{netip.MustParseAddr("fd00::1")}, false
		}, "started without IPv6", "ipv6.disable=1"},
		{"programs", func(_ *Config, f *Facts) { delete(f.Programs, "ovn-northd") }, "ovn-northd is not installed",
			"apt-get install ovn-central"},
		{"programs", func(_ *Config, f *Facts) { f.Programs["ovs-vswitchd"] = "" }, "ovs-vswitchd does not tell its version",
			"ovs-vswitchd --version"},
		{"programs", func(_ *Config, f *Facts) { f.Programs["ovn-controller"] = "22.03.1" },
			"ovn-controller is 22.03.1, older than 23.03.0", "apt-get install ovn-host"},
		{"programs", func(c *Config, f *Facts) {
			c.Node.DatapathType, f.Programs["ovs-vswitchd"] = config.DatapathNetdev, "3.1.0"
		}, "aborts now and then", "# upgrade Open vSwitch"},
		{"programs", func(c *Config, f *Facts) { c.InPods, f.Processes["ovs-vswitchd"] = true, true },
			"this machine's own Open vSwitch runs", "systemctl disable --now openvswitch-switch"},
		{"ports", func(_ *Config, f *Facts) { f.Busy[Port{"udp", ":6081"}] = errors.New("in use") }, "udp :6081: in use",
			"ss -lnp --udp 'sport = :6081'"},
		{"ports", func(_ *Config, f *Facts) { f.Busy[Port{"tcp", ":6643"}] = errors.New("in use") }, "tcp :6643: in use",
			"ss -lnp --tcp 'sport = :6643'"},
		{"mtu", func(_ *Config, f *Facts) { f.Underlay[0].Place.MTU = 600 }, "leaves 542 for pods: want 576 at least",
			"ip link set eth0 mtu 634  # if the network carries that"},
		{"mtu", func(c *Config, _ *Facts) { c.Node.MTU = 1450 }, "leaves 1442 for pods: want 1450 at least",
			"ip link set eth0 mtu 1508  # if the network carries that; else --mtu 1442"},
		{"mtu", func(_ *Config, f *Facts) { f.Underlay[0].Place = hostnet.Place{} }, "no interface has the tunnel address",
			"ip address show"},
		{"other-network", func(_ *Config, f *Facts) { f.ConfFiles = append(f.ConfFiles, "05-cilium.conflist") },
			"/etc/cni/net.d/05-cilium.conflist comes before", "mv /etc/cni/net.d/05-cilium.conflist /root/"},
		{"other-network", func(_ *Config, f *Facts) { f.Links["flannel.1"] = true }, "interface flannel.1 is of flannel",
			"ip link delete flannel.1"},
		{"other-network", func(_ *Config, f *Facts) {
			f.Chains = append(f.Chains, nft.Chain{Table: "nat", Name: "FLANNEL-POSTRTG"})
		}, "chain FLANNEL-POSTRTG of table nat", "reboot"},
		{"other-network", func(_ *Config, f *Facts) { f.Processes["flanneld"] = true }, "flanneld runs", "migrate.md"},
		{"kube-proxy", func(_ *Config, f *Facts) { f.Processes["kube-proxy"] = true }, "kube-proxy runs",
			"kubectl -n kube-system"},
		{"kube-proxy", func(_ *Config, f *Facts) { f.Links["kube-ipvs0"] = true }, "kube-ipvs0", "kube-proxy --cleanup"},
		{"kube-proxy", func(_ *Config, f *Facts) {
			f.Chains = append(f.Chains, nft.Chain{Table: "nat", Name: "KUBE-SERVICES"})
		}, "chain KUBE-SERVICES of table nat", "kube-proxy --cleanup"},
		{"firewall", func(_ *Config, f *Facts) { f.Processes["firewalld"] = true }, "firewalld runs",
			"systemctl disable --now firewalld"},
		{"firewall", func(_ *Config, f *Facts) { f.Chains[1].Table = "firewalld" }, "firewalld runs", "systemctl disable"},
		{"firewall", func(_ *Config, f *Facts) { f.Chains[0].Drops = true }, "FORWARD of table filter drops",
			"iptables -P FORWARD ACCEPT"},
		{"clock", func(_ *Config, f *Facts) { f.API.Asked = f.API.Asked.Add(time.Hour); f.API.Read = f.API.Asked },
			"clock is 59m59s ahead of the API server's", "timedatectl"},
		{"ufw", func(_ *Config, f *Facts) {
			f.UFW = UFW{Enabled: true, DropsForwarded: true}
			f.Chains[0].Drops = true // as ufw then has it
		}, "ufw drops what the node forwards for pods", "ufw default allow routed"},
		{"ufw", func(c *Config, f *Facts) {
			c.Central = false
			f.UFW = UFW{Enabled: true, DropsInput: true, accepts: []acceptance{{"tcp", "any"}, {"udp", "53,6082:6090"}}}
		}, "ufw drops what other nodes send to udp :6081", "ufw allow proto udp from NETWORK to any port 6081  # NETWORK"},
		{"ufw", func(_ *Config, f *Facts) {
			f.UFW = UFW{Enabled: true, DropsInput: true, accepts: []acceptance{{"any", "6081"}, {"tcp", "6641:6643"}}}
		}, "ufw drops what other nodes send to tcp :6644", "ufw allow proto tcp from NETWORK to any port 6644"},
		{"iptables-legacy", func(_ *Config, f *Facts) { f.Legacy[0].DropsForwarded = true },
			"table filter of iptables-legacy drops forwarded packets", "iptables-legacy -P FORWARD ACCEPT"},
		{"iptables-legacy", func(_ *Config, f *Facts) {
			f.Legacy = append(f.Legacy, xtables.Table{Name: "nat", IPv6: true, Chains: []string{"KUBE-SERVICES"}})
		}, "table nat of ip6tables-legacy has rules of kube-proxy",
			"ip6tables-legacy-save | grep -v -e KUBE- | ip6tables-legacy-restore"},
		{"iptables-legacy", func(_ *Config, f *Facts) {
			f.Legacy = append(f.Legacy, xtables.Table{Name: "nat", Chains: []string{"CNI-HOSTPORT-DNAT", "CNI-DN-1"}})
		}, "they catch connections to pods' hostPorts", "iptables-legacy-save | grep -v -e CNI- | iptables-legacy-restore"},
		{"iptables-legacy", func(_ *Config, f *Facts) { f.Legacy[0].Chains = []string{"cali-FORWARD"} },
			"has chains cali-*, which are of another network plugin", "grep -v -e cali- |"},
		{"networkmanager", func(c *Config, f *Facts) {
			c.Node.Name, f.Processes["NetworkManager"] = "n1", true
			f.NetworkManager = "[keyfile]\nunmanaged-devices=interface-name:br*;interface-name:k8s-n2\n"
		}, "NetworkManager manages genev_sys_6081, vxlan_sys_4789, k8s-n1 when they are made",
			`printf '[keyfile]\nunmanaged-devices=interface-name:br-int;interface-name:genev_sys_*;` +
				`interface-name:vxlan_sys_*;interface-name:k8s-*\n' >/etc/NetworkManager/conf.d/`},
		{"time-sync", func(_ *Config, f *Facts) { f.InSync = false }, "the clock is not synchronised", "timedatectl set-ntp"},
	}
}

// Every fault is found by its check, and by no other. A machine without a fault has no problem.
func TestFaults(t *testing.T) {
	c, f := healthy()
	if d := Examine(c, f, "m"); d.Problems != 0 || d.Node != "m" || len(d.Findings) != len(Checks()) {
		t.Fatalf("a healthy machine: %+v", d)
	}
	for _, fault := range injected() {
		c, f := healthy()
		fault.inject(&c, &f)
		for _, finding := range Examine(c, f, "m").Findings {
			switch {
			case finding.Check != fault.check:
				if finding.Status == doctor.Problem {
					t.Errorf("%s: %s also finds %s", fault.want, finding.Check, finding.Message)
				}
			case finding.Status != doctor.Problem || !strings.Contains(finding.Message, fault.want) ||
				len(finding.Fix) == 0 || !strings.Contains(finding.Fix[0], fault.fix):
				t.Errorf("%s: %+v, want %q, to be solved with %q", finding.Check, finding, fault.want, fault.fix)
			}
		}
	}
}

// While flannel runs, no command is named that would cut off its pods. Another network plugin is still found.
func TestRunningFlannel(t *testing.T) {
	c, f := healthy()
	f.Processes["flanneld"] = true
	f.ConfFiles = append(f.ConfFiles, "10-flannel.conflist", "05-cilium.conflist")
	f.Links["flannel.1"], f.Links["cni0"], f.Links["cilium_host"] = true, true, true
	f.Chains = append(f.Chains, nft.Chain{Table: "nat", Name: "FLANNEL-POSTRTG"})
	want := []string{"# move the cluster node by node, as docs/operate/migrate.md says",
		"mv /etc/cni/net.d/05-cilium.conflist /root/", "ip link delete cilium_host"}
	for _, finding := range Examine(c, f, "m").Findings {
		if finding.Check == "other-network" && !slices.Equal(finding.Fix, want) {
			t.Errorf("%+v, want the commands %q", finding, want)
		}
	}
}

// No check is without a fault that it finds, and none is left out of the page for operators.
func TestEveryCheckIsTriedAndDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operate/preflight.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range Checks() {
		if !slices.ContainsFunc(injected(), func(f fault) bool { return f.check == check.Name }) {
			t.Errorf("check %s has no injected fault", check.Name)
		}
		if line := "| `" + check.Name + "` | " + check.Why + " |\n"; !strings.Contains(string(page), line) {
			t.Errorf("docs/operate/preflight.md lacks the line %s", line)
		}
	}
	if got := strings.Count(string(page), "\n| `"); got != len(Checks()) {
		t.Errorf("docs/operate/preflight.md has %d checks, want %d", got, len(Checks()))
	}
}

// What could not be found out is said, and is no problem.
func TestUnknown(t *testing.T) {
	c, f := healthy()
	f.Unknown = map[string]error{"firewall": errors.New("reading nftables chains: no")}
	f.Chains[0].Drops = true
	d := Examine(c, f, "m")
	i := slices.IndexFunc(d.Findings, func(f doctor.Finding) bool { return f.Check == "firewall" })
	if got := d.Findings[i]; d.Problems != 0 || got.Status != doctor.NotChecked ||
		!strings.Contains(got.Message, "chains: no") {
		t.Errorf("%+v", d)
	}
}

// A machine for the databases alone needs no datapath, and a node none of their ports. Open vSwitch's own tunnels may
// listen.
func TestRoles(t *testing.T) {
	c, f := healthy()
	c.Worker = false
	f.Modules, f.Underlay, f.Chains[0].Drops = nil, nil, true
	delete(f.Programs, "ovs-vswitchd")
	f.Busy[Port{"udp", ":6081"}] = errors.New("in use")
	if d := Examine(c, f, "m"); d.Problems != 0 {
		t.Errorf("the machine of the databases: %+v", d)
	}
	c, f = healthy()
	c.Central = false
	delete(f.Programs, "ovn-northd")
	f.Busy[Port{"tcp", ":6641"}], f.Busy[Port{"udp", ":6081"}] = errors.New("in use"), errors.New("in use")
	f.Links["genev_sys_6081"] = true
	if d := Examine(c, f, "m"); d.Problems != 0 {
		t.Errorf("a node: %+v", d)
	}
}

// A machine whose Open vSwitch and OVN are in pods needs none of their programs.
func TestInPods(t *testing.T) {
	c, f := healthy()
	c.InPods, f.Programs = true, nil
	if d := Examine(c, f, "n1"); d.Problems != 0 {
		t.Errorf("%+v, want no problem", d.Findings)
	}
}
