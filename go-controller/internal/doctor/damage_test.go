package doctor

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// damage is something that is broken on the node, what the doctor must say of
// it, and what mends it: undo, or when that is "" the commands of the doctor's
// own fix.
type damage struct {
	do            string
	check         string
	message, fix  string // parts of what is said
	undo          string
	stopped, keep bool // do it while ovn-controller is stopped; leave it to the agent to mend
}

var damages = []damage{
	{do: "ovs-vsctl set bridge br-int fail_mode=standalone", stopped: true, check: "br-int",
		message: "fail_mode=standalone datapath_type=netdev, want fail_mode=secure",
		fix:     "ovs-vsctl --may-exist add-br br-int"},
	{do: "ovs-vsctl set Open_vSwitch . external_ids:ovn-encap-type=vxlan", check: "external-ids",
		message: `ovn-encap-type is "vxlan", want "geneve"`, fix: "external_ids:ovn-encap-type="},
	{do: "ovs-vsctl remove Open_vSwitch . external_ids ovn-bridge-datapath-type", check: "external-ids",
		message: `ovn-bridge-datapath-type is "", want "netdev"`, fix: "external_ids:ovn-bridge-datapath-type="},
	{do: "ip addr del 172.18.0.2/16 dev eth0", check: "encap-ip",
		message: "tunnel address 172.18.0.2 is on no interface of this host",
		fix:     "ip addr add 172.18.0.2/LENGTH dev INTERFACE", undo: "ip addr add 172.18.0.2/16 dev eth0"},
	{do: "ip link set eth0 mtu 1300", check: "encap-ip", message: "MTU of 1300 leaves 1242 for pods, which is too little",
		fix: "ip link set eth0 mtu 1500"},
	{do: "true", stopped: true, check: "ovn-controller", message: "ovn-controller does not answer",
		fix: "systemctl restart ovn-controller", undo: "true"},
	{do: "rm /run/ovn/ovn-controller.pid", stopped: true, check: "ovn-controller", message: "ovn-controller does not run",
		fix: "systemctl start ovn-controller", undo: "true"},
	{do: "ovs-vsctl set Open_vSwitch . external_ids:ovn-remote=unix:/nonexistent", check: "ovn-controller",
		message: "not connected to the Southbound database", fix: "see the check southbound", keep: true},
	{do: "ovs-vsctl set Open_vSwitch . external_ids:ovn-remote=unix:/nonexistent", check: "southbound",
		message: "no such file or directory", fix: "ovn-sbctl set-connection", keep: true},
	{do: "ovs-vsctl remove Open_vSwitch . external_ids ovn-remote", check: "southbound",
		message: "external_ids:ovn-remote is not set", fix: "external_ids:ovn-remote=ssl:HOST:6642", keep: true},
	{do: "ovn-sbctl chassis-del SYSTEMID", stopped: true, check: "chassis", message: "is not in the Southbound database",
		fix: "systemctl restart ovn-controller", undo: "true"},
	{do: "ovn-sbctl set chassis SYSTEMID hostname=another", stopped: true, check: "chassis",
		message: `is registered as host "another", this node is "worker-1.example"`,
		fix:     "external_ids:hostname=worker-1.example"},
	{do: "ip addr add 172.18.0.9/16 dev eth0; ovs-vsctl set Open_vSwitch . external_ids:ovn-encap-ip=172.18.0.9",
		stopped: true, check: "chassis",
		message: "tunnel ends [{geneve 172.18.0.2}], this node's are [{geneve 172.18.0.9}]",
		fix:     "systemctl restart ovn-controller",
		undo: "ip addr del 172.18.0.9/16 dev eth0; ovs-vsctl set Open_vSwitch . " +
			"external_ids:ovn-encap-ip=172.18.0.2"},
	{do: "ovn-sbctl chassis-add old geneve 172.18.0.8 -- set chassis old hostname=worker-1.example",
		check: "duplicate-chassis", message: "chassis old has the same host name too", fix: "chassis-del old"},
	{do: "ovn-sbctl chassis-add old vxlan 172.18.0.2", check: "duplicate-chassis",
		message: "chassis old has the tunnel address 172.18.0.2 too", fix: "chassis-del old"},
	{do: "ovn-sbctl chassis-add other vxlan 172.18.0.8", check: "tunnels",
		message: "no tunnel to 1 of 2 other chassis: chassis other: it has type vxlan, this node geneve",
		fix:     "the same --encap-type", undo: "ovn-sbctl chassis-del other"},
	{do: "ovn-sbctl chassis-add other geneve 172.18.0.8", stopped: true, check: "tunnels",
		message: "chassis other: there is none", fix: "systemctl restart ovn-controller",
		undo: "ovn-sbctl chassis-del other"},
	{do: "ip -n peer link set eth0peer mtu 1400", check: "path-mtu",
		message: "packets of 1500 bytes do not reach 172.18.0.3 (chassis peer), small ones do",
		fix:     "ping -M do -s 1472 -I 172.18.0.2 172.18.0.3", undo: "ip -n peer link set eth0peer mtu 1500"},
	{do: "ip route add 172.18.0.3/32 dev eth0 mtu 1400", check: "path-mtu",
		message: "the route to 172.18.0.3 (chassis peer) through eth0 has an MTU of 1400, packets may have 1500 bytes",
		fix:     "--mtu 1342", undo: "ip route del 172.18.0.3/32"},
	{do: "ovn-sbctl chassis-add far geneve 203.0.113.9", check: "path-mtu",
		message: "there is no route to 203.0.113.9 (chassis far)", fix: "ip route add 203.0.113.9 via ROUTER",
		undo: "ovn-sbctl chassis-del far"},
	{do: "ovs-vsctl --no-wait del-port br-int " + mgmt, check: "management-port", message: "there is no port " + mgmt,
		fix: "ovs-vsctl --may-exist add-port br-int " + mgmt, keep: true},
	{do: "ovs-vsctl --no-wait set interface " + mgmt + " external_ids:iface-id=other", check: "management-port",
		message: `iface-id "other", want internal and k8s-worker-1.example`,
		fix:     "external_ids:iface-id=k8s-worker-1.example", keep: true},
	{do: "ovn-nbctl lsp-del k8s-worker-1.example", check: "management-port",
		message: "the Southbound database has no Port_Binding k8s-worker-1.example", fix: "ovn-nbctl lsp-list",
		undo: addPort},
	{do: "ovs-vsctl add-port br-int pod0 -- set interface pod0 type=internal external_ids:iface-id=shop_web " +
		"external_ids:sandbox=abc", check: "pod-interfaces",
		message: "the flows of port shop_web (interface pod0) are not installed: the Southbound database has no Port_Binding",
		fix:     "ovn-nbctl list logical_switch_port shop_web", undo: "ovs-vsctl del-port br-int pod0"},
	{do: "ovs-vsctl add-port br-int pod1 -- set interface pod1 external_ids:iface-id=red.own_shop_web " +
		"external_ids:sandbox=abc || true", check: "pod-interfaces",
		message: `has not opened interface pod1 of port red.own_shop_web: "could not open network device pod1`,
		fix:     "ovs-vsctl list interface pod1", undo: "ovs-vsctl del-port br-int pod1"},
	{do: "ip addr del 10.128.2.2/23 dev " + mgmt, check: "management-interface", message: "missing: addr 10.128.2.2/23",
		fix: "ip addr add 10.128.2.2/23 dev " + mgmt, keep: true},
	{do: "ip addr add 10.128.2.77/23 dev " + mgmt, check: "management-interface",
		message: "should not be: addr 10.128.2.77/23", fix: "ip addr del 10.128.2.77/23 dev " + mgmt},
	{do: "ip link set " + mgmt + " down", check: "management-interface", message: "mtu 1442 down, want: link",
		fix: "ip link set " + mgmt},
	{do: "ip neigh del 10.128.2.1 dev " + mgmt, check: "management-interface", message: "missing: neigh 10.128.2.1",
		fix: "ip neigh replace 10.128.2.1"},
	{do: "ovn-nbctl lsp-set-enabled stor disabled", check: "router",
		message: "the cluster router's 10.128.2.1 does not answer", fix: "ovn-nbctl show",
		undo: "ovn-nbctl lsp-set-enabled stor enabled"},
	{do: "ip route del 10.96.0.0/16", check: "routes", message: "missing: route 10.96.0.0/16 via 10.128.2.1",
		fix: "ip route replace 10.96.0.0/16"},
	{do: "ip -6 route replace fd01::/48 via fd01:0:0:1::9 dev " + mgmt + " proto 78", check: "routes",
		message: "is: route fd01::/48 via fd01:0:0:1::9", fix: "ip route replace fd01::/48"},
	{do: "echo 0 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv4/conf/all/arp_ignore", check: "sysctls",
		message: "want: sysctl net/ipv4/ip_forward = 1", fix: "sysctl -w net/ipv4/ip_forward=1"},
	{do: "nft flush map inet northbound serve-ports4", check: "service-ports",
		message: "to be changed: service-ports + serve TCP 0.0.0.0:30080 to 10.112.0.10:80",
		fix:     "systemctl restart ovnkube-node", keep: true},
	{do: "nft delete table inet northbound", check: "service-ports",
		message: "there are no chains for services in table inet northbound, want service-ports 1 entries",
		fix:     "systemctl restart ovnkube-node", keep: true},
	{do: "ovn-nbctl lb-add a 10.96.0.9:80 10.128.2.9:80 -- lb-add b 10.96.0.9:80 10.128.2.8:80 -- ls-lb-add sw a -- " +
		"ls-lb-add sw b -- ls-add other -- ls-lb-add other a", check: "load-balancers",
		message: "several load balancers have the same address on the node's switch: ct.new && ip4.dst == 10.96.0.9",
		fix:     "ovn-nbctl ls-lb-list worker-1.example", undo: "ovn-nbctl lb-del a -- lb-del b -- ls-del other"},
	{do: "rm /run/net.d/10-ovn-kubernetes.conflist", check: "cni-conf", message: "no such file or directory",
		fix: "systemctl restart ovnkube-node", keep: true},
	{do: "echo {} >/run/net.d/05-other.conf", check: "cni-conf",
		message: "05-other.conf comes before 10-ovn-kubernetes.conflist", fix: "mv /run/net.d/05-other.conf /root/",
		undo: "rm /run/net.d/05-other.conf"},
	{do: `echo '{"type": "multus"}' >/run/net.d/00-multus.conf; rm -f /run/bin/ovn-k8s-cni-overlay`, check: "cni-plugins",
		message: "the plugin is missing: stat /run/bin/ovn-k8s-cni-overlay",
		fix:     "ln -sf ovn_cni /run/bin/ovn-k8s-cni-overlay", undo: "rm /run/net.d/00-multus.conf"},
	{do: `sed -i s#/run/cni#/elsewhere# /run/net.d/10-ovn-kubernetes.conflist`, check: "cni-conf",
		message: `has ovn_cni talk to "/elsewhere/ovn-cni-server.sock", want "/run/cni`,
		fix:     "systemctl restart ovnkube-node", keep: true},
	{do: "true", check: "cni-conf", message: "nobody listens for ovn_cni", fix: "systemctl restart ovnkube-node",
		keep: true},
	{do: "mv /run/bin/ovn_cni /run/bin/away", check: "cni-plugins",
		message: "the plugin is missing: stat /run/bin/ovn_cni", fix: "install -m 755 ovn_cni /run/bin/",
		undo: "mv /run/bin/away /run/bin/ovn_cni"},
	{do: `mv /run/bin/ovn_cni /run/bin/away; ` +
		`printf '#!/bin/sh\necho "{\\"cniVersion\\":\\"0.2.0\\",\\"supportedVersions\\":[\\"0.2.0\\"]}"\n' ` +
		`>/run/bin/ovn_cni; chmod +x /run/bin/ovn_cni`,
		check: "cni-plugins", message: "knows CNI 0.2.0, the configuration is of", fix: "a newer one",
		undo: "mv /run/bin/away /run/bin/ovn_cni"},
}

// Each thing that can be broken is found by the check for it, with a fix that
// mends it, and nothing else than an `ovnkube node` is needed for the rest.
func TestDamages(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	controller := testkit.StartOVNController(t)
	b.start(t)
	b.config.Node.Metrics = serveReady(t, b.agent.Ready)
	healthy := b.awaitHealthy(t)
	for _, d := range damages {
		b.stop()
		if d.stopped {
			controller.Kill()
		}
		id := names.SystemID(node)
		shell(t, strings.ReplaceAll(d.do, "SYSTEMID", id))
		f := b.await(t, d.check, Problem, d.message)
		if !slices.ContainsFunc(f.Fix, func(line string) bool { return strings.Contains(line, d.fix) }) {
			t.Errorf("after %q the fix is %q, want one with %q", d.do, f.Fix, d.fix)
		}
		switch {
		case d.undo != "":
			shell(t, d.undo)
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
		if d.undo == "" && !d.keep {
			b.await(t, d.check, OK, "") // without the agent's help
		}
		b.start(t)
		b.config.Node.Metrics = serveReady(t, b.agent.Ready)
		b.await(t, d.check, OK, "")
		b.await(t, "chassis", OK, "")
	}
	if again := b.awaitHealthy(t); again != healthy {
		t.Errorf("after all the report is\n%s\nbefore\n%s", again, healthy)
	}
	b.damageServers(t)
}

// awaitHealthy waits for a report without a problem, and returns it as text.
func (b *bed) awaitHealthy(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	testkit.Eventually(t, "health", func() string {
		r, found := b.examine(t)
		text.Reset()
		if err := r.WriteText(&text); err != nil {
			return err.Error()
		}
		// Of some versions of Open vSwitch that itself is to be said.
		known := 0
		if strings.Contains(found["ovs-vswitchd"].Message, "aborts now and then") {
			known = 1
		}
		notChecked := 0
		for _, f := range r.Findings {
			if f.Status == NotChecked {
				notChecked++
			}
		}
		if r.Problems != known || notChecked != 3 { // the Northbound database, its ACLs, and the gateway's bridge
			return text.String()
		}
		return ""
	})
	return text.String()
}

// damageServers breaks what takes everything along; it runs last.
func (b *bed) damageServers(t *testing.T) {
	t.Helper()
	// A peer that does not answer is no problem of this node's.
	shell(t, "ip -n peer link set eth0peer down; ip link set eth0 up")
	b.await(t, "path-mtu", NotChecked, "172.18.0.3 (chassis peer) answers no ping")
	b.stop()
	k, err := hostnet.NewNetlink()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	table := hostplan.Masquerade{V4: netip.MustParsePrefix("10.128.2.0/23"), V6: netip.MustParsePrefix("fd01:0:0:1::/64"),
		Except: mgmt}
	if err := k.Apply(item.Change{Have: table}); err != nil {
		t.Fatal(err)
	}
	b.await(t, "masquerade", Problem, "missing: masquerade 10.128.2.0/23 fd01:0:0:1::/64")
	b.vs.StopDaemon(t)
	b.await(t, "ovs-vswitchd", Problem, "ovs-vswitchd does not answer")
	b.vs.StopDB(t)
	b.await(t, "ovs-database", Problem, "the Open vSwitch database does not answer")
	r, found := b.examine(t)
	for _, check := range []string{"br-int", "external-ids", "encap-ip", "southbound", "management-port",
		"external-bridge"} {
		if f := found[check]; f.Status != NotChecked || !strings.Contains(f.Message,
			"the Open vSwitch database does not answer") {
			t.Errorf("without Open vSwitch %s is %s: %s", check, f.Status, f.Message)
		}
	}
	if r.Node != node {
		t.Errorf("node %q", r.Node)
	}
}
