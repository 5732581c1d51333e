package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// exitScript moves eth0 into breth0, with the peer as next hop, by a link-local
// address for IPv6; and makes the Northbound rows for which ovn-controller makes
// the patch port. Pods must not reach the Northbound database's server, of which Open
// vSwitch alone knows.
const exitScript = `
ip addr del 172.18.0.2/16 dev eth0
ovs-vsctl add-br breth0 -- set bridge breth0 datapath_type=netdev fail-mode=standalone other_config:hwaddr=\"$(cat \
/sys/class/net/eth0/address)\" -- add-port breth0 eth0
ip link set breth0 up; ip addr add 172.18.0.2/16 dev breth0; ip addr add fd18::2/64 dev breth0 nodad
ip -n peer addr add fd18::3/64 dev eth0peer nodad; ip -n peer addr add fe80::3/64 dev eth0peer nodad
ip netns exec peer ethtool -K eth0peer tx off
ip route add default via 172.18.0.3; ip -6 route add default via fe80::3 dev breth0
ovn-nbctl lr-add gr -- set logical_router gr options:chassis=SYSTEMID \
	-- lrp-add gr rtoe 0a:58:00:00:00:09 192.0.2.9/24 -- ls-add ext \
	-- lsp-add ext etor -- lsp-set-type etor router -- lsp-set-addresses etor router \
	-- lsp-set-options etor router-port=rtoe \
	-- lsp-add ext breth0_NODE -- lsp-set-type breth0_NODE localnet -- lsp-set-addresses breth0_NODE unknown \
	-- lsp-set-options breth0_NODE network_name=physnet
ovs-vsctl set Open_vSwitch . external_ids:ovn-nb=ssl:198.51.100.7:6641
`

// exitDamages are what can be wrong with the external bridge.
var exitDamages = []damage{
	{do: "ovs-ofctl del-flows breth0", message: "bridge breth0 has no NORMAL flow: the host is off the network; " +
		"40 flows of breth0 differ", fix: "ovs-ofctl -O OpenFlow14 add-flow breth0 " +
		"'cookie=0x6e626777,table=0,priority=1,actions=NORMAL'"},
	{do: "ovs-ofctl add-flow breth0 priority=90,actions=drop",
		message: "flow table=0,priority=90,actions=drop of bridge breth0 takes what NORMAL should have",
		fix:     "ovs-ofctl --strict del-flows breth0 table=0,priority=90"},
	{do: "ovs-ofctl mod-flows breth0 table=1,actions=drop", message: "3 flows of breth0 differ, the first is",
		fix: "actions=LOCAL"},
	{do: "ovs-ofctl add-flow breth0 cookie=0x6e626777,table=7,priority=3,ip,actions=drop",
		message: `1 flows of breth0 differ, the first is "- flow of breth0 table=7`,
		fix:     "--strict del-flows breth0 'cookie=0x6e626777/-1,table=7,priority=3,ip'"},
	// Without the mapping ovn-controller takes the patch port away, the sooner the newer
	// it is; it comes back with another number.
	{do: "ovs-vsctl remove Open_vSwitch . external_ids ovn-bridge-mappings",
		message: `ovn-bridge-mappings is "", want "physnet:breth0"`,
		fix:     `external_ids:ovn-bridge-mappings='"physnet:breth0"'`, keep: true},
	{do: "ovs-vsctl set Open_vSwitch . external_ids:ovn-bridge-mappings=broken",
		message: "reading external_ids:ovn-bridge-mappings", fix: "want NETWORK:BRIDGE",
		undo: "ovs-vsctl set Open_vSwitch . external_ids:ovn-bridge-mappings=physnet:breth0", keep: true},
	// The port comes back with another number,
	{do: "ovs-vsctl del-port patch-breth0_NODE-to-br-int", stopped: true, keep: true,
		message: "there is no patch port patch-breth0_" + node + "-to-br-int", fix: fixRestartController},
	{do: "ip -n peer addr del 172.18.0.3/16 dev eth0peer", message: "the next hop 172.18.0.3", fix: "172.18.0.3",
		undo: "ip -n peer addr add 172.18.0.3/16 dev eth0peer"},
	{do: "ip -n peer addr del fe80::3/64 dev eth0peer", message: "the next hop fe80::3", fix: "fe80::3",
		undo: "ip -n peer addr add fe80::3/64 dev eth0peer nodad"},
	{do: "nft delete table netdev northbound", message: "missing: ", fix: "`ovnkube node`", keep: true},
	{do: "ovs-vsctl set port breth0 tag=7", message: "port breth0 has tag=7: give --gateway-vlan-id 7", fix: "ovs-vsctl",
		undo: "ovs-vsctl clear port breth0 tag"},
	{do: "ovs-vsctl set port eth0 tag=7", message: "port eth0 has tag=7: take it off", fix: "ovs-vsctl show",
		undo: "ovs-vsctl clear port eth0 tag"},
	{do: "ovs-vsctl del-port breth0 eth0", message: "interface eth0 is not in a bridge: run `ovnkube nics-to-bridge eth0`",
		fix: "ovnkube nics-to-bridge eth0", undo: "ovs-vsctl add-port breth0 eth0", keep: true},
}

// Each thing that can be wrong with a gateway's bridge is found without an
// agent, with what mends it; by what Open vSwitch remembers of it too.
func TestExternalBridge(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	run := func(script string) {
		t.Helper()
		shell(t, strings.NewReplacer("SYSTEMID", names.SystemID(node), "NODE", node).Replace(script))
	}
	const check = "external-bridge"
	run(exitScript)
	b.config.Node.Gateway = config.Gateway{Mode: annotation.GatewayShared, Interface: "eth0"}
	controller := testkit.StartOVNController(t)
	b.start(t)
	const fine = "breth0 with eth0, 40 flows, patch-breth0_" + node + "-to-br-int; 172.18.0.3, fe80::3 answers"
	b.await(t, check, OK, fine)
	b.stop()
	for _, d := range exitDamages {
		if d.stopped {
			controller.Kill()
		}
		run(d.do)
		f := b.await(t, check, Problem, d.message)
		if !slices.ContainsFunc(f.Fix, func(line string) bool { return strings.Contains(line, d.fix) }) {
			t.Errorf("after %q the fix is %q, want one with %q", d.do, f.Fix, d.fix)
		}
		switch {
		case d.undo != "":
			run(d.undo)
		case !d.keep:
			for _, line := range f.Fix {
				if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "systemctl") {
					shell(t, line)
				}
			}
		}
		if d.stopped {
			controller = testkit.StartOVNController(t)
		}
		if d.keep {
			b.start(t)
			b.await(t, check, OK, fine)
			b.stop()
		}
		b.await(t, check, OK, fine)
	}
	// The mapping beside those that are given is no fault of external_ids.
	b.config.Node.BridgeMappings = []config.BridgeMapping{{Network: "lab", Bridge: "brlab"}}
	run("ovs-vsctl set Open_vSwitch . external_ids:ovn-bridge-mappings='\"lab:brlab,physnet:breth0\"'")
	b.await(t, "external-ids", OK, "")
	b.await(t, check, OK, fine)
	b.config.Node.Gateway = config.Gateway{}
	b.await(t, check, OK, fine)
	run("ovs-vsctl remove Open_vSwitch . external_ids northbound-gateway-bridge")
	b.await(t, check, NotChecked, "this node is no gateway")
}
