package item

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

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
~ neigh 10.1.0.1 lladdr 0a:58:00:00:00:01 dev m0 permanent ` +
		`(was: neigh 10.1.0.1 lladdr 0a:58:00:00:00:07 dev m0 permanent)
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
	const foreigners = "addr 192.0.2.1/24 dev eth0\nlink eth0 mac 0a:58:00:00:00:08 mtu 1500 up\nroute 10.9.0.0/16 via " +
		"10.1.0.1 dev m0 src 10.1.0.2 proto 4\n"
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
	if err == nil || strings.Count(err.Error(), "applying") != 2 || !strings.Contains(err.Error(),
		`applying "+ addr 10.1.0.2/24 dev m0": no`) {
		t.Errorf("error %v, want one for each of two addresses", err)
	}
	if len(changes) != 10 {
		t.Errorf("%d changes, want the other 10: %v", len(changes), changes)
	}
}
