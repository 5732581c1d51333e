package agent

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A tunnel address that was given but is nowhere keeps the node from being
// ready, and nothing else.
func TestLostTunnelAddress(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.stop()
	b.config.EncapIPs, b.config.MTU = []netip.Addr{netip.MustParseAddr("172.18.0.2")}, 1442
	b.start(t)
	b.becomeReady(t)
	testkit.Run(t, "ip", "addr", "del", "172.18.0.2/16", "dev", "eth0")
	b.awaitMissing(t, "on no interface of this host is the tunnel address 172.18.0.2 (it was on eth0: "+
		"`ip link set eth0 up; ip addr add 172.18.0.2/16 dev eth0`, and its routes)")
	testkit.Run(t, "ip", "addr", "del", "10.128.2.2/23", "dev", mgmtLink)
	b.awaitState(t, strings.Replace(wantState, " src 172.18.0.2\n", "\n", 1))
	testkit.Run(t, "ip", "addr", "add", "172.18.0.2/16", "dev", "eth0")
	b.awaitReady(t)
}

// A bridge that carries the tunnel address keeps it, and its routes, when
// ovs-vswitchd is killed and starts again: the agent has nothing to put back.
func TestTunnelBridgeOutlivesTheSwitch(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.stop()
	testkit.Run(t, "sh", "-ec", `ip addr del 172.18.0.2/16 dev eth0; ovs-vsctl add-br br-phys \
	-- set bridge br-phys datapath_type=netdev -- add-port br-phys eth0
		ip addr add 172.18.0.2/16 dev br-phys; ip link set br-phys up; ip route add 172.19.0.0/16 via 172.18.0.9`)
	b.start(t)
	b.grantSubnets(t, "10.128.2.0/23")
	testkit.Run(t, "ovs-vsctl", "--timeout=20", "wait-until", "interface", mgmtLink, "ofport>0", "--", "set", "interface",
		mgmtLink, "external_ids:ovn-installed=true")
	b.awaitReady(t)
	const look = "cat /sys/class/net/br-phys/ifindex; ip -o addr show dev br-phys scope global; " +
		"ip -4 route show dev br-phys"
	before := testkit.Run(t, "sh", "-c", look)
	b.vs.StopDaemon(t)
	b.vs.StartDaemon(t)
	awaitOutput(t, before, "sh", "-c", look)
	b.awaitReady(t)
	testkit.Run(t, "ovs-vsctl", "del-br", "br-phys")
	b.awaitMissing(t, "no tunnel address")
	b.awaitMissing(t, "it was on br-phys: `ip link set br-phys up; ip addr add 172.18.0.2/16 dev br-phys`")
}

const movedState = `
k8s-worker-1.ex UNKNOWN 10.128.4.2/23
link/ether 0a:58:0a:80:04:02 mtu 1442
10.96.0.0/16 via 10.128.4.1 dev k8s-worker-1.ex src 10.128.4.2
10.128.0.0/14 via 10.128.4.1 dev k8s-worker-1.ex src 10.128.4.2
169.254.169.6 via 10.128.4.1 dev k8s-worker-1.ex src 172.18.0.2
10.128.4.1 lladdr 0a:58:0a:80:04:01 PERMANENT
1 1 2 1 0
1 1
br-int secure netdev
internal
0a:58:0a:80:04:02
1442
iface-id=k8s-worker-1.example ovn-installed=true
hostname=worker-1.example
ovn-bridge-datapath-type=netdev
ovn-encap-ip=172.18.0.2
ovn-encap-type=geneve
ovn-monitor-all=true
ovn-ofctrl-wait-before-clear=5000
ovn-openflow-probe-interval=60
ovn-remote=ssl:172.18.0.1:6642
ovn-remote-probe-interval=60000
system-id=SYSTEMID
/keys/sb.key /keys/sb.crt /keys/ca.crt
`
