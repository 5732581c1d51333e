package gateway

import (
	"net/netip"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// moves changes n1's address, which is the source of its pods' egress packets, and removes its next hop, while n1 is a
// gateway. The node's address in Kubernetes stays besides the new one: pods reach the node there.
func (b bed) moves(t *testing.T) {
	n1, n2 := b.Nodes[0], b.Nodes[1]
	own, router := addrs(n1)[0], families().Control()[0].Addr()
	other := netip.PrefixFrom(netip.MustParseAddr("172.30.0.77"), own.Bits())
	b.sh(n1, "ip addr add "+other.String()+" dev $0; ip addr del "+own.String()+" dev $0; ip addr replace "+other.String()+
		" dev $0; ip addr add "+own.String()+" dev $0; ip route replace default via "+router.String())
	b.awaitSource("a", other.Addr())
	b.insideIsReached("a", "c")
	b.sh(n1, "ip route del default")
	b.awaitSource("a", addrs(n2)[0].Addr()) // the only egress path
	b.awaitSource("c", addrs(n2)[0].Addr())
	b.awaitSource("a", addrs(n1)[1].Addr()) // the other family's next hop stays
	b.sh(n1, "ip route add default via "+router.String())
	b.awaitSource("a", other.Addr())
	b.sh(n1, "ip addr del "+other.String()+" dev $0; ip addr replace "+own.String()+
		" dev $0; ip route replace default via "+router.String())
	b.awaitSource("a", own.Addr())
}

// sh runs a script on a node. $0 is the external bridge.
func (b bed) sh(n *node.Node, script string) {
	b.t.Helper()
	machines.Run(b.t, n, "sh", "-ec", script, node.PhysicalBridge)
}
