package nft

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// antiSpoof is the item of a node with the management port m0, in a dual-stack cluster.
func antiSpoof() hostplan.AntiSpoof {
	return hostplan.AntiSpoof{Link: "m0", Own: "10.1.0.0/24,fd01:0:0:1::/64", Inside: "10.0.0.0/8,10.96.0.0/16,fd01::/48",
		Join: "100.64.1.0/24,fd98::/64"}
}

// spoofers is the node with the NIC eth0 in a network with a host outside, which has an address of every kind. A part
// of the cluster's range, 10.9.0.0/16, is in use outside. m0 sends everything: nobody there is asked for a MAC.
const spoofers = `ip link add m0 type veth peer name m1
nft 'add table inet test; add counter inet test to-pods'
nft 'add chain inet test out { type filter hook postrouting priority 400; }'
nft 'add rule inet test out oifname m0 ip daddr 10.1.0.50 counter name to-pods'
nft 'add rule inet test out oifname m0 ip6 daddr fd01:0:0:1::50 counter name to-pods'
ip addr add 10.1.0.2/24 dev m0; ip addr add fd01:0:0:1::2/64 dev m0 nodad
ip link set m1 up; ip link set m0 arp off up; ip link set lo up
ip route add 10.0.0.0/8 dev m0; ip route add fd01::/48 dev m0
ip netns add outside
ip rule add from 192.0.2.1 to 10.2.0.9 lookup 7; ip -6 rule add from 2001:db8::1 to fd01:0:0:2::9 lookup 7
ip link add eth0 type veth peer name eth0 netns outside
for d in all eth0; do echo 0 > /proc/sys/net/ipv4/conf/$d/rp_filter; done
echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
ip addr add 192.0.2.1/24 dev eth0; ip addr add 2001:db8::1/64 dev eth0 nodad; ip link set eth0 up
ip route add default dev eth0 table 7; ip -6 route add default dev eth0 table 7
ip route add 10.9.0.0/16 dev eth0; ip route add 100.64.1.0/24 dev eth0; ip route add fd98::/64 dev eth0
for a in 192.0.2.2/24 10.1.0.9/32 10.2.0.9/32 10.96.0.9/32 10.9.0.9/32 100.64.1.9/32; do
	ip -n outside addr add $a dev eth0
done
for a in 2001:db8::2/64 fd01:0:0:1::9/128 fd01:0:0:2::9/128 fd98::9/128; do
	ip -n outside addr add $a dev eth0 nodad
done
ip -n outside link set eth0 up; ip -n outside route add default via 192.0.2.1
ip -n outside -6 route add default via 2001:db8::1`

// What comes from outside with a source within the cluster is not forwarded to pods. A host outside is, also when it
// has an address that the cluster's range contains; and one with an address of the join subnet reaches the node.
func TestAntiSpoof(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.Run(t, "sh", "-ec", spoofers)
	k, want := NewTables(), antiSpoof()
	const pod4, pod6 = "10.1.0.50", "fd01:0:0:1::50"
	sent := func() int {
		_, text, _ := strings.Cut(testkit.Run(t, "nft", "list", "counter", "inet", "test", "to-pods"), "packets ")
		number, _, _ := strings.Cut(text, " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// forwarded counts the packets to a pod that leave through m0, of 5. The answer to another ping, which comes
	// after them on the same link, says that they have arrived.
	forwarded := func(source, pod string) int {
		before, node := sent(), "192.0.2.1"
		if strings.Contains(pod, ":") {
			node = "2001:db8::1"
		}
		testkit.Run(t, "sh", "-ec", "ip netns exec outside ping -q -c5 -i0.01 -W0.1 -I "+source+" "+pod+" || true; "+
			"ip netns exec outside ping -q -c1 -W5 "+node)
		return sent() - before
	}
	for _, drops := range []bool{false, true} {
		if drops {
			converge(t, k, want)
		}
		for _, c := range []struct {
			source, pod string
			honest      bool
		}{
			{"192.0.2.2", pod4, true}, {"10.1.0.9", pod4, false}, {"10.2.0.9", pod4, false}, {"10.96.0.9", pod4, false},
			{"10.9.0.9", pod4, true}, {"100.64.1.9", pod4, false}, {"2001:db8::2", pod6, true},
			{"fd01:0:0:1::9", pod6, false}, {"fd01:0:0:2::9", pod6, false}, {"fd98::9", pod6, false},
		} {
			n := forwarded(c.source, c.pod)
			if pass := c.honest || !drops; pass && n < 5 || !pass && n != 0 {
				t.Errorf("with the drop %v: of 5 packets from %s to %s %d are forwarded", drops, c.source, c.pod, n)
			}
		}
	}
	testkit.Run(t, "ip", "netns", "exec", "outside", "ping", "-q", "-c1", "-W5", "-I", "100.64.1.9", "192.0.2.1")
	testkit.Run(t, "ip", "netns", "exec", "outside", "ping", "-q", "-c1", "-W5", "-I", "fd98::9", "2001:db8::1")
	testkit.Run(t, "ping", "-q", "-c1", "-W5", "-I", "192.0.2.1", "10.2.0.9") // answers come through the NIC
	testkit.Run(t, "ping", "-q", "-c1", "-W5", "-I", "2001:db8::1", "fd01:0:0:2::9")
	testkit.Run(t, "ping", "-q", "-c1", "-W5", "-I", "10.1.0.2", "192.0.2.1") // the node asks itself
	testkit.Run(t, "ping", "-q", "-c1", "-W5", "-I", "fd01:0:0:1::2", "2001:db8::1")
}

// tunnelling is a node that forwards what comes from pods, through m0, to a host outside and to another pod's node.
const tunnelling = `ip netns add pods; ip netns add outside
ip link add m0 type veth peer name eth0 netns pods; ip link add n0 type veth peer name eth0 netns outside
nft 'add table inet test; add counter inet test out'
nft 'add chain inet test out { type filter hook postrouting priority 400; }'
nft 'add rule inet test out oifname n0 meta l4proto udp counter name out'
echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
for d in m0 n0; do ip link set $d up; done
ip addr add 10.1.0.2/24 dev m0; ip addr add fd01:0:0:1::2/64 dev m0 nodad
ip addr add 192.0.2.1/24 dev n0; ip addr add 2001:db8::1/64 dev n0 nodad
ip -n pods addr add 10.1.0.9/24 dev eth0; ip -n pods addr add fd01:0:0:1::9/64 dev eth0 nodad
ip -n outside addr add 192.0.2.2/24 dev eth0; ip -n outside addr add 2001:db8::2/64 dev eth0 nodad
for n in pods outside; do ip -n $n link set eth0 up; done
ip -n pods route add default via 10.1.0.2; ip -n pods -6 route add default via fd01:0:0:1::2
ip -n outside route add default via 192.0.2.1; ip -n outside -6 route add default via 2001:db8::1`

// What pods send to the ports of tunnels is not forwarded. What they send to other ports is, and what the node itself
// sends to those.
func TestTunnelsOfPods(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.Run(t, "sh", "-ec", tunnelling)
	sent := func(where, to, port string) int {
		testkit.Run(t, "nft", "reset", "counter", "inet", "test", "out")
		line := "for i in 1 2 3; do echo x > /dev/udp/" + to + "/" + port + " || true; done"
		testkit.Run(t, "sh", "-ec", where+" bash -c '"+line+"'; ip netns exec pods ping -q -c1 -W5 "+to)
		var n int
		_, text, _ := strings.Cut(testkit.Run(t, "nft", "list", "counter", "inet", "test", "out"), "packets ")
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const fromPod = "ip netns exec pods"
	for _, drops := range []bool{false, true} {
		if drops {
			converge(t, NewTables(), antiSpoof())
		}
		for _, to := range []string{"192.0.2.2", "2001:db8::2"} {
			for port, tunnel := range map[string]bool{"4789": true, "6081": true, "6080": false} {
				if n := sent(fromPod, to, port); (n == 0) != (tunnel && drops) {
					t.Errorf("with the drop %v: of 3 datagrams of a pod to %s, port %s, %d are forwarded", drops, to, port, n)
				}
				if n := sent("", to, port); n == 0 {
					t.Errorf("with the drop %v: no datagram of the node to %s, port %s, leaves", drops, to, port)
				}
			}
		}
	}
}
