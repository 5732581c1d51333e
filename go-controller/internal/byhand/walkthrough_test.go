package byhand_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const bin = testkit.ProgramDir

func TestMain(m *testing.M) {
	os.Exit(testkit.RunWith(m, "github.com/northbound-net/northbound/go-controller/cmd/ovnkube"))
}

// programs makes the links of ovnkube's classic names.
func programs(t *testing.T) {
	t.Helper()
	for _, name := range []string{"ovn-k8s-overlay", "ovn-k8s-util", "ovn-k8s-watcher", "ovn-k8s-gateway-helper"} {
		if err := os.Symlink("ovnkube", filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// walk is the machines of the walkthrough.
type walk struct {
	t      *testing.T
	master *testkit.Node
	minion *testkit.Node
}

// on runs a line of the walkthrough on a machine.
func (w *walk) on(n *testkit.Node, line string) string {
	w.t.Helper()
	f := strings.Fields(line)
	out := n.Run(w.t, bin+"/"+f[0], f[1:]...)
	w.t.Logf("%s# %s\n%s", n.Name, line, out)
	return out
}

// nbctl asks the Northbound database.
func (w *walk) nbctl(args ...string) string {
	w.t.Helper()
	return testkit.Run(w.t, "ovn-nbctl", args...)
}

// show is `ovn-nbctl show` without UUIDs and MACs, in the order of names.
func (w *walk) show() string {
	w.t.Helper()
	text := regexp.MustCompile(`(switch|router) [0-9a-f-]{36}`).ReplaceAllString(w.nbctl("show"), "$1")
	text = regexp.MustCompile(`[0-9a-f]{2}(:[0-9a-f]{2}){5}`).ReplaceAllString(text, "MAC")
	text = regexp.MustCompile(`(?m)^ +(mac|ipv6-lla): .*\n`).ReplaceAllString(text, "")
	var blocks []string
	for _, b := range regexp.MustCompile(`(?m)^(switch|router) .*\n(    .*\n)*`).FindAllString(text, -1) {
		lines := strings.Split(strings.TrimSpace(b), "\n")
		var ports []string
		for _, l := range lines[1:] {
			if strings.HasPrefix(l, "    port ") || strings.HasPrefix(l, "    nat ") {
				ports = append(ports, strings.TrimSpace(l))
			} else {
				ports[len(ports)-1] += ", " + strings.TrimSpace(l)
			}
		}
		slices.Sort(ports)
		blocks = append(blocks, lines[0]+"\n  "+strings.Join(ports, "\n  ")+"\n")
	}
	slices.Sort(blocks)
	return strings.Join(blocks, "")
}

// dump is what a command may have changed on a machine; link-local addresses
// come in their own time.
func (w *walk) dump(n *testkit.Node) string {
	w.t.Helper()
	return n.Run(w.t, "sh", "-ec", `ovs-vsctl --format=list --columns=external_ids list Open_vSwitch
		ovs-vsctl --bare --columns=name list Bridge | sort
		ip -br link | awk '{print $1}' | sort; ip -o addr | awk '{print $2,$3,$4}' | grep -v fe80: | sort
		{ ip route show table all; ip -6 route; } | grep -v -e fe80: -e ff00:
		nft list ruleset; sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding`)
}

// refused runs a command line of which the program says that it can't be done, and returns the program's output.
func (w *walk) refused(n *testkit.Node, what, line, want string) string {
	w.t.Helper()
	words := strings.Fields(line)
	out, err := n.Try(w.t, bin+"/"+words[0], words[1:]...)
	if err == nil || !strings.Contains(out, want) {
		w.t.Errorf("%s: %v\n%s\nwant %q", what, err, out, want)
	}
	return out
}

func newWalk(t *testing.T) *walk {
	t.Helper()
	programs(t)
	sb := testkit.StartOVN(t)
	w := &walk{t: t}
	w.master = testkit.StartNode(t, "kube-master", sb, netip.MustParsePrefix("10.100.0.1/24"))
	w.minion = testkit.StartNode(t, "kube-node1", sb, netip.MustParsePrefix("10.100.0.2/24"))
	for _, n := range []*testkit.Node{w.master, w.minion} {
		n.Run(t, "ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:ovn-nb=unix:/run/ovn/ovnnb_db.sock")
	}
	return w
}

const (
	masterInit = "ovn-k8s-overlay master-init --cluster-ip-subnet=192.168.0.0/16 " +
		"--master-switch-subnet=192.168.1.0/24 --node-name=kube-master"
	minionInit = "ovn-k8s-overlay minion-init --cluster-ip-subnet=192.168.0.0/16 " +
		"--minion-switch-subnet=192.168.2.0/24 --node-name=kube-node1"
)

// The classic walkthrough, on machines that have OVN and no Kubernetes, and
// back.
func TestWalkthrough(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	w := newWalk(t)
	masterBefore, minionBefore := w.dump(w.master), w.dump(w.minion)

	if out := w.on(w.master, masterInit+" --dry-run"); !strings.Contains(out, "+ Logical_Router kube-master") ||
		!strings.Contains(out, "+ addr 192.168.1.2/24 dev k8s-kube-master") || w.show() != "" {
		t.Errorf("master-init --dry-run:\n%s\nand the database:\n%s", out, w.show())
	}
	if now := w.dump(w.master); now != masterBefore {
		t.Errorf("--dry-run changed the machine:\n%s\nit was:\n%s", now, masterBefore)
	}
	w.refused(w.minion, "minion-init before master-init", strings.Replace(minionInit, "ovn-k8s-overlay", "ovnkube", 1),
		"no cluster router: run master-init first")
	w.on(w.master, masterInit)
	w.on(w.minion, minionInit)
	const want = `router (kube-master)
  port rtoj-kube-master, networks: ["100.64.1.1/24"]
  port rtos-kube-master, networks: ["192.168.1.1/24"]
  port rtos-kube-node1, networks: ["192.168.2.1/24"]
switch (join)
  port jtor-kube-master, type: router, addresses: ["MAC"], router-port: rtoj-kube-master
switch (kube-master)
  port k8s-kube-master, addresses: ["MAC 192.168.1.2"]
  port stor-kube-master, type: router, addresses: ["MAC"], router-port: rtos-kube-master
switch (kube-node1)
  port k8s-kube-node1, addresses: ["MAC 192.168.2.2"]
  port stor-kube-node1, type: router, addresses: ["MAC"], router-port: rtos-kube-node1
`
	if got := w.show(); got != want {
		t.Errorf("ovn-nbctl show:\n%s\nwant:\n%s", got, want)
	}
	for n, line := range map[*testkit.Node]string{w.master: masterInit, w.minion: minionInit} {
		if out := w.on(n, line); out != "Nothing to do: it is as it should be.\n" {
			t.Errorf("%s, a second time:\n%s", line, out)
		}
	}
	w.pod("pod1", "kube-node1", "192.168.2.3")
	for _, dest := range []string{"192.168.2.2", "192.168.2.3"} {
		testkit.Eventually(t, "kube-master reaches "+dest, func() string {
			out, err := w.master.Try(t, "ping", "-c1", "-W1", dest)
			if err != nil || !strings.Contains(out, "ttl=63") {
				return "got " + out
			}
			return ""
		})
	}

	w.leave()
	w.nbctl("lsp-del", "pod1")
	w.minion.Run(t, "sh", "-ec", "ovs-vsctl del-port pod1; ip link del pod1")
	w.on(w.minion, "ovnkube minion-init --node-name=kube-node1 --undo")
	if got := w.show(); strings.Contains(got, "kube-node1") {
		t.Errorf("after minion-init --undo:\n%s", got)
	}
	if now := w.dump(w.minion); now != minionBefore {
		t.Errorf("minion-init --undo left the machine as\n%s\nit was:\n%s", now, minionBefore)
	}
	w.on(w.master, "ovnkube master-init --node-name=kube-master --undo")
	for _, table := range []string{
		"Logical_Router", "Logical_Switch", "Load_Balancer_Group", "Logical_Router_Static_Route",
	} {
		if got := w.nbctl("--bare", "--columns=_uuid", "list", table); strings.TrimSpace(got) != "" {
			t.Errorf("after master-init --undo %s has %s", table, got)
		}
	}
	if now := w.dump(w.master); now != masterBefore {
		t.Errorf("master-init --undo left the machine as\n%s\nit was:\n%s", now, masterBefore)
	}
}

// outsideIP is the router's in the walkthrough, which here is the host that pods
// talk to as well.
const outsideIP = "172.17.0.1"

// leave is the walkthrough's second half: the minion becomes a gateway, the pod
// leaves through it, and the watcher that has no Kubernetes yet undoes nothing.
func (w *walk) leave() {
	w.t.Helper()
	testkit.Run(w.t, "sh", "-ec", "ip link add lan type bridge; ip link set lan up; ip netns add outside")
	outside := &testkit.Node{Name: "outside", Dir: "/run"}
	outside.Wire(w.t, "lan", "eth0")
	outside.Run(w.t, "ip", "addr", "add", outsideIP+"/16", "dev", "eth0")
	w.minion.Wire(w.t, "lan", "eth0")
	w.minion.Run(w.t, "sh", "-ec", "ip addr add 172.17.42.31/16 dev eth0; ip route add default via "+outsideIP)
	testkit.StartWhoami(w.t, "outside", 8080)

	w.on(w.minion, "ovn-k8s-util nics-to-bridge eth0")
	const gatewayInit = "ovn-k8s-overlay gateway-init --cluster-ip-subnet=192.168.0.0/16 " +
		"--bridge-interface breth0 --physical-ip 172.17.42.31/16 --node-name=kube-node1 --default-gw 172.17.0.1"
	w.on(w.minion, gatewayInit)
	w.on(w.minion, "ovn-k8s-gateway-helper --physical-bridge=breth0 --physical-interface=eth0 --pidfile --detach")
	if out := w.on(w.minion, gatewayInit); out != "Nothing to do: it is as it should be.\n" {
		w.t.Errorf("gateway-init, a second time:\n%s", out)
	}
	for what, from := range map[string]string{"the pod": "pod1", "the host": w.minion.Name} {
		testkit.Eventually(w.t, what+" reaches the outside with the machine's address", func() string {
			seen, err := testkit.AskOnce(from, "tcp", outsideIP+":8080")
			if err != nil || seen != "172.17.42.31" {
				return fmt.Sprintf("%q, %v", seen, err)
			}
			return ""
		})
	}

	before := w.show()
	w.master.Run(w.t, "ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:k8s-api-server=127.0.0.1:1")
	w.on(w.master, "ovn-k8s-watcher --overlay --pidfile --log-file -vfile:info -vconsole:emer --detach")
	testkit.Eventually(w.t, "the watcher waits for Kubernetes", func() string {
		log, err := os.ReadFile("/var/log/ovn-kubernetes/ovn-k8s-watcher.log")
		if err != nil || !strings.Contains(string(log), "subnets=[192.168.0.0/16/24]") ||
			!strings.Contains(string(log), "kubernetes not connected") {
			return fmt.Sprint(string(log), err)
		}
		return ""
	})
	if now := w.show(); now != before {
		w.t.Errorf("the watcher changed the database to\n%s\nfrom\n%s", now, before)
	}
	w.stop("/var/run/ovn-kubernetes/ovn-k8s-watcher.pid")
	w.stop("/var/run/ovn-kubernetes/ovn-k8s-gateway-helper.pid")
	w.master.Run(w.t, "ovs-vsctl", "remove", "Open_vSwitch", ".", "external_ids", "k8s-api-server")

	w.on(w.minion, "ovnkube gateway-helper --physical-bridge=breth0 --physical-interface=eth0 --undo")
	w.on(w.minion, "ovnkube gateway-init --node-name=kube-node1 --undo")
	if got := w.show(); strings.Contains(got, "GR_") || strings.Contains(got, "ext_") {
		w.t.Errorf("after gateway-init --undo:\n%s", got)
	}
	w.on(w.minion, "ovn-k8s-util bridges-to-nic breth0")
	w.minion.Run(w.t, "ip", "link", "del", "eth0")
}

// stop ends the daemon of a pidfile, which goes with it.
func (w *walk) stop(pidfile string) {
	w.t.Helper()
	testkit.Run(w.t, "sh", "-c", "kill $(cat "+pidfile+")")
	testkit.Eventually(w.t, pidfile+" goes", func() string {
		if _, err := os.Stat(pidfile); err == nil {
			return "it is there"
		}
		return ""
	})
}

// pod makes, with OVN's own tools, a pod on the minion.
func (w *walk) pod(name, node, ip string) {
	w.t.Helper()
	mac := "0a:58:c0:a8:02:03"
	w.nbctl("lsp-add", node, name, "--", "lsp-set-addresses", name, mac+" "+ip)
	testkit.Run(w.t, "sh", "-ec", fmt.Sprintf(`ip netns add %[1]s
		ip -n %[4]s link add %[1]s type veth peer name eth0 netns %[1]s; ip -n %[4]s link set %[1]s up
		ip -n %[1]s link set lo up; ip -n %[1]s link set eth0 address %[2]s; ip -n %[1]s link set eth0 up
		ip -n %[1]s addr add %[3]s/24 dev eth0; ip -n %[1]s route add default via 192.168.2.1
		ip netns exec %[1]s ethtool -K eth0 tx off`, name, mac, ip, w.minion.Name))
	w.minion.Run(w.t, "ovs-vsctl", "add-port", "br-int", name,
		"--", "set", "Interface", name, "external_ids:iface-id="+name)
}

// What can't be is said before anything is done.
func TestRefusals(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	w := newWalk(t)
	w.on(w.master, masterInit)
	// A Node of a Kubernetes cluster that nobody here can ask.
	w.nbctl("ls-add", "k8s1", "--", "set", "Logical_Switch", "k8s1",
		`external_ids:"k8s.ovn.org/owner-type"=Node`, `external_ids:"k8s.ovn.org/owner-name"=k8s1`,
		`external_ids:"k8s.ovn.org/role"=switch`, `external_ids:gateway_ip="192.168.7.1/24"`)
	before, hostBefore := w.show(), w.dump(w.minion)
	const (
		minion  = "minion-init --node-name=n --cluster-ip-subnet=192.168.0.0/16 "
		gateway = "gateway-init --node-name=n --cluster-ip-subnet=192.168.0.0/16 "
	)
	for _, c := range []struct{ line, want string }{
		{"minion-init --node-name=kube-node1 --minion-switch-subnet=192.168.2.0/24",
			"--cluster-ip-subnet: the range that contains all nodes' subnets is needed"},
		{"minion-init --node-name=kube-node1 --cluster-ip-subnet=192.168.0.0/16",
			"--minion-switch-subnet: the subnet of this machine's pods is needed"},
		{"minion-init --cluster-ip-subnet=192.168.0.0/16 --minion-switch-subnet=192.168.2.0/24",
			"--node-name: the name of this machine is needed"},
		{minion + "--minion-switch-subnet=192.168.1.0/24",
			"192.168.1.0/24 overlaps 192.168.1.0/24 of Node kube-master"},
		{minion + "--minion-switch-subnet=10.0.0.0/24",
			"10.0.0.0/24 is not in the cluster subnets"},
		{"minion-init --node-name=n --cluster-ip-subnet=10.0.0.0/16 --minion-switch-subnet=10.0.0.0/24",
			"--cluster-ip-subnet 10.0.0.0/16: the cluster was made with 192.168.0.0/16"},
		{"minion-init --node-name=kube-master --cluster-ip-subnet=192.168.0.0/16 --minion-switch-subnet=192.168.3.0/24",
			"node kube-master has the subnets [192.168.1.0/24] already"},
		{minion + "--minion-switch-subnet=192.168.2.1/24",
			"host bits are set, want 192.168.2.0/24"},
		{minion + "--minion-switch-subnet=192.168.2.0/24 --encap-ip=10.9.9.9",
			"the tunnel address 10.9.9.9 is on no interface of this machine"},
		{gateway + "--bridge-interface=br-phys --physical-ip=10.100.0.2/24",
			"node n is not set up: run minion-init"},
		{gateway + "--physical-ip=10.100.0.2/24",
			"--physical-interface and --bridge-interface: give exactly one of them"},
		{gateway + "--bridge-interface=breth0 --physical-ip=10.100.0.2/24",
			"--bridge-interface breth0: there is no such Open vSwitch bridge"},
		{gateway + "--physical-interface=br-phys --physical-ip=10.100.0.2/24",
			"it has the addresses [10.100.0.2/24], which the machine would lose"},
		{gateway + "--physical-interface=eth1 --physical-ip=10.100.0.2/24",
			"it is in the Open vSwitch bridge br-phys, which would be cut off"},
		{gateway + "--bridge-interface=br-int --physical-ip=10.100.0.2/24",
			"--bridge-interface br-int: it is OVN's own"},
		{gateway + "--vlan-id=5000 --physical-ip=10.100.0.2/24",
			"--vlan-id 5000: want 1 to 4094"},
		{"minion-init --node-name=../n --cluster-ip-subnet=192.168.0.0/16 --minion-switch-subnet=192.168.2.0/24",
			`--node-name "../n": want lower case letters, digits`},
		{minion + "--minion-switch-subnet=192.168.2.0/24 --nb-address=here",
			`--nb-address "here": want unix:/PATH, tcp:HOST:PORT or ssl:HOST:PORT`},
		{gateway + "--bridge-interface=br-phys",
			"--physical-ip: this machine's address with its prefix length is needed"},
		{gateway + "--bridge-interface=br-phys --physical-ip=10.100.0.2",
			`parsing --physical-ip "10.100.0.2": want an address with a prefix length`},
		{minion + "--minion-switch-subnet=192.168.7.0/25",
			"192.168.7.0/25 overlaps 192.168.7.0/24 of Node k8s1"},
		{"minion-init --node-name=k8s1 --cluster-ip-subnet=192.168.0.0/16 --minion-switch-subnet=192.168.7.0/24",
			"logical switch k8s1 belongs to the Node k8s1 of a Kubernetes cluster"},
		{gateway + "--bridge-interface=br-phys --physical-ip=10.100.0.9/24",
			"--physical-ip 10.100.0.9/24: bridge br-phys has [10.100.0.2/24]"},
		{gateway + "--bridge-interface=br-phys --physical-ip=10.100.0.2/24 --default-gw=10.9.0.1",
			"--default-gw 10.9.0.1: is not in the network of --physical-ip 10.100.0.2/24"},
		{minion + "--minion-switch-subnet=192.168.2.0/24 --nb-address=unix:/nonexistent --timeout=1s",
			"connecting to the Northbound database: unix:/nonexistent: "},
	} {
		w.refused(w.minion, c.line, "ovn-k8s-overlay "+c.line, c.want)
	}
	w.refused(w.minion, "a command of another program", "ovn-k8s-overlay nics-to-bridge",
		"ovn-k8s-overlay: want one of master-init, minion-init, gateway-init")
	w.on(w.minion, "ovnkube gateway-init --node-name=n --undo") // there is none, and it makes none
	if got := w.show(); got != before {
		t.Errorf("the database is\n%s\nit was:\n%s", got, before)
	}
	if now := w.dump(w.minion); now != hostBefore {
		t.Errorf("the machine is\n%s\nit was:\n%s", now, hostBefore)
	}
	w.nbctl("ls-del", "k8s1")
	w.on(w.minion, minionInit)
	w.refused(w.minion, "a gateway under another machine's name",
		"ovnkube gateway-init --cluster-ip-subnet=192.168.0.0/16 "+
			"--bridge-interface br-phys --physical-ip 10.100.0.2/24 --node-name=kube-master",
		"is --node-name this machine's?")
	w.refused(w.master, "undoing the master first", "ovnkube master-init --node-name=kube-master --undo",
		"Node kube-node1 is still there: undo the other nodes first")
	w.refused(w.minion, "another name for the machine",
		"ovnkube minion-init --node-name=other --cluster-ip-subnet=192.168.0.0/16 --minion-switch-subnet=192.168.3.0/24",
		"this machine is node kube-node1 already")
	w.on(w.minion, "ovnkube gateway-init --node-name=kube-node1 --cluster-ip-subnet=192.168.0.0/16 "+
		"--bridge-interface=br-phys --physical-ip=10.100.0.2/24")
	w.refused(w.minion, "undoing the node of a gateway", "ovnkube minion-init --node-name=kube-node1 --undo",
		"node kube-node1 is a gateway: run gateway-init --undo first")
	w.on(w.minion, "ovnkube gateway-init --node-name=kube-node1 --undo")
	// A machine that can't reach the database gets out of what it can.
	out := w.refused(w.minion, "undoing without the database",
		"ovnkube minion-init --node-name=kube-node1 --undo --nb-address=unix:/nonexistent --timeout=2s", "unix:/nonexistent")
	if now := w.dump(w.minion); !strings.Contains(out, "- port k8s-kube-node1") || now != hostBefore {
		t.Errorf("undoing without the database:\n%s\n%s", out, now)
	}
}
