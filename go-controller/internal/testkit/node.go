package testkit

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Node is a machine with Open vSwitch (userspace datapath) and ovn-controller:
// a network namespace whose br-phys, with the NIC eth1, has the tunnel address.
type Node struct {
	Name string
	Dir  string // OVS_RUNDIR and OVN_RUNDIR
}

// StartNode makes a Node in the calling test's namespaces, see Isolated. Its
// eth1 is a port of the bridge "underlay", which is made if need be. encap is
// the tunnel address with its prefix length. ovn-controller is told where the
// Southbound database is, of its tunnel address, and of the datapath.
func StartNode(t *testing.T, name, sb string, encap netip.Prefix) *Node {
	t.Helper()
	n := &Node{Name: name, Dir: "/run/" + name}
	if err := os.MkdirAll(n.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if exec.Command("ip", "link", "show", "underlay").Run() != nil {
		Run(t, "sh", "-ec", "ip link add underlay type bridge; ip link set underlay up")
	}
	Run(t, "ip", "netns", "add", name)
	n.Wire(t, "underlay", "eth1")
	db := filepath.Join(n.Dir, "conf.db")
	Run(t, "ovsdb-tool", "create", db, "/usr/share/openvswitch/vswitch.ovsschema")
	server := start(t, Tool(t, "ip"), n.args(t, "ovsdb-server", "--no-chdir", "--pidfile",
		"--log-file="+n.Dir+"/ovsdb-server.log", "-vconsole:off",
		"--remote=punix:"+n.Dir+"/db.sock", db)...)
	server.waitFor(t, "serving "+db, func() bool {
		return n.command(t, "ovs-vsctl", "--timeout=5", "--no-wait", "show").Run() == nil
	})
	n.Run(t, "ovs-vsctl", "--no-wait", "init", "--", "set", "Open_vSwitch", ".",
		"other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1")
	daemon := start(t, Tool(t, "ip"), n.args(t, "ovs-vswitchd", "--no-chdir", "--pidfile",
		"--log-file="+n.Dir+"/ovs-vswitchd.log", "-vconsole:off", "unix:"+n.Dir+"/db.sock")...)
	daemon.waitFor(t, "answering", func() bool { return n.command(t, "ovs-appctl", "version").Run() == nil })
	// The kernel sees the frames that Open vSwitch reads from eth1, too: it must
	// not answer ARP for addresses that are elsewhere.
	n.Run(t, "sh", "-ec", fmt.Sprintf(`sysctl -q -w net.ipv4.conf.all.arp_ignore=1
		ovs-vsctl add-br br-phys -- set bridge br-phys datapath_type=netdev fail_mode=standalone \
			other_config:hwaddr=02:00:00:01:%02x:%02x -- add-port br-phys eth1
		ip link set br-phys up; ip addr add %s dev br-phys
		ovs-vsctl set Open_vSwitch . external_ids:ovn-remote=%s external_ids:ovn-encap-type=geneve \
			external_ids:ovn-encap-ip=%s external_ids:ovn-bridge-datapath-type=netdev`,
		encap.Addr().AsSlice()[2], encap.Addr().AsSlice()[3], encap, sb, encap.Addr()))
	start(t, Tool(t, "ip"), n.args(t, "ovn-controller", "unix:"+n.Dir+"/db.sock", "--no-chdir",
		"--pidfile="+n.Dir+"/ovn-controller.pid", "--log-file="+n.Dir+"/ovn-controller.log", "-vconsole:emer")...)
	return n
}

// Wire gives the node a NIC that is a port of a Linux bridge outside. Linux
// leaves the checksums of what it sends to the NIC, which a veth never fills in:
// the node's own half is told not to.
func (n *Node) Wire(t *testing.T, bridge, nic string) {
	t.Helper()
	peer := n.Name[max(0, len(n.Name)-9):] + "-" + nic
	Run(t, "sh", "-ec", fmt.Sprintf(`ip link add %s type veth peer name %s netns %s
		ip link set %s master %s up; ip -n %s link set lo up; ip -n %s link set %s up; ip netns exec %s ethtool -K %s tx off`,
		peer, nic, n.Name, peer, bridge, n.Name, n.Name, nic, n.Name, nic))
}

// Run runs a program on the node to its end and returns its standard output. A
// failure fails the test.
func (n *Node) Run(t *testing.T, name string, args ...string) string {
	t.Helper()
	return Run(t, "ip", n.args(t, name, args...)...)
}

// Try runs a program on the node and returns what it wrote.
func (n *Node) Try(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	out, err := n.command(t, name, args...).CombinedOutput()
	return string(out), err
}

func (n *Node) command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), Tool(t, "ip"), n.args(t, name, args...)...)
}

// args is the command line of ip(8) that runs a program on the node.
func (n *Node) args(t *testing.T, name string, args ...string) []string {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = Tool(t, name)
	}
	return append([]string{"netns", "exec", n.Name, "env", "OVS_RUNDIR=" + n.Dir, "OVN_RUNDIR=" + n.Dir,
		"OVS_DBDIR=" + n.Dir, "OVS_LOGDIR=" + n.Dir, "OVN_LOGDIR=" + n.Dir, name}, args...)
}
