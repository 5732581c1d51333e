package nft

import (
	"sync"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// databaseDrop is the item of a node with the management port m0 and a database at the host outside.
func databaseDrop() hostplan.DatabaseDrop {
	return hostplan.DatabaseDrop{Link: "m0", Servers: "192.0.2.2,2001:db8::2", Ports: "6641-6644,16642-16642"}
}

// databaseNode is a node between pods, behind m0, and the host outside. Port 80 of 203.0.113.1 leads to a database.
const databaseNode = `for n in pods:m0:10.1.0:fd01 outside:eth0:192.0.2:2001:db8; do
	ns=${n%%:*}; n=${n#*:}; d=${n%%:*}; n=${n#*:}; v4=${n%%:*}; v6=${n#*:}
	ip netns add $ns; ip link add $d type veth peer name eth0 netns $ns
	ip addr add $v4.1/24 dev $d; ip addr add $v6::1/64 dev $d nodad; ip link set $d up
	ip -n $ns addr add $v4.2/24 dev eth0; ip -n $ns addr add $v6::2/64 dev eth0 nodad; ip -n $ns link set eth0 up
	ip -n $ns route add default via $v4.1; ip -n $ns -6 route add default via $v6::1
done
echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
nft 'add table ip test; add chain ip test pre { type nat hook prerouting priority dstnat; }'
nft 'add rule ip test pre ip daddr 203.0.113.1 tcp dport 80 dnat to 192.0.2.2:6641'`

// Pods reach no port of a database on the node or on a server of a database, by whatever address. They reach other
// ports, and the node reaches all.
func TestDatabaseDrop(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.Run(t, "sh", "-ec", databaseNode)
	for _, netns := range []string{"", "outside"} {
		for _, port := range []int{6640, 6641, 6644, 6645, 16642} {
			testkit.StartWhoami(t, netns, port)
		}
	}
	closed := []string{"10.1.0.1:6641", "[fd01::1]:6641", "192.0.2.1:6644", "10.1.0.1:16642", "192.0.2.2:6641",
		"[2001:db8::2]:6644", "[2001:db8::2]:16642", "203.0.113.1:80"}
	open := []string{"10.1.0.1:6640", "[fd01::1]:6645", "192.0.2.2:6640", "[2001:db8::2]:6645"}
	k := NewTables()
	for _, drops := range []bool{false, true} {
		if drops {
			converge(t, k, databaseDrop())
			converged(t, k, databaseDrop())
		}
		var wg sync.WaitGroup
		ask := func(netns, network, to string, passes bool) {
			wg.Go(func() {
				if _, err := testkit.AskOnce(netns, network, to); (err == nil) != passes {
					t.Errorf("with the drop %v: from %q to %s %s: %v; want an answer: %v", drops, netns, network, to, err, passes)
				}
			})
		}
		for _, to := range closed {
			ask("pods", "tcp", to, !drops)
		}
		for _, to := range open {
			ask("pods", "tcp", to, true)
		}
		ask("pods", "udp", "192.0.2.2:6641", true)
		ask("", "tcp", "192.0.2.2:6641", true)
		ask("outside", "tcp", "192.0.2.1:6641", true)
		wg.Wait()
	}
	if err := k.Apply(item.Change{Have: databaseDrop()}); err != nil {
		t.Fatal(err)
	}
	if _, err := testkit.AskOnce("pods", "tcp", "192.0.2.2:6641"); err != nil {
		t.Errorf("the drop is taken away: %v", err)
	}
}
