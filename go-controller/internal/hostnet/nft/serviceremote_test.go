package nft

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// awayEntries are those of node ports without endpoints here: what the node
// sends from an address of its own goes to other nodes.
func awayEntries(at string, kind hostplan.ServiceEntryKind, from string, nodes ...string) []string {
	out := localEntries(at, "")
	source := netip.MustParseAddr(from)
	for _, p := range []string{"TCP", "UDP", "SCTP"} {
		e := hostplan.ServiceEntry{Kind: kind, Protocol: p, At: netip.MustParseAddrPort(at),
			From: netip.PrefixFrom(source, source.BitLen())}
		for e.Bucket = range max(kind.Buckets(), 1) {
			e.To = netip.MustParseAddrPort(nodes[e.Bucket%len(nodes)])
			out = append(out, e.String())
		}
	}
	return out
}

// awayBed is localBed with two more nodes, 203.0.113.8 and 203.0.113.9, which
// serve node ports.
func awayBed(t *testing.T, ports ...int) *Tables {
	t.Helper()
	k := localBed(t)
	for i := 8; i <= 9; i++ {
		netns := fmt.Sprint("node", i)
		testkit.Run(t, "sh", "-ec", fmt.Sprintf(`ip netns add node%[1]d
ip link add node%[1]d type veth peer name eth0 netns node%[1]d; ip link set node%[1]d up
ip -n node%[1]d link set eth0 up; ip -n node%[1]d addr add 203.0.113.%[1]d/32 dev eth0
ip -n node%[1]d addr add 2001:db8:9::%[1]d/128 dev eth0 nodad
ip -n node%[1]d route add 198.51.100.1 dev eth0; ip addr add fe80::1/64 dev node%[1]d nodad
ip -n node%[1]d route add 2001:db8:5::1 via fe80::1 dev eth0
ip route add 203.0.113.%[1]d dev node%[1]d src 198.51.100.1
ip route add 2001:db8:9::%[1]d dev node%[1]d src 2001:db8:5::1`, i))
		for _, port := range ports {
			testkit.StartWhoami(t, netns, port)
		}
		for _, a := range []string{"203.0.113.", "2001:db8:9::"} {
			to := net.JoinHostPort(fmt.Sprint(a, i), fmt.Sprint(ports[0]))
			testkit.Eventually(t, to+" answers the node", func() string { return answers("", to) })
		}
	}
	return k
}

// Real packets: what the node itself sends from its own address to its node port
// comes to other nodes, and is seen from that address; whatever else comes there is led to the ClusterIP, or dropped.
func TestServiceAway(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := awayBed(t, 30080, 30081, 30082)
	for _, f := range []struct{ all, node, client, inside, other, another string }{
		{"0.0.0.0", "198.51.100.1", "198.51.100.2", "10.1.0.2", "203.0.113.8", "203.0.113.9"},
		{"::", "2001:db8:5::1", "2001:db8:5::2", "fd01::2", "2001:db8:9::8", "2001:db8:9::9"},
	} {
		at := func(addr string, port uint16) string {
			return netip.AddrPortFrom(netip.MustParseAddr(addr), port).String()
		}
		converge(t, k, servicePorts(t, slices.Concat(
			awayEntries(at(f.all, 30080), hostplan.RemoteEntry, f.node, at(f.other, 30080)),
			awayEntries(at(f.all, 30081), hostplan.RemoteShareEntry, f.node, at(f.other, 30081), at(f.another, 30081)),
			awayEntries(at(f.all, 30082), hostplan.RemoteStickEntry, f.node, at(f.other, 30082), at(f.another, 30082)),
		)...))
		for port := uint16(30080); port <= 30082; port++ {
			for _, network := range []string{"tcp", "udp"} {
				for range 20 {
					if seen, err := testkit.AskOnce("", network, at(f.node, port)); seen != f.node || err != nil {
						t.Fatalf("the node asks its port %d over %s: seen as %q, %v; want %s", port, network, seen, err, f.node)
					}
				}
				// From another address of the node, and from a pod.
				for netns, to := range map[string]string{"": f.inside, "p5": f.node} {
					if seen, err := testkit.AskOnce(netns, network, at(to, port)); seen != f.inside || err != nil {
						t.Errorf("%q asks %s over %s: seen as %q, %v; want %s, as by the ClusterIP", netns, at(to, port), network, seen,
							err, f.inside)
					}
				}
			}
			if seen, err := ask(t, netip.MustParseAddr(f.client), at(f.node, port), silenceWait); err == nil {
				t.Errorf("outside asks port %d, which has no endpoint here: seen as %s", port, seen)
			}
		}
		for port, want := range map[uint16][]string{
			30080: {at(f.other, 30080)}, 30081: {at(f.other, 30081), at(f.another, 30081)},
		} {
			if got := ledTo(t, at(f.node, port))[f.node]; !slices.Equal(got, want) {
				t.Errorf("port %d leads the node to %v, want %v", port, got, want)
			}
		}
		if got := ledTo(t, at(f.node, 30082))[f.node]; len(got) != 1 {
			t.Errorf("the node that is to keep where it is led is led to %v", got)
		}
	}
}

// A UDP flow of the node's own leaves a node that it is not led to any more with
// its next datagram, also when it is led to the ClusterIP again.
func TestServiceAwayStaleFlows(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := awayBed(t, 30080)
	const all, node = "0.0.0.0:30080", "198.51.100.1"
	var c net.Conn
	for _, step := range []struct {
		entries    []string
		to, seenAs string
	}{
		{awayEntries(all, hostplan.RemoteEntry, node, "203.0.113.8:30080"), "203.0.113.8:30080", node},
		{awayEntries(all, hostplan.RemoteEntry, node, "203.0.113.9:30080"), "203.0.113.9:30080", node},
		{localEntries(all, ""), "10.96.0.10:8080", "10.1.0.2"},
	} {
		converge(t, k, servicePorts(t, step.entries...))
		if c == nil {
			var err error
			if c, err = net.Dial("udp", node+":30080"); err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		seen, err := exchange(c, 5*time.Second)
		if led := fmt.Sprint(ledTo(t, node+":30080")[node]); err != nil || seen != step.seenAs || led != "["+step.to+"]" {
			t.Errorf("led to %s and seen as %q: %v; want to %s, seen as %s", led, seen, err, step.to, step.seenAs)
		}
	}
}
