package ipnet_test

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }

func TestNth(t *testing.T) {
	for _, c := range []struct {
		p    string
		n    uint64
		want string // "" when there is no such address
	}{
		{"10.0.0.0/24", 0, "10.0.0.0"},
		{"10.0.0.0/24", 1, "10.0.0.1"},
		{"10.0.0.0/24", 255, "10.0.0.255"},
		{"10.0.0.0/24", 256, ""},
		{"10.0.0.77/24", 1, "10.0.0.1"}, // counted from the network address
		{"255.255.255.0/24", 256, ""},   // would overflow 32 bits
		{"0.0.0.0/0", 1<<32 - 1, "255.255.255.255"},
		{"0.0.0.0/0", 1 << 32, ""},
		{"10.0.0.7/32", 0, "10.0.0.7"},
		{"10.0.0.7/32", 1, ""},
		{"fd01::/64", 3, "fd01::3"},
		{"fd01::/64", 1<<64 - 1, "fd01::ffff:ffff:ffff:ffff"},
		{"fd01::/120", 255, "fd01::ff"},
		{"fd01::/120", 256, ""},
		{"fd01::ffff:ffff:ffff:0/48", 1 << 40, "fd01::100:0:0"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00/120", 256, ""}, // would wrap around
	} {
		got, ok := ipnet.Nth(prefix(c.p), c.n)
		if ok != (c.want != "") || ok && got != addr(c.want) {
			t.Errorf("Nth(%s, %d) = %s, %v; want %q", c.p, c.n, got, ok, c.want)
		}
	}
}

func TestIndex(t *testing.T) {
	for _, c := range []struct {
		p, a string
		n    uint64
		ok   bool
	}{
		{"10.0.0.0/24", "10.0.0.9", 9, true},
		{"10.0.0.0/24", "10.0.1.0", 0, false},
		{"10.0.0.0/24", "fd01::1", 0, false},
		{"fd01::/64", "fd01::1:0", 1 << 16, true},
		{"fd01::/48", "fd01::1:0:0:0:0", 0, false}, // 2^64 after the start
		{"fd01::/48", "fd01:0:0:0:ffff:ffff:ffff:ffff", 1<<64 - 1, true},
	} {
		n, ok := ipnet.Index(prefix(c.p), addr(c.a))
		if n != c.n || ok != c.ok {
			t.Errorf("Index(%s, %s) = %d, %v; want %d, %v", c.p, c.a, n, ok, c.n, c.ok)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		p       string
		size    uint64
		last    string
		length  int
		subnets uint64
	}{
		{"10.128.0.0/14", 1 << 18, "10.131.255.255", 23, 512},
		{"10.0.0.0/24", 256, "10.0.0.255", 24, 1},
		{"10.0.0.0/24", 256, "10.0.0.255", 23, 0},
		{"0.0.0.0/0", 1 << 32, "255.255.255.255", 32, 1 << 32},
		{"10.0.0.7/32", 1, "10.0.0.7", 32, 1},
		{"fd01::/48", 1 << 63, "fd01:0:0:ffff:ffff:ffff:ffff:ffff", 64, 65536},
		{"fd01::/64", 1 << 63, "fd01::ffff:ffff:ffff:ffff", 120, 1 << 56},
		{"fd01::/66", 1 << 62, "fd01::3fff:ffff:ffff:ffff", 128, 1 << 62},
		{"fd01::/120", 256, "fd01::ff", 128, 256},
		{"::/0", 1 << 63, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 128, 1 << 63},
		{"fd01::5/128", 1, "fd01::5", 128, 1},
	} {
		p := prefix(c.p)
		if got := ipnet.Size(p); got != c.size {
			t.Errorf("Size(%s) = %d, want %d", p, got, c.size)
		}
		if got := ipnet.Last(p); got != addr(c.last) {
			t.Errorf("Last(%s) = %s, want %s", p, got, c.last)
		}
		if got := ipnet.Subnets(p, c.length); got != c.subnets {
			t.Errorf("Subnets(%s, %d) = %d, want %d", p, c.length, got, c.subnets)
		}
	}
}

func TestSubnet(t *testing.T) {
	for _, c := range []struct {
		p      string
		length int
		n      uint64
		want   string // "" when there is none
	}{
		{"10.128.0.0/14", 23, 0, "10.128.0.0/23"},
		{"10.128.0.0/14", 23, 1, "10.128.2.0/23"},
		{"10.128.0.0/14", 23, 511, "10.131.254.0/23"},
		{"10.128.0.0/14", 23, 512, ""},
		{"10.128.0.0/14", 13, 0, ""},
		{"10.128.0.0/14", 33, 0, ""},
		{"255.255.255.0/24", 26, 3, "255.255.255.192/26"},
		{"fd01::/48", 64, 1, "fd01:0:0:1::/64"},
		{"fd01::/48", 64, 65535, "fd01:0:0:ffff::/64"},
		{"fd01::/48", 64, 65536, ""},
		{"fd01::/48", 72, 257, "fd01:0:0:1:100::/72"},
		{"fd01::/112", 120, 2, "fd01::200/120"},
		{"::/0", 0, 0, "::/0"},
		{"::/0", 1, 1, "8000::/1"},
	} {
		got, ok := ipnet.Subnet(prefix(c.p), c.length, c.n)
		if ok != (c.want != "") || ok && got != prefix(c.want) {
			t.Errorf("Subnet(%s, %d, %d) = %s, %v; want %q", c.p, c.length, c.n, got, ok, c.want)
		}
	}
}

// Nth and Index are inverses. Every n-th subnet lies in its range, starts where the previous one ends, and overlaps no
// other.
func TestArithmeticLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		p := randomPrefix(r)
		n := r.Uint64() >> r.IntN(64)
		if a, ok := ipnet.Nth(p, n); ok {
			if got, ok := ipnet.Index(p, a); !ok || got != n {
				t.Fatalf("Index(%s, Nth(%d) = %s) = %d, %v", p, n, a, got, ok)
			}
		} else if n < ipnet.Size(p) {
			t.Fatalf("Nth(%s, %d): no address, but the size is %d", p, n, ipnet.Size(p))
		}
		if !p.Contains(ipnet.Last(p)) || p.Contains(ipnet.Last(p).Next()) && ipnet.Last(p).Next().IsValid() {
			t.Fatalf("Last(%s) = %s", p, ipnet.Last(p))
		}
		length := p.Bits() + r.IntN(p.Addr().BitLen()-p.Bits()+1)
		k := r.Uint64N(ipnet.Subnets(p, length))
		s, ok := ipnet.Subnet(p, length, k)
		if !ok || s.Bits() != length || s != s.Masked() || !p.Contains(s.Addr()) || !p.Contains(ipnet.Last(s)) {
			t.Fatalf("Subnet(%s, %d, %d) = %s, %v", p, length, k, s, ok)
		}
		if next, ok := ipnet.Subnet(p, length, k+1); ok && ipnet.Last(s).Next() != next.Addr() {
			t.Fatalf("Subnet(%s, %d, %d) = %s does not follow %s", p, length, k+1, next, s)
		}
	}
}

func randomPrefix(r *rand.Rand) netip.Prefix {
	if r.IntN(2) == 0 {
		var b [4]byte
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return netip.PrefixFrom(netip.AddrFrom4(b), r.IntN(33)).Masked()
	}
	var b [16]byte
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	b[0] = 0xfd // never an IPv4-mapped address
	return netip.PrefixFrom(netip.AddrFrom16(b), 8+r.IntN(121)).Masked()
}

func TestMAC(t *testing.T) {
	for _, c := range []struct {
		addrs []string
		want  string
	}{
		{[]string{"10.244.1.3"}, "0a:58:0a:f4:01:03"},
		{[]string{"::ffff:10.244.1.3"}, "0a:58:0a:f4:01:03"},
		{[]string{"fd01::3"}, "0a:58:fd:01:00:03"},
		{[]string{"fd01:0:0:1::3"}, "0a:58:fd:01:00:02"},
		{[]string{"fd01::3", "10.244.1.3"}, "0a:58:0a:f4:01:03"}, // IPv4 decides, in any position
		{nil, "00:00:00:00:00:00"},
	} {
		var addrs []netip.Addr
		for _, a := range c.addrs {
			addrs = append(addrs, addr(a))
		}
		if got := ipnet.MACFor(addrs).String(); got != c.want {
			t.Errorf("MACFor(%v) = %s, want %s", c.addrs, got, c.want)
		}
	}
}

// Two hosts in one subnet never share a MAC.
func TestMACsOfASubnetDiffer(t *testing.T) {
	for _, p := range []string{"10.128.2.0/23", "fd01:0:0:7::/64", "fd01:0:0:ffff:8000::/65"} {
		seen := map[ipnet.MAC]netip.Addr{}
		for n := range uint64(512) {
			a, ok := ipnet.Nth(prefix(p), n)
			if !ok {
				t.Fatalf("Nth(%s, %d): none", p, n)
			}
			if other, dup := seen[ipnet.MACOf(a)]; dup {
				t.Fatalf("%s and %s have the same MAC %s", a, other, ipnet.MACOf(a))
			}
			seen[ipnet.MACOf(a)] = a
		}
	}
}

func TestSort(t *testing.T) {
	got := []netip.Prefix{prefix("fd01::/64"), prefix("10.0.1.0/24"), prefix("10.0.0.0/24"), prefix("10.0.0.0/16"),
		prefix("fd00::/64")}
	ipnet.Sort(got)
	want := []netip.Prefix{prefix("10.0.0.0/16"), prefix("10.0.0.0/24"), prefix("10.0.1.0/24"), prefix("fd00::/64"),
		prefix("fd01::/64")}
	if !slices.Equal(got, want) {
		t.Errorf("Sort: %v, want %v", got, want)
	}
	if got := ipnet.Addrs(want[:1]); !slices.Equal(got, []netip.Addr{addr("10.0.0.0")}) {
		t.Errorf("Addrs: %v", got)
	}
}

func TestUnion(t *testing.T) {
	a, b, c := prefix("10.96.0.0/16"), prefix("fd02::/112"), prefix("10.97.0.0/16")
	given := append(make([]netip.Prefix, 0, 8), a, b)
	got := ipnet.Union(given, []netip.Prefix{c, a, c})
	if want := []netip.Prefix{a, b, c}; !slices.Equal(got, want) || given[:3][2] == c {
		t.Errorf("union %v, want %v, and what was given as it was", got, want)
	}
}

// Addresses of package net come with 4 or 16 bytes. Both are the same IPv4 address.
func TestPackageNet(t *testing.T) {
	for _, s := range []string{"10.0.0.7/24", "0.0.0.0/0", "fd00::7/64", "::/0", "192.0.2.1/32"} {
		p := netip.MustParsePrefix(s)
		n := ipnet.IPNet(p)
		if back, ok := ipnet.OfIPNet(n); !ok || back != p || n.String() != p.String() {
			t.Errorf("%s is %s in package net, and back %s, %v", p, n, back, ok)
		}
		if a := ipnet.OfIP(n.IP.To16()); a != p.Addr() {
			t.Errorf("16 bytes of %s are %s", p.Addr(), a)
		}
	}
	if _, ok := ipnet.OfIPNet(nil); ok || ipnet.OfIP(nil).IsValid() || ipnet.OfIP(net.IP{1, 2, 3}).IsValid() {
		t.Error("what is no address is one")
	}
	if _, ok := ipnet.OfIPNet(&net.IPNet{}); ok {
		t.Error("a network without an address is one")
	}
}

func TestFirstOf(t *testing.T) {
	addrs := []netip.Addr{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
	if a, ok := ipnet.FirstOf(addrs, true); !ok || a != addrs[1] {
		t.Errorf("the first IPv4 address is %v, %v; want %v", a, ok, addrs[1])
	}
	if a, ok := ipnet.FirstOf(addrs[1:], false); ok || a.IsValid() {
		t.Errorf("the first IPv6 address is %v, %v; want none", a, ok)
	}
}

func TestMACText(t *testing.T) {
	want := ipnet.MAC{0x0a, 0x58, 1, 2, 3, 0xff}
	text, err := want.MarshalText()
	if err != nil || string(text) != "0a:58:01:02:03:ff" {
		t.Fatalf("%q %v", text, err)
	}
	var got ipnet.MAC
	if err := got.UnmarshalText(text); err != nil || got != want {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"", "x", "0a:58:01:02:03", "02:00:5e:10:00:00:00:01"} {
		if err := got.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a MAC", bad)
		}
	}
}

func TestMinus(t *testing.T) {
	for _, c := range []struct {
		p       string
		without []string
		want    []string
	}{
		{"10.0.0.0/8", nil, []string{"10.0.0.0/8"}},
		{"10.0.0.0/8", []string{"192.0.2.0/24", "2001:db8::/32"}, []string{"10.0.0.0/8"}},
		{"10.0.0.0/8", []string{"10.0.0.0/8"}, nil},
		{"10.0.0.0/8", []string{"0.0.0.0/0"}, nil},
		{"10.0.0.0/30", []string{"10.0.0.1/32"}, []string{"10.0.0.0/32", "10.0.0.2/31"}},
		{"10.0.0.0/30", []string{"10.0.0.0/31", "10.0.0.2/31"}, nil},
		{"0.0.0.0/0", []string{"128.0.0.0/2", "128.0.0.0/1"}, []string{"0.0.0.0/1"}},
		{"::/0", []string{"8000::/1"}, []string{"::/1"}},
	} {
		var without []netip.Prefix
		for _, w := range c.without {
			without = append(without, prefix(w))
		}
		var got []string
		for _, p := range ipnet.Minus(prefix(c.p), without) {
			got = append(got, p.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s without %s is %s, want %s", c.p, c.without, got, c.want)
		}
	}
}
