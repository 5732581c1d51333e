package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/selector"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// gatewayScript moves eth0 into breth0, as nics-to-bridge does, and makes an
// outside host "out" at eth0's other end and a host "far" behind it, on a
// network with a small MTU. With $vlan, breth0 is in that VLAN through an access
// port, and so is the outside host at its switch.
const gatewayScript = `
mac=$(cat /sys/class/net/eth0/address)
ip addr del 172.18.0.2/16 dev eth0
ip netns add out; ip -n out link set lo up
out=eth0peer
if [ -n "$vlan" ]; then
	out=vout; ip link add vsw type veth peer name vout; ip link set vsw up
	ovs-vsctl add-br switch -- set bridge switch datapath_type=netdev -- add-port switch eth0peer \
	-- add-port switch vsw tag=$vlan
fi
ip link set $out netns out; ip -n out link set $out up
ip -n out addr add 172.18.0.1/16 dev $out; ip -n out addr add fd18::1/64 dev $out nodad
ip netns add far; ip -n out link add f type veth peer name e netns far; ip -n far link set lo up
ip -n out link set f mtu 1300 up; ip -n far link set e mtu 1300 up
ip -n out addr add 192.0.2.254/24 dev f; ip -n out addr add 2001:db8::254/64 dev f nodad
ip -n far addr add 192.0.2.1/24 dev e; ip -n far addr add 2001:db8::1/64 dev e nodad
ip -n far route add default via 192.0.2.254; ip -n far -6 route add default via 2001:db8::254
ip netns exec out sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'
for d in $out f; do ip netns exec out ethtool -K $d tx off; done; ip netns exec far ethtool -K e tx off
ovs-vsctl add-br breth0 -- set bridge breth0 datapath_type=netdev fail-mode=standalone other_config:hwaddr=\"$mac\" \
	-- set port breth0 tag=[$vlan] -- add-port breth0 eth0
ip link set breth0 up; ip addr add 172.18.0.2/16 dev breth0; ip addr add fd18::2/64 dev breth0 nodad
ip route add default via 172.18.0.1; ip -6 route add default via fd18::1
`

// gatewayRouterScript is the Northbound side, by its contract; the gateway's
// MAC, addresses and next hops are those of the annotation.
const gatewayRouterScript = `
ovn-nbctl lr-add cr -- lrp-add cr rtos-$n 0a:58:0a:80:02:01 10.128.2.1/23 fd01:0:0:1::1/64 -- ls-add $n \
	-- lsp-add $n stor-$n -- lsp-set-type stor-$n router -- lsp-set-addresses stor-$n router \
	-- lsp-set-options stor-$n router-port=rtos-$n \
	-- lsp-add $n k8s-$n -- lsp-set-addresses k8s-$n "0a:58:0a:80:02:02 10.128.2.2 fd01:0:0:1::2" \
	-- lsp-add $n default_a -- lsp-set-addresses default_a "0a:58:0a:80:02:03 10.128.2.3 fd01:0:0:1::3" \
	-- ls-add join -- lrp-add cr rtoj-cr 0a:58:64:40:01:01 100.64.1.1/24 fd98::1/64 \
	-- lsp-add join jtor-cr -- lsp-set-type jtor-cr router -- lsp-set-addresses jtor-cr router \
	-- lsp-set-options jtor-cr router-port=rtoj-cr \
	-- lr-add GR_$n -- set logical_router GR_$n options:chassis=$chassis \
	-- lrp-add GR_$n rtoj-GR_$n 0a:58:64:40:01:02 100.64.1.2/24 fd98::2/64 \
	-- lsp-add join jtor-GR_$n -- lsp-set-type jtor-GR_$n router -- lsp-set-addresses jtor-GR_$n router \
	-- lsp-set-options jtor-GR_$n router-port=rtoj-GR_$n \
	-- ls-add ext_$n -- lsp-add ext_$n $localnet -- lsp-set-type $localnet localnet \
	-- lsp-set-addresses $localnet unknown -- lsp-set-options $localnet network_name=$network ${vlan:+-- set \
logical_switch_port $localnet tag_request=$vlan} \
	-- lrp-add GR_$n rtoe-GR_$n $mac $ips -- lsp-add ext_$n etor-GR_$n -- lsp-set-type etor-GR_$n router \
	-- lsp-set-addresses etor-GR_$n router \
	-- lsp-set-options etor-GR_$n router-port=rtoe-GR_$n -- lr-route-add GR_$n 10.128.0.0/14 100.64.1.1 \
	-- lr-route-add GR_$n fd01::/48 fd98::1 \
	-- lr-route-add GR_$n 0.0.0.0/0 $hop4 rtoe-GR_$n -- lr-route-add GR_$n ::/0 $hop6 rtoe-GR_$n \
	-- --portrange lr-nat-add GR_$n snat ${ip4%/*} 10.128.0.0/14 $ports \
	-- --portrange lr-nat-add GR_$n snat ${ip6%/*} fd01::/48 $ports \
	-- lr-route-add cr 0.0.0.0/0 100.64.1.2 -- lr-route-add cr ::/0 fd98::2
ip netns add a; ip link add va type veth peer name eth0 netns a; ip link set va up; ip -n a link set lo up
ip -n a link set eth0 address 0a:58:0a:80:02:03 mtu 1400 up
ip -n a addr add 10.128.2.3/23 dev eth0; ip -n a addr add fd01:0:0:1::3/64 dev eth0 nodad
ip -n a route add default via 10.128.2.1; ip -n a -6 route add default via fd01:0:0:1::1
ip netns exec a ethtool -K eth0 tx off
ovs-vsctl --timeout=20 wait-until bridge br-int -- add-port br-int va \
	-- set interface va external_ids:iface-id=default_a external_ids:sandbox=va
`

// shared is the gateway of the tests: breth0's addresses are the host's too.
var sharedIPs = []string{"172.18.0.2", "fd18::2"}

// newGatewayBed is a node with its NIC in breth0, without an agent. With a VLAN
// the host is in it through an access port.
func newGatewayBed(t *testing.T, vlan int) *bed {
	t.Helper()
	sb := testkit.StartOVN(t)
	b := bareBed(t)
	testkit.Run(t, "sh", "-ec", "vlan="+tagOf(vlan)+gatewayScript)
	b.config.SBAddress = sb
	b.config.Gateway = config.Gateway{Mode: annotation.GatewayShared, Interface: "eth0", VLAN: vlan}
	testkit.StartWhoami(t, "out", 7000)
	testkit.StartWhoami(t, "far", 7000)
	testkit.StartWhoami(t, "", 7000)
	return b
}

// tagOf is the id for a shell, "" for none.
func tagOf(vlan int) string {
	if vlan == 0 {
		return ""
	}
	return fmt.Sprint(vlan)
}

// makeGatewayRouter makes what the annotation says, and a pod "a".
func (b *bed) makeGatewayRouter(t *testing.T) {
	t.Helper()
	var g *annotation.L3Gateway
	testkit.Eventually(t, "the gateway's annotation", func() string {
		var err error
		if g, err = annotation.ParseL3Gateway(b.node(t).Annotations[annotation.L3GatewayConfig]); g == nil {
			return fmt.Sprintf("no gateway: %v", err)
		}
		return ""
	})
	if len(g.IPs) != 2 || len(g.NextHops) != 2 || g.Bridge != "breth0" {
		t.Fatalf("the annotation says %+v, want breth0 with two addresses and two next hops", g)
	}
	testkit.Run(t, "sh", "-ec", fmt.Sprintf("ports=%s n=%s chassis=%s localnet=%s vlan=%s network=%s mac=%s ips='%s %s' "+
		"ip4=%s ip6=%s hop4=%s hop6=%s\n", names.SNATPorts, node, names.SystemID(node),
		g.Port, tagOf(g.VLAN), g.Network, g.MAC, g.IPs[0], g.IPs[1], g.IPs[0], g.IPs[1], g.NextHops[0],
		g.NextHops[1])+gatewayRouterScript)
	testkit.StartOVNController(t)
	b.awaitFlows(t, 34)
	testkit.Eventually(t, "the pod reaches the outside host", func() string {
		for _, dest := range []string{"172.18.0.1:7000", "[fd18::1]:7000"} {
			if _, err := testkit.AskOnce("a", "udp", dest); err != nil {
				return err.Error()
			}
		}
		return ""
	})
}

// awaitFlows waits until breth0 has n flows of ours.
func (b *bed) awaitFlows(t *testing.T, n int) {
	t.Helper()
	testkit.Eventually(t, "flows of breth0", func() string {
		out := testkit.Run(t, "ovs-ofctl", "--no-stats", "dump-flows", "breth0")
		if have := strings.Count(out, "cookie=0x6e626777"); have != n {
			return fmt.Sprintf("%d, want %d:\n%s", have, n, out)
		}
		return ""
	})
}

// outside and host are where the whoami servers are, by family.
var (
	outside = []string{"172.18.0.1:7000", "[fd18::1]:7000"}
	far     = []string{"192.0.2.1:7000", "[2001:db8::1]:7000"}
	hostSvc = []string{"172.18.0.2:7000", "[fd18::2]:7000"}
)

// The whole of a shared gateway, with packets: pod, host and outside talk at
// the same time with the one address, before, while and after flows come, are
// damaged and go.
func TestGateway(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newGatewayBed(t, 0)
	outgoing, incoming := startStream(t, "", outside[0]), startStream(t, "out", hostSvc[0])
	defer close(outgoing.stop)
	defer close(incoming.stop)
	streams := func(when string) { t.Helper(); outgoing.check(t, when); incoming.check(t, when) }
	b.start(t)
	b.grantSubnets(t, "10.128.2.0/23", "fd01:0:0:1::/64")
	b.awaitFlows(t, 2) // until the patch port is there
	b.makeGatewayRouter(t)
	b.awaitReady(t)
	// In its first ten seconds ovn-controller leaves patch ports that nobody wants, and looks at them again only when
	// something changes. This test is sometimes quicker.
	testkit.Run(t, "ovn-appctl", "-t", "ovn-controller", "debug/ignore-startup-delay")
	checkBoth(t, 10)
	checkPorts(t)
	checkPings(t)
	checkPathMTU(t)
	streams("with the flows")

	// What the host sends goes to the NIC alone, and OVN's answers reach no
	// other address of the host's than they should: it keeps its own.
	testkit.Run(t, "sh", "-ec", "ip addr add fd18::22/64 dev breth0; ip addr del fd18::2/64 dev breth0; "+
		"ip addr add fd18::2/64 dev breth0")
	awaitOutput(t, "", "ip", "-6", "addr", "show", "dev", "breth0", "tentative")
	awaitOutput(t, "", "ip", "-6", "addr", "show", "dev", "breth0", "dadfailed")
	testkit.Run(t, "ip", "addr", "del", "fd18::22/64", "dev", "breth0")
	awaitOutput(t, "LOCAL", "sh", "-ec",
		`ovs-appctl fdb/show breth0 | grep $(cat /sys/class/net/breth0/address) | awk '{print $1}'`)
	awaitOutput(t, "1", "sh", "-ec",
		`ovs-appctl fdb/show breth0 | grep $(ip netns exec out cat /sys/class/net/eth0peer/address) | awk '{print $1}'`)

	streams("with addresses that came and went")

	for _, damage := range []string{
		"ovs-ofctl del-flows breth0 cookie=0x6e626777/-1",
		"ovs-ofctl del-flows breth0", // the bridge's own too
		"ovs-ofctl --strict del-flows breth0 table=1,priority=100,ct_state=+trk+est",
		"ovs-ofctl mod-flows breth0 table=1,actions=drop",
		"ovs-ofctl add-flow breth0 cookie=0x6e626777,priority=999,ip,actions=drop",
		"ovs-vsctl remove Open_vSwitch . external_ids ovn-bridge-mappings",
		// ovn-controller makes it again, with another number.
		"ovs-vsctl --timeout=20 del-port patch-breth0_" + node + "-to-br-int",
	} {
		testkit.Run(t, "sh", "-ec", damage)
		b.awaitFlows(t, 34)
		b.awaitExternalID(t, names.OVSBridgeMappings, "physnet:breth0")
		testkit.Eventually(t, "pod and host reach the outside after "+damage, func() string {
			for _, netns := range []string{"a", ""} {
				if _, err := testkit.AskOnce(netns, "tcp", outside[0]); err != nil {
					return err.Error()
				}
			}
			return ""
		})
		streams("after " + damage)
	}
	checkBoth(t, 3)

	b.stop()
	b.config.Gateway = config.Gateway{}
	b.start(t)
	b.awaitAnnotations(t, map[string]string{annotation.L3GatewayConfig: `{"default":{"mode":"disabled"}}`})
	b.awaitFlows(t, 0)
	for _, key := range []string{names.OVSBridgeMappings, names.OVSGatewayBridge, names.OVSGatewayMapping} {
		b.awaitExternalID(t, key, "")
	}
	// All were deleted above.
	awaitOutput(t, "1", "sh", "-c", "ovs-ofctl dump-flows breth0 | grep -c priority=0.actions=NORMAL; true")
	awaitOutput(t, "eth0", "ovs-vsctl", "list-ports", "breth0")
	streams("after the gateway")
	awaitOutput(t, "0", "ovs-appctl", "coverage/read-counter", "datapath_drop_recirc_error")
}

// awaitExternalID waits until a key of the Open_vSwitch row has this value, ""
// for none.
func (b *bed) awaitExternalID(t *testing.T, key, want string) {
	t.Helper()
	testkit.Eventually(t, "external_ids:"+key, func() string {
		out := strings.Trim(strings.TrimSpace(testkit.Run(t, "ovs-vsctl", "--if-exists", "get", "Open_vSwitch", ".",
			"external_ids:"+key)), `"`)
		if out != want {
			return fmt.Sprintf("%q, want %q", out, want)
		}
		return ""
	})
}

// The gateway's network is a VLAN, which the bridge takes off for the host. What
// goes out of service comes back.
func TestGatewayInVLAN(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newGatewayBed(t, 100)
	b.start(t)
	b.grantSubnets(t, "10.128.2.0/23", "fd01:0:0:1::/64")
	b.makeGatewayRouter(t)
	b.awaitReady(t)
	checkBoth(t, 3)
	checkPings(t)
	awaitOutput(t, "0", "ovs-appctl", "coverage/read-counter", "datapath_drop_recirc_error")
	b.checkOutages(t)
}

// What is wrong with the external bridge is said, and keeps nothing else from
// being set up; a node without the label is no gateway.
func TestGatewayFaults(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.stop()
	labelled, err := selector.ParseNode("--gateway-node-label", "gateway in (yes,true)")
	if err != nil {
		t.Fatal(err)
	}
	b.config.Gateway = config.Gateway{Mode: annotation.GatewayShared, Interface: "eth0", NodeLabel: labelled}
	b.start(t)
	b.becomeReady(t)
	if v, ok := b.node(t).Annotations[annotation.L3GatewayConfig]; ok {
		t.Errorf("a node without the label is told to be a gateway: %s", v)
	}
	if l, err := b.client.CoordinationV1().Leases("kube-node-lease").List(t.Context(), metav1.ListOptions{}); err != nil ||
		len(l.Items) != 0 || b.agent.isAliveGateway() {
		t.Errorf("a node that is no gateway has the leases %v (%v), or is about to, want none", l, err)
	}
	b.label(t, "yes")
	b.awaitMissing(t, "interface eth0 is not in a bridge: run `ovnkube nics-to-bridge eth0`")
	b.awaitState(t, wantState)
	testkit.Run(t, "ovs-vsctl", "add-br", "breth0", "--", "set", "bridge", "breth0", "datapath_type=netdev", "--", "set",
		"port", "breth0", "tag=7", "--", "add-port", "breth0", "eth0")
	b.awaitMissing(t, "port breth0 has tag=7: give --gateway-vlan-id 7")
	testkit.Run(t, "ovs-vsctl", "clear", "port", "breth0", "tag", "--", "set", "interface", "breth0", "external_ids:x=y")
	b.awaitMissing(t, "interface breth0 of the external bridge breth0 has no address")
	testkit.Run(t, "ip", "addr", "add", "192.0.2.9/24", "dev", "breth0")
	b.awaitReady(t)
	b.awaitExternalID(t, names.OVSGatewayBridge, "breth0")
	b.awaitFlows(t, 2)
	testkit.Eventually(t, "the sign of life", func() string {
		l, err := b.client.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "ovn-gateway."+node,
			metav1.GetOptions{})
		if err != nil || l.Spec.RenewTime == nil || l.OwnerReferences[0].UID != "node-uid" {
			return fmt.Sprintf("%+v, %v", l, err)
		}
		return ""
	})
	b.label(t, "no")
	b.awaitAnnotations(t, map[string]string{annotation.L3GatewayConfig: `{"default":{"mode":"disabled"}}`})
	b.awaitExternalID(t, names.OVSGatewayBridge, "")
	b.awaitFlows(t, 0)
	b.awaitReady(t)
}

// label sets the Node's label.
func (b *bed) label(t *testing.T, value string) {
	t.Helper()
	n := b.node(t)
	n.Labels = map[string]string{"gateway": value}
	if _, err := b.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(errors.Join(err))
	}
}
