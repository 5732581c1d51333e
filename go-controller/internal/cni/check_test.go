package cni_test

import (
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// damages break a pod's network in every way. HOST stands for the node's end of the pair.
func damages() []struct{ damage, repair, want string } {
	external := func(key, have, want string) struct{ damage, repair, want string } {
		set := "ovs-vsctl set interface HOST external_ids:" + key + "="
		return struct{ damage, repair, want string }{set + have, set + want, "external_ids:" + key + "="}
	}
	return []struct{ damage, repair, want string }{
		{"ip -n web addr del 10.128.2.3/23 dev eth0",
			"ip -n web addr add 10.128.2.3/23 dev eth0; ip -n web route add default via 10.128.2.1",
			"address 10.128.2.3/23 is not on eth0"},
		{"ip -n web addr del fd01:0:0:1::3/64 dev eth0", "ip -n web addr add fd01:0:0:1::3/64 dev eth0 nodad",
			"address fd01:0:0:1::3/64 is not on eth0"},
		{"ip -n web route del default", "ip -n web route add default via 10.128.2.1",
			"route 0.0.0.0/0 via 10.128.2.1 is not in the container"},
		{"ip -n web -6 route del default", "ip -n web -6 route add default via fd01:0:0:1::1",
			"route ::/0 via fd01:0:0:1::1 is not in the container"},
		{"ip -n web route replace default via 10.128.2.77", "ip -n web route replace default via 10.128.2.1",
			"route 0.0.0.0/0 via 10.128.2.1 is not in the container"},
		{"ip -n web link set eth0 mtu 1300", "ip -n web link set eth0 mtu 1442", "MTU of eth0 is 1300, want 1442"},
		{"ip -n web link set eth0 address 02:00:00:00:00:01", "ip -n web link set eth0 address 0a:58:0a:80:02:03",
			"MAC of eth0 is 02:00:00:00:00:01, want 0a:58:0a:80:02:03"},
		{"ip netns exec web ethtool -K eth0 tx on", "ip netns exec web ethtool -K eth0 tx off",
			"checksum offload of eth0 is on"},
		{"ip link set HOST down", "ip link set HOST up", "interface HOST is down"},
		{"ip link set HOST alias other", "ip link set HOST alias " + idA, "interface HOST is not this container's"},
		external("iface-id", "default_bad", "default_web"),
		external("iface-id-ver", "uid-other", "uid-web"),
		external("sandbox", "other", idA),
		external("attached_mac", `"02:00:00:00:00:01"`, `"0a:58:0a:80:02:03"`),
		external("ip_addresses", "10.9.9.9/24", `"10.128.2.3/23,fd01:0:0:1::3/64"`),
		external("ovn-installed", "false", "true"),
		{"p=$(ovs-vsctl get port HOST _uuid); ovs-vsctl add-br other -- set bridge other datapath_type=netdev -- remove " +
			"bridge br-int ports $p -- add bridge other ports $p",
			"p=$(ovs-vsctl get port HOST _uuid); ovs-vsctl remove bridge other ports $p -- add bridge br-int ports $p -- " +
				"del-br other", `interface HOST is on bridge "other", want br-int`},
		// These two can't be repaired; they come last.
		{"ovs-vsctl del-port HOST", "", "interface HOST is not in Open vSwitch"},
		{"ip -n web link set eth0 down; ip -n web link set eth0 name eth1; ip -n web link add eth0 type veth peer name other",
			"", "interface eth0 in the container is not the other end of HOST"},
	}
}

// CHECK reports every damage, and nothing once it is repaired.
func TestCheckSeesDamage(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	p := web()
	b.create(t, p, true)
	a := add(p, idA, netns(t, "web"))
	install(t, idA)
	result := a.succeed(t)
	check := a.as(protocol.Check).after(result)
	check.succeed(t)
	script := func(s string) {
		t.Helper()
		testkit.Run(t, "sh", "-ec", strings.ReplaceAll(s, "HOST", names.HostVeth(idA)))
	}
	for _, d := range damages() {
		script(d.damage)
		check.fail(t, protocol.CodeCheck, "the network of pod default/web is not as it was made", strings.ReplaceAll(d.want,
			"HOST", names.HostVeth(idA)))
		if d.repair != "" {
			script(d.repair)
			check.succeed(t)
		}
	}
}
