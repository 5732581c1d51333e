package hostnet

import (
	"net/netip"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestPathTo(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.Run(t, "sh", "-ec", `ip link add m0 mtu 1400 type veth peer name p0; ip link set m0 up; ip link set p0 up
		ip addr add 10.1.0.2/24 dev m0; ip addr add fd01::2/64 dev m0 nodad; ip route add 10.2.0.0/16 via 10.1.0.1 mtu 1300
ip -6 route add fd02::/64 via fd01::1`)
	n, err := NewNetlink()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for _, c := range []struct {
		from, to string
		want     Path
		ok       bool
	}{
		{"10.1.0.2", "10.1.0.9", Path{Link: "m0", MTU: 1400}, true},
		{"10.1.0.2", "10.2.0.9", Path{Link: "m0", MTU: 1300, Via: netip.MustParseAddr("10.1.0.1")}, true},
		{"10.1.0.2", "10.3.0.9", Path{}, false},
		{"fd01::2", "fd01::9", Path{Link: "m0", MTU: 1400}, true},
		{"fd01::2", "fd02::9", Path{Link: "m0", MTU: 1400, Via: netip.MustParseAddr("fd01::1")}, true},
		{"fd01::2", "fd03::9", Path{}, false},
	} {
		if p, ok, err := n.PathTo(netip.MustParseAddr(c.from), netip.MustParseAddr(c.to)); p != c.want || ok != c.ok ||
			err != nil {
			t.Errorf("from %s to %s: %+v %v %v, want %+v %v", c.from, c.to, p, ok, err, c.want, c.ok)
		}
	}
	if has, err := n.HasFamily("nlctrl"); !has || err != nil { // the family of families
		t.Errorf("nlctrl: %v %v", has, err)
	}
	if has, err := n.HasFamily("nosuch"); has || err != nil {
		t.Errorf("nosuch: %v %v", has, err)
	}
}
