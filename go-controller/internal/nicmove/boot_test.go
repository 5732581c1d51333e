package nicmove_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// reboot imitates a reboot: only Open vSwitch's database and files stay. The script then configures eth0 as the
// distribution would.
func reboot(t *testing.T, vs *testkit.VSwitch, script string) {
	t.Helper()
	vs.StopDaemon(t)
	testkit.Run(t, "sh", "-c", `for l in breth0 ovs-netdev eth0; do ip link del $l; done
ip rule del pref 500; ip -6 rule del pref 502; ip route del 10.12.0.0/16; ip -6 route del fd0b::/64; true`)
	k, err := hostnet.NewNetlink()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if err := k.Apply(item.Change{Have: hostplan.IngressDrop{Link: "eth0"}}); err != nil {
		t.Fatal(err)
	}
	testkit.Run(t, "sh", "-ec", script)
	vs.StartDaemon(t)
	awaitChecked(t)
	// waits for ovs-vswitchd
	testkit.Run(t, "ovs-vsctl", "--timeout=10", "set", "Open_vSwitch", ".", "external_ids:rebooted=yes")
}

// After a reboot, --boot restores the bridge, whether the distribution configured the NIC or not, and whether Open
// vSwitch still has the bridge or not. The return then restores the NIC.
func TestBoot(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	vs := setUp(t, rich)
	boot := forward()
	boot.Target, boot.Options.Boot, boot.Options.Datapath = "", true, ""
	if out, err := run(t, boot); err == nil || !strings.HasPrefix(err.Error(),
		"eth0: it has not been moved to a bridge yet") {
		t.Errorf("before any move: %v\n%s", err, out)
	}
	before, had := dump(t, "eth0"), belongings(t, "eth0")
	mustRun(t, forward())
	for what, script := range map[string]string{
		"configured by the distribution":                 wire0 + distribution,
		"configured nowhere":                             wire0,
		"its state lost by Open vSwitch, configured":     wire0 + distribution + "ovs-vsctl --no-wait del-br breth0",
		"its state lost by Open vSwitch, not configured": wire0 + "ovs-vsctl --no-wait del-br breth0",
	} {
		reboot(t, vs, script)
		if out := mustRun(t, boot); !strings.HasSuffix(out, "eth0: moved to bridge breth0 again\n") {
			t.Errorf("%s: at boot it prints\n%s", what, out)
		}
		same(t, what+": what breth0 has", belongings(t, "breth0"), had)
		if got := testkit.Run(t, "ovs-vsctl", "get", "bridge", "breth0", "datapath_type"); got != "netdev\n" {
			t.Errorf("%s: datapath_type %s", what, got)
		}
		reachable(t)
		if out := mustRun(t, boot); out != "eth0: nothing to do: bridge breth0 is set up already\n" {
			t.Errorf("%s: at boot a second time:\n%s", what, out)
		}
	}
	mustRun(t, back())
	numbers := regexp.MustCompile(`(?m)^[0-9]+: eth0@if[0-9]+`) // a new interface has a new number
	same(t, "eth0 after the return", numbers.ReplaceAllString(dump(t, "eth0"), "eth0"), numbers.ReplaceAllString(before,
		"eth0"))
	clean(t)
	reachable(t)
}

// Without the undo file, the return takes the configuration from the bridge.
func TestLostFile(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	setUp(t, rich)
	before := dump(t, "eth0")
	mustRun(t, forward())
	if err := os.Remove(stateDir + "/eth0.json"); err != nil {
		t.Fatal(err)
	}
	if out := mustRun(t, forward()); out != "eth0: nothing to do: bridge breth0 is set up already\n" {
		t.Errorf("running again prints:\n%s", out)
	}
	// What was added to the bridge since the move goes to the NIC, too.
	testkit.Run(t, "sh", "-ec", `ip addr add 10.6.0.1/24 dev breth0; ip route add 10.66.0.0/16 via 10.6.0.9 dev breth0
ip route add 10.67.0.0/16 via 10.6.0.9 dev breth0 proto 78`)
	if out := mustRun(t, back()); !strings.Contains(out,
		"breth0: there is no undo file: eth0 gets the bridge's configuration\n") {
		t.Errorf("prints:\n%s", out)
	}
	if got := testkit.Run(t, "ip", "route", "show", "10.66.0.0/16"); got != "10.66.0.0/16 via 10.6.0.9 dev eth0 \n" {
		t.Errorf("the added route: %q", got)
	}
	testkit.Run(t, "sh", "-ec", "ip route del 10.66.0.0/16; ip addr del 10.6.0.1/24 dev eth0; ethtool -K eth0 gro on")
	same(t, "eth0", dump(t, "eth0"), before) // without the agent's route of protocol 78
	clean(t)
}

// A node without IPv4 gets its address and default route from router advertisements. It stays reachable during the
// move, and the bridge then follows the advertisements as the NIC did.
func TestRouterAdvertisements(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	setUp(t, `sysctl -qw net.ipv6.conf.default.accept_ra=1
ip netns add outside; ip netns exec outside sysctl -qw net.ipv6.conf.all.forwarding=1
ip link add eth1 type veth peer name veth1 netns outside
ip link add eth0 address 0a:58:00:00:00:01 type veth peer name veth0 address 0a:58:00:00:00:11 netns outside
ethtool -K eth0 tx off >/dev/null; ip netns exec outside ethtool -K veth0 tx off >/dev/null
ip -n outside link set lo up; ip -n outside addr add 2001:db8::1/128 dev lo
ip -n outside addr add 2001:db8:1::1/64 dev veth0 nodad
ip -n outside link set veth0 up; ip link set eth0 up`)
	testkit.Eventually(t, "the router's address checked", func() string {
		return testkit.Run(t, "ip", "-n", "outside", "-6", "addr", "show", "dev", "veth0", "tentative")
	})
	helper(t, "outside", "router", "veth0")
	learned := func(link string) {
		t.Helper()
		testkit.Eventually(t, link+" has what is advertised", func() string {
			routes := testkit.Run(t, "ip", "-6", "route", "show", "default", "dev", link)
			addrs := testkit.Run(t, "ip", "-6", "addr", "show", "dev", link)
			if !strings.Contains(routes, "default via fe80::858:ff:fe00:11 proto ra metric 1024") ||
				strings.Count(addrs, "inet6 2001:db8:1:0:858:ff:fe00:1/64 scope global dynamic") != 1 {
				return routes + addrs
			}
			return ""
		})
	}
	learned("eth0")
	c := call{NICs: []string{"eth0"}, Target: "2001:db8::1", Options: nicmove.Options{Datapath: "netdev",
		Timeout: 10 * time.Second}}
	for range 2 {
		out := mustRun(t, c)
		if !strings.Contains(out, "+ route default inet6 via fe80::858:ff:fe00:11 dev breth0 proto ra metric 1025 "+
			"hoplimit 64 expires ") {
			t.Errorf("moving prints:\n%s", out)
		}
		learned("breth0")
		if out := mustRun(t, c); out != "eth0: nothing to do: bridge breth0 is set up already\n" {
			t.Errorf("running again prints:\n%s", out)
		}
		pinged(t, "ping 2001:db8::1")
		mustRun(t, back())
		pinged(t, "ping 2001:db8::1")
		learned("eth0")
	}
	clean(t)
}
