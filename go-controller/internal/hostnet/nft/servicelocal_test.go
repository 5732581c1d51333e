package nft

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// localBed makes the test's namespace a node: outside, behind eth0, there are
// clients; behind the management port m0 there are three pods, and what stands
// for OVN and has the ClusterIPs. The servers are on port 8080 of these, and on
// 9090 of the node.
func localBed(t *testing.T) *Tables {
	t.Helper()
	testkit.Run(t, "sh", "-ec", `echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
ip netns add outside; ip link add eth0 type veth peer name eth0 netns outside; ip link set eth0 up
ip link add m0 type bridge; ip link set m0 up
for n in p5 p6 p7 other ovn; do ip netns add $n; ip link add $n type veth peer name eth0 netns $n
ip link set $n master m0 up; done
for n in p5 p6 p7 other ovn outside; do ip -n $n link set eth0 up; ip -n $n link set lo up; done
ip addr add 198.51.100.1/24 dev eth0; ip addr add 2001:db8:5::1/64 dev eth0 nodad; ip addr add 10.1.0.2/24 dev m0
ip addr add fd01::2/64 dev m0 nodad
for i in 2 3 4 5 6 7 8 9; do ip -n outside addr add 198.51.100.$i/24 dev eth0
ip -n outside addr add 2001:db8:5::$i/64 dev eth0 nodad; done
ip -n outside route add default via 198.51.100.1; ip -n outside route add default via 2001:db8:5::1
for i in 5 6 7; do ip -n p$i addr add 10.1.0.$i/24 dev eth0; ip -n p$i addr add fd01::$i/64 dev eth0 nodad
	ip -n p$i route add default via 10.1.0.2; ip -n p$i route add default via fd01::2; done
ip -n other addr add 10.1.1.5/23 dev eth0; ip -n other addr add fd01:0:0:1::5/63 dev eth0 nodad
ip route add 10.1.1.0/24 dev m0; ip route add fd01:0:0:1::/64 dev m0
ip -n other route add default via 10.1.0.2; ip -n other route add default via fd01::2
ip -n ovn addr add 10.96.0.10/32 dev eth0; ip -n ovn addr add fd02::10/128 dev eth0 nodad
ip -n ovn route add 10.1.0.0/24 dev eth0; ip -n ovn route add fd01::/64 dev eth0; ip route add 10.96.0.0/16 dev m0
ip route add fd02::/112 dev m0`)
	for _, netns := range []string{"p5", "p6", "p7", "ovn"} {
		testkit.StartWhoami(t, netns, 8080)
	}
	testkit.StartWhoami(t, "", 9090)
	// IPv6 takes a moment to be there; from then on no packet may be lost.
	for _, to := range []string{"10.1.0.5", "10.1.0.6", "10.1.0.7", "10.96.0.10", "fd01::5", "fd01::6", "fd01::7",
		"fd02::10"} {
		testkit.Eventually(t, to+" answers the node", func() string { return answers("", net.JoinHostPort(to, "8080")) })
	}
	for _, to := range []string{"198.51.100.1:9090", "[2001:db8:5::1]:9090"} {
		testkit.Eventually(t, to+" answers outside", func() string { return answers("outside", to) })
	}
	return NewTables()
}

func answers(netns, to string) string {
	if _, err := testkit.AskOnce(netns, "udp", to); err != nil {
		return err.Error()
	}
	return ""
}

// localEntries are the entries of a place in every protocol: for clients inside
// to the ClusterIP, for those outside to these endpoints, sticky or not.
func localEntries(at string, kind hostplan.ServiceEntryKind, endpoints ...string) (out []string) {
	to := "10.96.0.10:8080"
	if netip.MustParseAddrPort(at).Addr().Is6() {
		to = "[fd02::10]:8080"
	}
	for _, p := range []string{"TCP", "UDP", "SCTP"} {
		out = append(out, fmt.Sprintf("serve %s %s to %s", p, at, to), fmt.Sprintf("inside %s %s", p, at))
		if len(endpoints) == 1 {
			out = append(out, fmt.Sprintf("local %s %s to %s", p, at, endpoints[0]))
			continue
		}
		for b := 0; b < hostplan.ServiceBuckets && len(endpoints) > 0; b++ {
			out = append(out, fmt.Sprintf("%s %s %s bucket %d to %s", kind, p, at, b, endpoints[b%len(endpoints)]))
		}
	}
	return out
}

// ask sends one UDP datagram from an address outside and tells from where the
// server saw it.
func ask(t *testing.T, from netip.Addr, to string, wait time.Duration) (seen string, err error) {
	t.Helper()
	var c net.Conn
	err = testkit.InNetns("outside", func() (err error) {
		d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
		c, err = d.DialContext(t.Context(), "udp", to)
		return err
	})
	if err != nil {
		return "", err
	}
	defer c.Close()
	return exchange(c, wait)
}

// How long an answer may take on a machine with much else to do, and how long
// is waited where none is to come.
const (
	answerWait  = 5 * time.Second
	silenceWait = time.Second
)

func exchange(c net.Conn, wait time.Duration) (string, error) {
	if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte("?")); err != nil {
		return "", err
	}
	buf := make([]byte, 100)
	n, err := c.Read(buf)
	seen, _, _ := strings.Cut(string(buf[:n]), " ")
	return seen, err
}

// ledTo is the endpoints to which UDP flows to a place have been led, by client.
func ledTo(t *testing.T, at string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		list, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
		if err != nil {
			t.Fatal(err)
		}
		end := func(ip net.IP, port uint16) string { return net.JoinHostPort(ip.String(), fmt.Sprint(port)) }
		for _, f := range list {
			if f.Forward.Protocol == unix.IPPROTO_UDP && end(f.Forward.DstIP, f.Forward.DstPort) == at {
				client, to := f.Forward.SrcIP.String(), end(f.Reverse.SrcIP, f.Reverse.SrcPort)
				if !slices.Contains(out[client], to) {
					out[client] = append(out[client], to)
				}
			}
		}
	}
	for _, l := range out {
		slices.Sort(l)
	}
	return out
}

// Real packets: from outside just the endpoints here answer, and see the client's
// own address; with none here, nothing does. From inside it is the ClusterIP.
func TestServiceLocal(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := localBed(t)
	for _, f := range []struct{ all, node, external, pod, client, inside, other string }{
		{"0.0.0.0", "198.51.100.1", "192.0.2.7", "10.1.0.6", "198.51.100.2", "10.1.0.2", "10.1.1.5"},
		{"::", "2001:db8:5::1", "2001:db8:2::7", "fd01::6", "2001:db8:5::2", "fd01::2", "fd01:0:0:1::5"},
	} {
		at := func(addr string, port int) string {
			return netip.AddrPortFrom(netip.MustParseAddr(addr), uint16(port)).String()
		}
		converge(t, k, servicePorts(t, slices.Concat(
			localEntries(at(f.all, 30080), "", at(f.pod, 8080)), localEntries(at(f.external, 80), "", at(f.pod, 8080)),
			localEntries(at(f.all, 30081), "", at(f.node, 9090)), localEntries(at(f.all, 30082), ""),
			localEntries(at(f.external, 82), ""),
		)...))
		for _, network := range []string{"tcp", "udp"} {
			for _, to := range []string{at(f.node, 30080), at(f.external, 80), at(f.node, 30081)} {
				testkit.Eventually(t, "outside asks "+to+" over "+network, func() string { // the neighbours are found by the first
					seen, err := testkit.AskOnce("outside", network, to)
					if ip, _ := netip.ParseAddr(seen); err != nil || !strings.HasPrefix(ip.String(),
						strings.TrimSuffix(f.client, "2")) || seen == f.node {
						return fmt.Sprintf("seen as %q, %v", seen, err)
					}
					return ""
				})
			}
			for _, to := range []string{at(f.node, 30080), at(f.node, 30082), at(f.external, 80), at(f.external, 82)} {
				if seen, err := testkit.AskOnce("p5", network, to); seen != f.inside || err != nil {
					t.Errorf("a pod asks %s over %s: seen as %q, %v; want %s, as by the ClusterIP", to, network, seen, err, f.inside)
				}
			}
		}
		for _, network := range []string{"tcp", "udp"} {
			if seen, err := testkit.AskOnce("other", network, at(f.node, 30080)); seen != f.inside || err != nil {
				t.Errorf("a pod of another node asks %s over %s: seen as %q, %v; want %s", at(f.node, 30080), network, seen, err,
					f.inside)
			}
		}
		if n := ledTo(t, at(f.node, 30080))[f.other]; len(n) != 1 || n[0] != at(f.pod, 8080) {
			t.Errorf("a pod of another node is led to %v, want %s", n, at(f.pod, 8080))
		}
		if who, err := testkit.AskOnce("other", "udp", at(f.node, 30082)); err == nil {
			t.Errorf("a pod of another node asks %s, which has no endpoint here: it is seen as %s", at(f.node, 30082), who)
		}
		for _, to := range []string{at(f.node, 30082), at(f.external, 82)} {
			if seen, err := ask(t, netip.MustParseAddr(f.client), to, silenceWait); err == nil {
				t.Errorf("outside asks %s, which has no endpoint here: seen as %s", to, seen)
			}
			if n := len(ledTo(t, to)[f.client]); n != 0 {
				t.Errorf("%s leads to %d endpoints, want none", to, n)
			}
		}
	}
}

// Several endpoints share the clients, each of which keeps its own if it is to.
func TestServiceLocalSeveral(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := localBed(t)
	for _, f := range []struct {
		all, node, client string
		pods              []string
	}{
		{"0.0.0.0", "198.51.100.1", "198.51.100.", []string{"10.1.0.5:8080", "10.1.0.6:8080", "10.1.0.7:8080"}},
		{"::", "2001:db8:5::1", "2001:db8:5::", []string{"[fd01::5]:8080", "[fd01::6]:8080", "[fd01::7]:8080"}},
	} {
		at := func(addr string, port uint16) string {
			return netip.AddrPortFrom(netip.MustParseAddr(addr), port).String()
		}
		shared, sticky := at(f.node, 30080), at(f.node, 30081)
		converge(t, k, servicePorts(t,
			append(localEntries(at(f.all, 30080), hostplan.ShareEntry, f.pods...),
				localEntries(at(f.all, 30081), hostplan.StickEntry, f.pods...)...)...))
		for client := range 8 {
			from := netip.MustParseAddr(f.client + fmt.Sprint(2+client))
			for range 10 {
				for _, to := range []string{shared, sticky} {
					if seen, err := ask(t, from, to, answerWait); err != nil || seen != from.String() {
						t.Fatalf("%s asks %s: seen as %q, %v", from, to, seen, err)
					}
				}
			}
		}
		used := map[string]bool{}
		for client, to := range ledTo(t, sticky) {
			if len(to) != 1 {
				t.Errorf("%s was led to %v, want to one", client, to)
			}
			used[to[0]] = true
		}
		if len(used) < 2 || len(ledTo(t, sticky)) != 8 {
			t.Errorf("8 clients were led to %v", slices.Sorted(maps.Keys(used)))
		}
		all := map[string]bool{}
		for _, to := range ledTo(t, shared) {
			for _, e := range to {
				all[e] = true
			}
		}
		if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, f.pods) {
			t.Errorf("80 questions were led to %v, want all of %v", got, f.pods)
		}
	}
}

// A UDP client whose endpoint goes finds another with its next datagram; one
// whose endpoint stays keeps it, whatever buckets move.
func TestServiceLocalStaleFlows(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := localBed(t)
	const at = "198.51.100.1:30080"
	entries := func(pods ...string) hostplan.ServicePorts {
		return servicePorts(t, localEntries("0.0.0.0:30080", hostplan.StickEntry, pods...)...)
	}
	converge(t, k, entries("10.1.0.5:8080", "10.1.0.6:8080"))
	clients := map[string]net.Conn{} // one led to each
	for i := 2; len(clients) < 2; i++ {
		from := netip.AddrFrom4([4]byte{198, 51, 100, byte(i)})
		if i > 9 {
			t.Fatalf("all clients were led to %v", slices.Collect(maps.Keys(clients)))
		}
		var c net.Conn
		if err := testkit.InNetns("outside", func() (err error) {
			d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
			c, err = d.DialContext(t.Context(), "udp", at)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if seen, err := exchange(c, answerWait); err != nil || seen != from.String() {
			t.Fatalf("%s is seen as %q: %v", from, seen, err)
		}
		if led := ledTo(t, at)[from.String()]; len(led) == 1 {
			clients[led[0]] = c
		}
	}
	gone, stays := clients["10.1.0.5:8080"], clients["10.1.0.6:8080"]
	led := func(c net.Conn) string {
		host, _, err := net.SplitHostPort(c.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(ledTo(t, at)[host])
	}
	converge(t, k, entries("10.1.0.7:8080", "10.1.0.6:8080", "10.1.0.6:8080"))
	if got := led(gone) + led(stays); got != "[][10.1.0.6:8080]" {
		t.Errorf("flows %s, want that of the endpoint that stays", got)
	}
	if _, err := exchange(gone, answerWait); err != nil {
		t.Errorf("the client whose endpoint is gone: %v", err)
	}
	converge(t, k, entries("10.1.0.7:8080"))
	if got := led(stays); got != "[]" {
		t.Errorf("the flow to the endpoint that went last is %s", got)
	}
	if _, err := exchange(stays, answerWait); err != nil || led(stays) != "[10.1.0.7:8080]" {
		t.Errorf("the other client, whose endpoint is gone now: %v, led to %s", err, led(stays))
	}
	converge(t, k, entries())
	if _, err := exchange(stays, silenceWait); err == nil || led(stays) != "[]" {
		t.Errorf("without an endpoint: %v, led to %s; want no answer", err, led(stays))
	}
}

// SCTP is led like the others; the packets are made by hand, as the kernel need
// not have SCTP itself.
func TestServiceLocalSCTP(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := localBed(t)
	converge(t, k, servicePorts(t, localEntries("0.0.0.0:30080", "", "10.1.0.6:8080")...))
	var pod, client net.PacketConn
	for netns, to := range map[string]*net.PacketConn{"p6": &pod, "outside": &client} {
		if err := testkit.InNetns(netns, func() (err error) {
			*to, err = net.ListenPacket("ip4:sctp", "0.0.0.0")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		defer (*to).Close()
	}
	testkit.Eventually(t, "an INIT arrives", func() string {
		if _, err := client.WriteTo(sctpInit(40000, 30080), &net.IPAddr{IP: net.IPv4(198, 51, 100, 1)}); err != nil {
			return err.Error()
		}
		if err := pod.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err.Error()
		}
		buf := make([]byte, 100)
		n, from, err := pod.ReadFrom(buf)
		if err != nil || n < 12 {
			return fmt.Sprintf("%d bytes, %v", n, err)
		}
		if port := int(buf[2])<<8 | int(buf[3]); port != 8080 || from.String() != "198.51.100.2" {
			return fmt.Sprintf("to port %d from %s", port, from)
		}
		return ""
	})
}

// sctpInit is a packet that asks for an association (RFC 9260 sections 3.1 and
// 3.3.2).
func sctpInit(from, to uint16) []byte {
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from), to)
	b = append(b, make([]byte, 8)...) // verification tag and, until it is known, checksum
	b = append(b, 1, 0, 0, 20)        // INIT, its length
	b = append(b, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return b
}
