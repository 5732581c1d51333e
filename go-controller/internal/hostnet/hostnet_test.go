package hostnet

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/nft"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

func mac(last byte) ipnet.MAC { return ipnet.MAC{0x0a, 0x58, 0, 0, 0, last} }

func addr(s string) hostplan.Addr {
	return hostplan.Addr{Link: "m0", Prefix: netip.MustParsePrefix(s)}
}

func route(dest, via, src string) hostplan.Route {
	return hostplan.Route{
		Dest: netip.MustParsePrefix(dest), Via: netip.MustParseAddr(via), Link: "m0", Src: netip.MustParseAddr(src),
		Protocol: hostplan.RouteProtocol,
	}
}

func neigh(ip string, last byte) hostplan.Neighbour {
	return hostplan.Neighbour{Link: "m0", IP: netip.MustParseAddr(ip), MAC: mac(last)}
}

// wanted is a plan with every kind of item.
func wanted() []hostplan.Item {
	return []hostplan.Item{
		hostplan.Sysctl{Path: "net/ipv4/conf/m0/forwarding", Link: "m0", Value: "1"},
		hostplan.Sysctl{Path: "net/ipv4/ip_forward", Value: "1"},
		hostplan.Link{Name: "m0", MAC: mac(2), MTU: 1400, Up: true},
		addr("10.1.0.2/24"), addr("fd01::2/64"), neigh("10.1.0.1", 1), neigh("fd01::1", 1),
		route("10.0.0.0/8", "10.1.0.1", "10.1.0.2"), route("fd00::/16", "fd01::1", "fd01::2"),
		hostplan.Masquerade{V4: netip.MustParsePrefix("10.1.0.0/24"), V6: netip.MustParsePrefix("fd01::/64"), Except: "m0"},
		hostplan.Route{Dest: netip.MustParsePrefix("169.254.169.6/32"), Via: netip.MustParseAddr("10.1.0.1"), Link: "m0",
			Protocol: hostplan.RouteProtocol},
		route("fd69::6/128", "fd01::1", "fd01::2"),
		hostplan.Hairpin{Link: "m0", V4: netip.MustParseAddr("10.1.0.2"), V6: netip.MustParseAddr("fd01::2")},
		hostplan.AntiSpoof{Link: "m0", Own: "10.1.0.0/24,fd01::/64", Inside: "10.0.0.0/8,fd00::/16", Join: "100.64.1.0/24"},
		hostplan.DatabaseDrop{Link: "m0", Servers: "192.0.2.1,2001:db8::1", Ports: "6641-6644,16642-16642"},
	}
}

const wantedDump = `addr 10.1.0.2/24 dev m0
addr fd01::2/64 dev m0
anti-spoof own 10.1.0.0/24,fd01::/64 inside 10.0.0.0/8,fd00::/16 join 100.64.1.0/24 unless through m0
database-drop from m0 to this node,192.0.2.1,2001:db8::1 tcp 6641-6644,16642-16642
hairpin through m0, 10.1.0.2 as 169.254.169.6, fd01::2 as fd69::6
link m0 mac 0a:58:00:00:00:02 mtu 1400 up
masquerade 10.1.0.0/24 fd01::/64 unless through m0
neigh 10.1.0.1 lladdr 0a:58:00:00:00:01 dev m0 permanent
neigh fd01::1 lladdr 0a:58:00:00:00:01 dev m0 permanent
route 10.0.0.0/8 via 10.1.0.1 dev m0 src 10.1.0.2 proto 78
route 169.254.169.6/32 via 10.1.0.1 dev m0 proto 78
route fd00::/16 via fd01::1 dev m0 src fd01::2 proto 78
route fd69::6/128 via fd01::1 dev m0 src fd01::2 proto 78
sysctl net/ipv4/conf/m0/forwarding = 1
sysctl net/ipv4/ip_forward = 1
`

// The real kernel: what is applied is what is read, twice nothing is left to
// do, and everything can be taken away again.
func TestNetlink(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.Run(t, "ip", "link", "add", "m0", "type", "veth", "peer", "name", "m1")
	testkit.Run(t, "ip", "link", "set", "m1", "up")
	k := kernel(t)
	events := make(chan struct{}, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	filter := Filter{
		Link: func(name string) bool { return name == "m0" },
		Dest: func(dest netip.Prefix) bool { return dest.String() == "10.0.0.0/8" },
	}
	err := Watch(ctx, filter, func() { events <- struct{}{} }, func(err error) {
		if ctx.Err() == nil {
			t.Errorf("watching: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := item.Converge(t.Context(), k, wanted()); err != nil {
		t.Fatal(err)
	}
	<-events
	have, err := k.Read(wanted())
	if err != nil {
		t.Fatal(err)
	}
	if got := text(have); got != wantedDump {
		t.Errorf("read back:\n%s\nwant:\n%s", got, wantedDump)
	}
	if again, err := item.Converge(t.Context(), k, wanted()); err != nil || len(again) != 0 {
		t.Errorf("a second time: %v, %v; want nothing", again, err)
	}
	place, ok, err := k.Find(netip.MustParseAddr("10.1.0.2"))
	if err != nil || !ok || place != (Place{"m0", netip.MustParsePrefix("10.1.0.2/24"), 1400}) {
		t.Errorf("Find: %v %v %v", place, ok, err)
	}
	if _, ok, err := k.Find(netip.MustParseAddr("10.1.0.3")); ok || err != nil {
		t.Errorf("Find of an address that is nowhere: %v %v", ok, err)
	}
	other := hostplan.Masquerade{V6: netip.MustParsePrefix("fd01::/64"), Except: "m0"}
	fewer := []hostplan.Item{hostplan.Link{Name: "m0", MAC: mac(2), MTU: 1400, Up: true}, other}
	if _, err := item.Converge(t.Context(), k, fewer); err != nil {
		t.Fatal(err)
	}
	have, err = k.Read(fewer)
	if got, want := text(have),
		fewer[0].String()+"\n"+other.String()+"\n"; err != nil || got != want {
		t.Errorf("after taking away: %v\n%s\nwant:\n%s", err, got, want)
	}
	if err := k.Apply(item.Change{Have: other}); err != nil {
		t.Fatal(err)
	}
	if have, err := nft.NewTables().Read([]hostplan.Item{other}); err != nil || len(have) != 0 {
		t.Errorf("after removing the table: %v %v", have, err)
	}
	if links, err := k.RALinks(); err != nil || len(links) != 0 {
		t.Errorf("RALinks: %v %v", links, err)
	}
	// Each of these is told.
	for _, cmd := range []string{
		"ip link set m0 mtu 1300", "ip addr add 10.1.0.2/24 dev m0", "ip route add 10.0.0.0/8 dev m0",
		"ip route replace 10.0.0.0/8 dev m1",
		"ip route add 10.7.0.0/16 dev m1 proto 78", "ip neigh add 10.1.0.9 lladdr 02:00:00:00:00:01 dev m0 nud permanent",
		"ip neigh del 10.1.0.9 dev m0",
		"ip route del 10.0.0.0/8",
	} {
		drain(events)
		testkit.Run(t, "sh", "-c", cmd)
		<-events
	}
	for range 2 { // made, and removed
		drain(events)
		change := item.Change{Want: other}
		if have, err := nft.NewTables().Read([]hostplan.Item{other}); err != nil {
			t.Fatal(err)
		} else if len(have) > 0 {
			change = item.Change{Have: other}
		}
		if err := k.Apply(change); err != nil {
			t.Fatal(err)
		}
		<-events
	}
	testkit.Run(t, "ip", "-6", "route", "add", "2001:db8::/32", "dev", "m0", "proto", "ra")
	if links, err := k.RALinks(); err != nil || len(links) != 1 || links[0] != "m0" {
		t.Errorf("RALinks: %v %v, want m0", links, err)
	}
	// Of two routers, on one link and on another.
	testkit.Run(t, "ip", "-6", "route", "add", "default", "proto", "ra", "nexthop", "via", "fe80::1", "dev", "m0",
		"nexthop", "via", "fe80::2", "dev", "m0", "nexthop", "via", "fe80::1", "dev", "m1")
	if links, err := k.RALinks(); err != nil || !slices.Equal(links, []string{"m0", "m1"}) {
		t.Errorf("RALinks: %v %v, want m0 and m1", links, err)
	}
}

// text is items, one a line, sorted.
func text(items []hostplan.Item) string {
	var lines []string
	for _, i := range items {
		lines = append(lines, i.String()+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// drain empties the channel.
func drain(events chan struct{}) {
	for {
		select {
		case <-events:
		default:
			return
		}
	}
}

// kernel is that of the test's own network namespace.
func kernel(t *testing.T) *Netlink {
	t.Helper()
	k, err := NewNetlink()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}
