package agent

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// wantState is what state shows on a node that is set up.
const wantState = `
k8s-worker-1.ex UNKNOWN 10.128.2.2/23 fd01:0:0:1::2/64
link/ether 0a:58:0a:80:02:02 mtu 1442
10.96.0.0/16 via 10.128.2.1 dev k8s-worker-1.ex src 10.128.2.2
10.128.0.0/14 via 10.128.2.1 dev k8s-worker-1.ex src 10.128.2.2
169.254.169.6 via 10.128.2.1 dev k8s-worker-1.ex src 172.18.0.2
fd01::/48 via fd01:0:0:1::1 dev k8s-worker-1.ex src fd01:0:0:1::2 metric 1024 pref medium
fd02::/112 via fd01:0:0:1::1 dev k8s-worker-1.ex src fd01:0:0:1::2 metric 1024 pref medium
fd69::6 via fd01:0:0:1::1 dev k8s-worker-1.ex metric 1024 pref medium
10.128.2.1 lladdr 0a:58:0a:80:02:01 PERMANENT
fd01:0:0:1::1 lladdr 0a:58:0a:80:02:01 PERMANENT
1 1 2 1 0
1 1
br-int secure netdev
internal
0a:58:0a:80:02:02
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

// stateScript shows what the agent keeps on the node; @ is the management
// port's interface.
const stateScript = `
ip -br addr show dev @ scope global
echo link/ether $(cat /sys/class/net/@/address) mtu $(cat /sys/class/net/@/mtu)
ip -4 route show proto 78
ip -6 route show proto 78
ip neigh show dev @ nud permanent
cd /proc/sys/net; echo $(cat ipv4/conf/all/arp_ignore ipv4/conf/@/forwarding ipv4/conf/@/rp_filter \
ipv6/conf/@/forwarding ipv6/conf/@/disable_ipv6)
echo $(cat ipv4/ip_forward ipv6/conf/all/forwarding)
for b in $(ovs-vsctl list-br); do echo $b $(ovs-vsctl get bridge $b fail_mode datapath_type); done
ovs-vsctl get interface @ type mac mtu_request | tr -d '"'
ovs-vsctl get interface @ external_ids | tr -d '{}",' | sed 's/ovn-installed-ts=[0-9]*//'
ovs-vsctl get Open_vSwitch . external_ids | tr -d '{}"' | tr ',' '\n'
echo $(ovs-vsctl get-ssl | sed -n 's/^.*: \(.keys\)/\1/p')
`

func TestNodeIsSetUpAndRepaired(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.awaitMissing(t, "no annotation k8s.ovn.org/node-subnets")
	b.awaitAnnotations(t, map[string]string{annotation.NodeChassisID: names.SystemID(node)})
	b.grantSubnets(t, "10.128.2.0/23", "fd01:0:0:1::/64")
	b.awaitMissing(t, "management port k8s-worker-1.ex is not bound")
	conf := filepath.Join(b.config.CNIConfDir, names.CNIConfFile)
	if _, err := os.Stat(conf); err == nil {
		t.Error("the CNI configuration is there before the management port works")
	}
	testkit.Run(t, "ovs-vsctl", "set", "Interface", mgmtLink, "external_ids:ovn-installed=true")
	b.awaitReady(t)
	b.awaitAnnotations(t, map[string]string{
		annotation.NodeMgmtPortMAC:   `{"default":"0a:58:0a:80:02:02"}`,
		annotation.NodePrimaryIfAddr: `{"ipv4":"172.18.0.2/16","ipv6":""}`,
	})
	b.awaitState(t, wantState)
	if _, err := os.Stat(conf); err != nil {
		t.Errorf("the node is ready without its CNI configuration: %v", err)
	}

	for _, damage := range damages {
		testkit.Run(t, "sh", "-c", damage)
		b.awaitState(t, wantState)
	}
	b.damageRules(t)
	b.damageFilesAndAnnotations(t)
}

// damages are what hands can do to a node's kernel and Open vSwitch. What
// ovn-controller would do about it is in them.
var damages = []string{
	"ip addr del 10.128.2.2/23 dev " + mgmtLink,
	"ip addr del fd01:0:0:1::2/64 dev " + mgmtLink,
	"ip addr add 10.128.2.77/23 dev " + mgmtLink,
	"ip addr flush dev " + mgmtLink,
	"ip route del 10.96.0.0/16",
	"ip -6 route del fd02::/112",
	"ip route replace 10.128.0.0/14 via 10.128.2.9 dev " + mgmtLink,
	"ip -6 route replace fd01::/48 via fd01:0:0:1::9 dev " + mgmtLink,
	"ip route replace 10.96.0.0/16 via 172.18.0.9 dev eth0",
	"ip route add 10.55.0.0/16 via 10.128.2.1 dev " + mgmtLink + " proto 78",
	"ip neigh del 10.128.2.1 dev " + mgmtLink,
	"ip neigh replace fd01:0:0:1::1 lladdr 02:00:00:00:00:01 dev " + mgmtLink + " nud permanent",
	"ip neigh replace 10.128.2.1 lladdr 0a:58:0a:80:02:01 dev " + mgmtLink + " nud stale",
	"ip link set " + mgmtLink + " down",
	"ip link set " + mgmtLink + " mtu 1300",
	"ip link set " + mgmtLink + " address 02:00:00:00:00:09",
	"echo 1 >/proc/sys/net/ipv6/conf/" + mgmtLink + "/disable_ipv6",
	// Nobody tells of these: they are found at the next look.
	"cd /proc/sys/net; for f in ipv4/ip_forward ipv4/conf/all/arp_ignore ipv4/conf/" + mgmtLink +
		"/rp_filter ipv6/conf/all/forwarding; do echo 0 >$f; done",
	"ovs-vsctl remove Open_vSwitch . external_ids ovn-remote",
	"ovs-vsctl remove Open_vSwitch . external_ids hostname -- remove Open_vSwitch . external_ids system-id",
	"ovs-vsctl set Open_vSwitch . external_ids:ovn-encap-ip=9.9.9.9",
	"ovs-vsctl set Open_vSwitch . external_ids:ovn-encap-type=vxlan -- remove Open_vSwitch . " +
		"external_ids ovn-bridge-datapath-type",
	"ovs-vsctl del-ssl",
	"ovs-vsctl set-ssl /keys/other.key /keys/sb.crt /keys/ca.crt",
	"ovs-vsctl set bridge br-int fail_mode=standalone",
	"ovs-vsctl set bridge br-int datapath_type=system" + reinstalled,
	"ovs-vsctl set interface " + mgmtLink + " external_ids:iface-id=other",
	"ovs-vsctl set interface " + mgmtLink + " mtu_request=1200",
	"ovs-vsctl clear interface " + mgmtLink + " mac",
	"ovs-vsctl --no-wait del-port br-int " + mgmtLink + reinstalled,
	"ovs-vsctl --no-wait del-br br-int" + reinstalled,
}

// reinstalled is what ovn-controller does when the management port is back.
const reinstalled = " && ovs-vsctl --timeout=10 wait-until interface " + mgmtLink +
	" 'ofport>0' && ovs-vsctl set interface " + mgmtLink + " external_ids:ovn-installed=true"

// damageRules removes and edits the nftables rules, and waits until they are
// back.
func (b *bed) damageRules(t *testing.T) {
	t.Helper()
	masquerade := hostplan.Masquerade{V4: netip.MustParsePrefix("10.128.2.0/23"),
		V6: netip.MustParsePrefix("fd01:0:0:1::/64"), Except: mgmtLink}
	others := masquerade
	others.V4, others.Except = netip.MustParsePrefix("10.1.0.0/16"), "eth0"
	hairpin := hostplan.Hairpin{Link: mgmtLink, V4: netip.MustParseAddr("10.128.2.2"),
		V6: netip.MustParseAddr("fd01:0:0:1::2")}
	another := hairpin
	another.V6, another.Link = netip.Addr{}, "eth0"
	k, err := hostnet.NewNetlink()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for _, damage := range []item.Change{{Have: masquerade}, {Have: masquerade, Want: others}, {Have: hairpin},
		{Have: hairpin, Want: another}} {
		if err := k.Apply(damage); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, damage.Have.Key()+" is back after "+damage.String(), func() string {
			have, err := k.Read([]hostplan.Item{damage.Have})
			if err != nil || !slices.Contains(have, damage.Have) {
				return fmt.Sprint(have, err)
			}
			return ""
		})
	}
}

// damageFilesAndAnnotations removes and edits the CNI configuration and what
// the Node's annotations say.
func (b *bed) damageFilesAndAnnotations(t *testing.T) {
	t.Helper()
	conf := filepath.Join(b.config.CNIConfDir, names.CNIConfFile)
	want, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []func() error{
		func() error { return os.Remove(conf) },
		func() error { return os.WriteFile(conf, []byte("{}"), 0o600) },
		func() error { return os.RemoveAll(b.config.CNIConfDir) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the CNI configuration is back", func() string {
			if have, err := os.ReadFile(conf); err != nil || !bytes.Equal(have, want) {
				return fmt.Sprintf("%v: %s", err, have)
			}
			return ""
		})
	}
	n := b.node(t)
	delete(n.Annotations, annotation.NodeChassisID)
	n.Annotations[annotation.NodePrimaryIfAddr] = "rubbish"
	if _, err := b.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.awaitAnnotations(t, map[string]string{
		annotation.NodeChassisID:     names.SystemID(node),
		annotation.NodePrimaryIfAddr: `{"ipv4":"172.18.0.2/16","ipv6":""}`,
	})
}
