package hostnet

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func mac(last byte) ipnet.MAC { return ipnet.MAC{0x0a, 0x58, 0, 0, 0, last} }

func addr(s string) hostplan.Addr {
	return hostplan.Addr{Link: "m0", Prefix: netip.MustParsePrefix(s)}
}

func route(dest, via, src string) hostplan.Route {
	return hostplan.Route{
		Dest: netip.MustParsePrefix(dest), Via: netip.MustParseAddr(via), Link: "m0", Src: netip.MustParseAddr(src), Protocol: hostplan.RouteProtocol,
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
		hostplan.Route{Dest: netip.MustParsePrefix("169.254.169.6/32"), Via: netip.MustParseAddr("10.1.0.1"), Link: "m0", Protocol: hostplan.RouteProtocol},
		route("fd69::6/128", "fd01::1", "fd01::2"),
		hostplan.Hairpin{Link: "m0", V4: netip.MustParseAddr("10.1.0.2"), V6: netip.MustParseAddr("fd01::2")},
	}
}

const wantedDump = `addr 10.1.0.2/24 dev m0
addr fd01::2/64 dev m0
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

func TestConverge(t *testing.T) {
	foreign := route("10.9.0.0/16", "10.1.0.1", "10.1.0.2")
	foreign.Protocol = 4
	otherAddr := hostplan.Addr{Link: "eth0", Prefix: netip.MustParsePrefix("192.0.2.1/24")}
	m := NewMemory(
		hostplan.Link{Name: "m0", MAC: mac(9), MTU: 1500}, hostplan.Link{Name: "eth0", MAC: mac(8), MTU: 1500, Up: true},
		addr("10.2.0.2/24"), neigh("10.1.0.1", 7), otherAddr, foreign, route("10.8.0.0/16", "10.1.0.1", "10.1.0.2"),
	)
	changes, err := Converge(t.Context(), m, wanted())
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.String())
	}
	const want = `- addr 10.2.0.2/24 dev m0
- route 10.8.0.0/16 via 10.1.0.1 dev m0 src 10.1.0.2 proto 78
+ sysctl net/ipv4/conf/m0/forwarding = 1
+ sysctl net/ipv4/ip_forward = 1
~ link m0 mac 0a:58:00:00:00:02 mtu 1400 up (was: link m0 mac 0a:58:00:00:00:09 mtu 1500 down)
+ addr 10.1.0.2/24 dev m0
+ addr fd01::2/64 dev m0
~ neigh 10.1.0.1 lladdr 0a:58:00:00:00:01 dev m0 permanent (was: neigh 10.1.0.1 lladdr 0a:58:00:00:00:07 dev m0 permanent)
+ neigh fd01::1 lladdr 0a:58:00:00:00:01 dev m0 permanent
+ route 10.0.0.0/8 via 10.1.0.1 dev m0 src 10.1.0.2 proto 78
+ route fd00::/16 via fd01::1 dev m0 src fd01::2 proto 78
+ masquerade 10.1.0.0/24 fd01::/64 unless through m0
+ route 169.254.169.6/32 via 10.1.0.1 dev m0 proto 78
+ route fd69::6/128 via fd01::1 dev m0 src fd01::2 proto 78
+ hairpin through m0, 10.1.0.2 as 169.254.169.6, fd01::2 as fd69::6`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
	const foreigners = "addr 192.0.2.1/24 dev eth0\nlink eth0 mac 0a:58:00:00:00:08 mtu 1500 up\nroute 10.9.0.0/16 via 10.1.0.1 dev m0 src 10.1.0.2 proto 4\n"
	for _, l := range strings.SplitAfter(foreigners+wantedDump, "\n") {
		if !strings.Contains(m.String(), l) {
			t.Errorf("the host lacks %sit is:\n%s", l, m)
		}
	}
	if have, all := strings.Count(m.String(), "\n"), strings.Count(foreigners+wantedDump, "\n"); have != all {
		t.Errorf("the host has %d items, want %d:\n%s", have, all, m)
	}
	if again, err := Converge(t.Context(), m, wanted()); err != nil || len(again) != 0 {
		t.Errorf("a second time: %v, %v; want nothing", again, err)
	}
}

func TestConvergeWithoutLink(t *testing.T) {
	m := NewMemory()
	changes, err := Converge(t.Context(), m, wanted())
	var absent *LinkAbsentError
	if !errors.As(err, &absent) || absent.Link != "m0" {
		t.Errorf("error %v, want that m0 is absent", err)
	}
	if len(changes) != 3 { // what does not depend on the link
		t.Errorf("changes %v, want the sysctl, the masquerade and the hairpin", changes)
	}
}

// broken is a kernel that refuses addresses.
type broken struct{ *Memory }

func (b broken) Apply(c Change) error {
	if c.Kind() == "addr" {
		return errors.New("no")
	}
	return b.Memory.Apply(c)
}

func TestOneFailureDoesNotStopTheOthers(t *testing.T) {
	m := NewMemory(hostplan.Link{Name: "m0", MAC: mac(2), MTU: 1400, Up: true})
	changes, err := Converge(t.Context(), broken{m}, wanted())
	if err == nil || strings.Count(err.Error(), "applying") != 2 || !strings.Contains(err.Error(), `applying "+ addr 10.1.0.2/24 dev m0": no`) {
		t.Errorf("error %v, want one for each of two addresses", err)
	}
	if len(changes) != 10 {
		t.Errorf("%d changes, want the other 10: %v", len(changes), changes)
	}
}

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
	if _, err := Converge(t.Context(), k, wanted()); err != nil {
		t.Fatal(err)
	}
	<-events
	have, err := k.Read(wanted())
	if err != nil {
		t.Fatal(err)
	}
	if got := NewMemory(have...).String(); got != wantedDump {
		t.Errorf("read back:\n%s\nwant:\n%s", got, wantedDump)
	}
	if again, err := Converge(t.Context(), k, wanted()); err != nil || len(again) != 0 {
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
	if _, err := Converge(t.Context(), k, fewer); err != nil {
		t.Fatal(err)
	}
	have, err = k.Read(fewer)
	if got, want := NewMemory(have...).String(), fewer[0].String()+"\n"+other.String()+"\n"; err != nil || got != want {
		t.Errorf("after taking away: %v\n%s\nwant:\n%s", err, got, want)
	}
	if err := k.Apply(Change{Have: other}); err != nil {
		t.Fatal(err)
	}
	if have, err := readMasquerade(); err != nil || len(have) != 0 {
		t.Errorf("after removing the table: %v %v", have, err)
	}
	if links, err := k.RALinks(); err != nil || len(links) != 0 {
		t.Errorf("RALinks: %v %v", links, err)
	}
	// Each of these is told.
	for _, cmd := range []string{
		"ip link set m0 mtu 1300", "ip addr add 10.1.0.2/24 dev m0", "ip route add 10.0.0.0/8 dev m0", "ip route replace 10.0.0.0/8 dev m1",
		"ip route add 10.7.0.0/16 dev m1 proto 78", "ip neigh add 10.1.0.9 lladdr 02:00:00:00:00:01 dev m0 nud permanent", "ip neigh del 10.1.0.9 dev m0",
		"ip route del 10.0.0.0/8",
	} {
		drain(events)
		testkit.Run(t, "sh", "-c", cmd)
		<-events
	}
	for range 2 { // made, and removed
		drain(events)
		change := Change{Want: other}
		if have, err := readMasquerade(); err != nil {
			t.Fatal(err)
		} else if len(have) > 0 {
			change = Change{Have: other}
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

// The rules of a hairpin mean what they should, and come back as they were
// whatever somebody does to them.
func TestHairpin(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := kernel(t)
	want := hostplan.Hairpin{Link: "m0", V4: netip.MustParseAddr("10.1.0.2"), V6: netip.MustParseAddr("fd01::2")}
	other := hostplan.Masquerade{V4: netip.MustParsePrefix("10.1.0.0/24"), Except: "m0"}
	converge(t, k, want, other)
	chains := func() (out string) {
		for _, c := range hairpinChains() {
			out += testkit.Run(t, "nft", "list", "chain", "inet", "northbound", c)
		}
		return out
	}
	before := chains()
	for _, rule := range []string{
		`type filter hook prerouting priority raw;`, `iifname "m0" ip saddr 10.1.0.2 ip saddr set 169.254.169.6 `, `iifname "m0" ip6 saddr fd01::2 ip6 saddr set fd69::6 `,
		`type filter hook postrouting priority 300;`, `oifname "m0" ip daddr 169.254.169.6 ip daddr set 10.1.0.2 `, `oifname "m0" ip6 daddr fd69::6 ip6 daddr set fd01::2 `,
		`type nat hook postrouting priority srcnat;`, `ip saddr 169.254.169.6 oifname != "m0" masquerade `, `ip6 saddr fd69::6 oifname != "m0" masquerade `,
		`type nat hook prerouting priority dstnat + 10;`,
		`iifname "m0" ip saddr != 169.254.169.6 meta l4proto udp fib daddr type local socket wildcard 1 dnat ip to 10.1.0.2 `,
		`iifname "m0" ip6 saddr != fd69::6 meta l4proto udp fib daddr type local socket wildcard 1 dnat ip6 to fd01::2 `,
	} {
		if strings.Count(before, rule) != 1 {
			t.Errorf("want %q once in\n%s", rule, before)
		}
	}
	for _, damage := range []string{
		"flush chain inet northbound hairpin-in", "add rule inet northbound hairpin-out drop", "delete chain inet northbound hairpin-masq",
		"delete chain inet northbound hairpin-out; add chain inet northbound hairpin-out { type filter hook input priority 0; }",
		"insert rule inet northbound hairpin-in ip6 saddr fd01::2 accept", "delete table inet northbound",
	} {
		testkit.Run(t, "nft", damage)
		if changes := converge(t, k, want, other); len(changes) == 0 {
			t.Errorf("%s: not noticed", damage)
		}
		if after := chains(); after != before {
			t.Errorf("after %s:\n%s\nbefore:\n%s", damage, after, before)
		}
	}
	for _, gone := range []hostplan.Item{other, want} {
		if err := k.Apply(Change{Have: gone}); err != nil {
			t.Fatal(err)
		}
	}
	if tables := testkit.Run(t, "nft", "list", "tables"); strings.TrimSpace(tables) != "" {
		t.Errorf("left: %s", tables)
	}
}
