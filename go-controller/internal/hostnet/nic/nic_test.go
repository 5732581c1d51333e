package nic

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// richDevice gives m0 something of every kind.
const richDevice = `
ip link add m0 address 0a:58:00:00:00:01 type veth peer name m1; ip link add m2 type veth peer name m3
for l in m0 m1 m2 m3; do ip link set $l up; done
sysctl -qw net.ipv6.conf.m0.accept_ra=2 net.ipv4.conf.m0.rp_filter=2 net.ipv4.conf.m0.proxy_arp=1
ip link set m0 mtu 1400; ethtool -K m0 gro on
ip addr add 10.1.0.2/24 brd + dev m0
ip addr add 10.1.0.3/24 brd + dev m0 label m0:1
ip addr add 10.2.0.2/24 dev m0 noprefixroute valid_lft 3600 preferred_lft 1800
ip addr add 10.3.0.1 peer 10.3.0.2/32 dev m0 metric 77
ip addr add 10.4.0.1/24 dev m0 scope link
ip addr add fd01::2/64 dev m0 nodad
ip addr add fd02::2/64 dev m0 nodad valid_lft 7200 preferred_lft 0
ip addr add fd03::2/64 dev m0 nodad noprefixroute metric 300
ip addr add 10.5.0.1/24 dev m2; ip addr add fd05::1/64 dev m2 nodad
ip route add default via 10.1.0.1 dev m0 src 10.1.0.3 metric 50 mtu lock 1300 advmss 1260
ip route add 10.9.0.0/16 via 192.0.2.1 dev m0 onlink
ip route add 10.10.0.0/16 dev m0 tos 0x10 scope link
ip route add 10.11.0.0/16 via 10.1.0.9 dev m0 table 1000 proto 42
ip route add 10.12.0.0/16 nexthop via 10.1.0.9 dev m0 weight 3 nexthop via 10.5.0.9 dev m2 weight 5
ip route add 10.13.0.0/16 via inet6 fd01::9 dev m0
ip route add 10.14.0.0/16 via 10.1.0.9 dev m0 congctl reno quickack 1
ip route add 10.15.0.0/16 dev m0 realm 7
ip route add 10.16.0.0/16 via 10.5.0.9 dev m2
ip -6 route add default via fd01::1 dev m0 metric 99 pref high
ip -6 route add fd09::/64 via fd01::9 dev m0 table 100 expires 900
ip -6 route add fd0a::/64 from fd01::/64 via fd01::9 dev m0
ip -6 route add fd0b::/64 nexthop via fd01::9 dev m0 weight 2 nexthop via fd05::9 dev m2 weight 4
ip rule add from 10.1.0.0/16 iif m0 lookup 1000 pref 500
ip rule add not to 10.9.0.0/16 oif m0 fwmark 0x10/0xf0 ipproto tcp dport 80-90 uidrange 0-1000 suppress_prefixlength \
8 lookup main pref 501
ip -6 rule add from fd01::/64 iif m0 lookup 100 pref 502
ip rule add from all iif m2 lookup 7 pref 503
ip neigh add 10.1.0.77 lladdr 02:00:00:00:00:77 dev m0 nud permanent
ip neigh add fd01::77 lladdr 02:00:00:00:00:78 dev m0 nud permanent
ip neigh add proxy 10.1.0.88 dev m0
ip neigh add proxy fd01::88 dev m0
`

const richText = `link m0 mac 0a:58:00:00:00:01 mtu 1400 up
addr 10.4.0.1/24 dev m0 scope link
addr 10.1.0.2/24 brd 10.1.0.255 dev m0
addr 10.2.0.2/24 dev m0 noprefixroute valid_lft 3600s preferred_lft 1800s
addr 10.3.0.1/32 peer 10.3.0.2 dev m0 metric 77
addr 10.1.0.3/24 brd 10.1.0.255 dev m0 label m0:1
addr fd03::2/64 dev m0 nodad noprefixroute metric 300
addr fd02::2/64 dev m0 nodad valid_lft 7200s preferred_lft 0s
addr fd01::2/64 dev m0 nodad
addr fe80::858:ff:fe00:1/64 dev m0 scope link proto 3
route 10.11.0.0/16 via 10.1.0.9 dev m0 table 1000 proto 42
route default via 10.1.0.1 dev m0 proto boot src 10.1.0.3 metric 50 lock 4 mtu 1300 advmss 1260
route 10.1.0.0/24 dev m0 proto kernel scope link src 10.1.0.2
route 10.3.0.2/32 dev m0 proto kernel scope link src 10.3.0.1 metric 77
route 10.4.0.0/24 dev m0 proto kernel scope link src 10.4.0.1
route 10.9.0.0/16 via 192.0.2.1 dev m0 onlink proto boot
route 10.10.0.0/16 tos 0x10 dev m0 proto boot scope link
route 10.12.0.0/16 proto boot nexthop via 10.1.0.9 dev m0 weight 3 nexthop via 10.5.0.9 dev m2 weight 5
route 10.13.0.0/16 via fd01::9 dev m0 proto boot
route 10.14.0.0/16 via 10.1.0.9 dev m0 proto boot quickack 1 congctl 0x72656e6f00
route 10.15.0.0/16 dev m0 proto boot scope link attribute 11 0x07000000
route fd09::/64 via fd01::9 dev m0 table 100 proto boot metric 1024 expires 900s
route fd01::/64 dev m0 proto kernel metric 256
route fd02::/64 dev m0 proto kernel metric 256 expires 7200s
route fd0a::/64 from fd01::/64 via fd01::9 dev m0 proto boot metric 1024
route fd0b::/64 proto boot metric 1024 nexthop via fd01::9 dev m0 weight 2 nexthop via fd05::9 dev m2 weight 4
route fe80::/64 dev m0 proto kernel metric 256
route default inet6 via fd01::1 dev m0 proto boot metric 99 pref 1
rule 500: from 10.1.0.0/16 iif m0 lookup 1000
rule 501: not to 10.9.0.0/16 oif m0 fwmark 16 suppress_prefixlength 8 ` +
	`fwmask 240 uidrange 0-1000 ipproto 6 dport 80-90 lookup 254
rule inet6 502: from fd01::/64 iif m0 lookup 100
neigh 10.1.0.77 lladdr 02:00:00:00:00:77 dev m0 permanent
neigh proxy 10.1.0.88 dev m0
neigh fd01::77 lladdr 02:00:00:00:00:78 dev m0 permanent
neigh proxy fd01::88 dev m0
sysctl net/ipv4/conf/m0/proxy_arp = 1
sysctl net/ipv4/conf/m0/rp_filter = 2
sysctl net/ipv6/conf/m0/accept_ra = 2
offload gro on dev m0
offload lro off dev m0
`

// text is a device with only those sysctls that richDevice sets. Lifetimes are
// rounded up to the half minute, and the kernel's own checking of addresses is
// left out.
func text(d nicmove.Device) string {
	d = d.On("m0")
	for k := range d.Sysctls {
		switch k {
		case "ipv6/accept_ra", "ipv4/rp_filter", "ipv4/proxy_arp":
		default:
			delete(d.Sysctls, k)
		}
	}
	up := func(n uint32) uint32 {
		if n == nicmove.Forever {
			return n
		}
		return (n + 29) / 30 * 30
	}
	for i, a := range d.Addrs {
		d.Addrs[i].Valid, d.Addrs[i].Preferred, d.Addrs[i].Flags = up(a.Valid), up(a.Preferred), a.Flags&nicmove.SettableFlags
	}
	for i, r := range d.Routes {
		d.Routes[i].Expires = up(r.Expires)
	}
	return d.String()
}

// What is read of a device can be put onto another one, on which the same is
// read then; a round trip through a file loses nothing.
func TestNIC(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.Run(t, "sh", "-ec", richDevice)
	k := kernel(t)
	read := func(link string) nicmove.Device {
		d, err := k.NIC(link)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if none := read("nosuch"); none.Exists() {
		t.Errorf("read of what is not there: %s", none)
	}
	was := read("m0")
	file, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	var back nicmove.Device
	if err := json.Unmarshal(file, &back); err != nil || !reflect.DeepEqual(was, back) {
		t.Errorf("%v: from the file:\n%s\nwas:\n%s", err, back, was)
	}
	if got := text(was); got != richText {
		t.Errorf("read:\n%s\nwant:\n%s", got, richText)
	}

	testkit.Run(t, "sh", "-ec", "ip link del m0; ip link add p0 type veth peer name p1; ip link set p1 up")
	back = back.On("p0")
	for _, r := range was.Rules {
		carry(t, k, nicmove.Step{Have: r}, nicmove.Step{Have: r})
	}
	carry(t, k, nicmove.Step{Want: back.Link}, nicmove.Step{Want: nicmove.Offload{Link: "p0", Name: "gro", On: true}})
	for key, value := range back.Sysctls {
		family, name, _ := strings.Cut(key, "/")
		if name != "addr_gen_mode" { // writing what it is makes no difference, but for the kernel's work
			carry(t, k, nicmove.Step{Want: hostplan.Sysctl{Path: "net/" + family + "/conf/p0/" + name, Value: value}})
		}
	}
	for _, twice := range []bool{false, true} { // the second time nothing changes
		for _, a := range back.Addrs {
			if a.Prefix.Addr().Is4() {
				carry(t, k, nicmove.Step{Want: a})
			}
		}
		for _, a := range slices.Backward(back.Addrs) {
			if a.Prefix.Addr().Is6() {
				carry(t, k, nicmove.Step{Want: a})
			}
		}
		for _, n := range back.Neighbours {
			carry(t, k, nicmove.Step{Want: n})
		}
		for _, r := range back.Rules {
			carry(t, k, nicmove.Step{Want: r})
		}
		for _, r := range back.Routes {
			carry(t, k, nicmove.Step{Want: r})
		}
		if got := text(read("p0")); got != richText {
			t.Errorf("on the other link (twice: %v):\n%s\nwant:\n%s", twice, got, richText)
		}
	}
	for _, a := range back.Addrs {
		carry(t, k, nicmove.Step{Have: a}, nicmove.Step{Have: a})
	}
	for _, r := range back.Routes {
		carry(t, k, nicmove.Step{Have: r}, nicmove.Step{Have: r})
	}
	for _, n := range back.Neighbours {
		carry(t, k, nicmove.Step{Have: n}, nicmove.Step{Have: n})
	}
	if left := read("p0"); len(left.Addrs)+len(left.Routes)+len(left.Neighbours) != 0 {
		t.Errorf("left after removing everything:\n%s", left)
	}
}

// kernel is that of the test's own network namespace.
func kernel(t *testing.T) NICs {
	t.Helper()
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return New(item.Netlink{Handle: h})
}

func carry(t *testing.T, k NICs, steps ...nicmove.Step) {
	t.Helper()
	for _, s := range steps {
		if err := k.Carry(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestStanding(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.Run(t, "sh", "-ec", "ip link add m0 type veth peer name m1; ip link add b0 type bridge; "+
		"ip link set m1 master b0; ip link add link m0 name mv0 type macvlan")
	k := kernel(t)
	for name, want := range map[string]Standing{
		"lo": {Kind: "device", Loopback: true}, "m0": {Kind: "veth", Upper: []string{"mv0 (macvlan)"}},
		"m1": {Kind: "veth", Master: "b0"}, "b0": {Kind: "bridge"},
	} {
		if got, ok, err := k.Standing(name); err != nil || !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %v %v, want %+v", name, got, ok, err, want)
		}
	}
	if _, ok, err := k.Standing("nosuch"); ok || err != nil {
		t.Errorf("of what is not there: %v %v", ok, err)
	}
}
