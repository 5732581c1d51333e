package index

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// gatewayNode is a gateway with external addresses, and a next hop of the family of each.
func gatewayNode(name string, created int64, ips ...string) *cluster.Node {
	g := &annotation.L3Gateway{}
	for _, s := range ips {
		p := netip.MustParsePrefix(s)
		g.IPs = append(g.IPs, p)
		g.NextHops = append(g.NextHops, p.Masked().Addr().Next())
	}
	return &cluster.Node{Name: name, Created: created, Gateway: g}
}

// When gateways claim the same address, the oldest has it. The others keep the families that are left.
func TestGatewayAddresses(t *testing.T) {
	s := NewState(config.DefaultCluster())
	step := func(what string, n *cluster.Node, want string, rivals ...string) {
		t.Helper()
		e := cluster.Event{Ref: n.Ref(), New: n}
		if n.Created < 0 {
			e.New = nil
		}
		c, ok := s.Apply(e)
		if !ok {
			t.Fatalf("%s is no change", what)
		}
		var got, lost []string
		for _, name := range []string{"a", "b", "c", "h"} {
			if g := GatewaysOf(s).Of(s, name); g != nil {
				got = append(got, fmt.Sprint(name, g.IPs, g.NextHops))
			}
		}
		for _, r := range c.About(GatewayAddress) {
			lost = append(lost, r.Name)
		}
		if strings.Join(got, " ") != want || !slices.Equal(lost, rivals) {
			t.Errorf("%s: %s, rivals %v; want %s, %v", what, strings.Join(got, " "), lost, want, rivals)
		}
	}
	const v4, v6, hop4, hop6 = "192.0.2.9/24", "fd00::9/64", "192.0.2.1", "fd00::1"
	both := func(name string) string { return name + "[" + v4 + " " + v6 + "] [" + hop4 + " " + hop6 + "]" }
	step("the first", gatewayNode("b", 5, v4, v6), both("b"))
	step("a younger one has the same, by another length", gatewayNode("a", 6, "192.0.2.9/16"), both("b"))
	step("and in the other family its own", gatewayNode("a", 6, v4, "fd00::8/64"), "a[fd00::8/64] [fd00::1] "+both("b"))
	if g := s.Nodes["a"].Gateway; len(g.IPs) != 2 || len(g.NextHops) != 2 {
		t.Errorf("the node's own value is %+v now", g)
	}
	step("one by hand has no age", &cluster.Node{Name: "h", ByHand: true, Gateway: gatewayNode("h", 0, v4, v6).Gateway},
		"a[fd00::8/64] [fd00::1] "+both("b"))
	step("an older one takes IPv4", gatewayNode("c", 4, v4),
		"a[fd00::8/64] [fd00::1] b[fd00::9/64] [fd00::1] c[192.0.2.9/24] [192.0.2.1]", "b")
	step("it goes", gatewayNode("c", -1), "a[fd00::8/64] [fd00::1] "+both("b"), "b")
	step("the holder moves", gatewayNode("b", 5, "192.0.2.7/24"),
		"a[192.0.2.9/24 fd00::8/64] [192.0.2.1 fd00::1] b[192.0.2.7/24] [192.0.2.1] h[fd00::9/64] [fd00::1]", "a", "h")
	step("and is none any more", &cluster.Node{Name: "b", Created: 5},
		"a[192.0.2.9/24 fd00::8/64] [192.0.2.1 fd00::1] h[fd00::9/64] [fd00::1]")
	step("the last Node goes", gatewayNode("a", -1), both("h"), "h")
	step("and that by hand", gatewayNode("h", -1), "")
	if len(GatewaysOf(s).claims.of) != 0 {
		t.Errorf("claims %v of no gateway", GatewaysOf(s).claims.of)
	}
}

// Whatever happened, Gateways says what the whole state says. A gateway without any address of its own is not usable.
func TestGatewaysAfterAnyPath(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 4))
		s := NewState(config.DefaultCluster())
		for i := range 6 {
			s.GrantJoin(names.Own, fmt.Sprintf("n%d", i), []netip.Prefix{
				netip.MustParsePrefix(fmt.Sprintf("100.64.1.%d/24", i+2)),
				netip.MustParsePrefix(fmt.Sprintf("fd98::%d/64", i+2))})
		}
		for step := range 300 {
			n := gatewayNode(fmt.Sprintf("n%d", r.IntN(6)), int64(r.IntN(3)), []string{fmt.Sprintf("192.0.2.%d/24", r.IntN(3)),
				fmt.Sprintf("fd00::%d/64", r.IntN(3))}[:1+r.IntN(2)]...)
			n.Unreachable = r.IntN(4) == 0
			e := cluster.Event{Ref: n.Ref(), New: n}
			if r.IntN(4) == 0 {
				e.New = nil
			}
			s.Apply(e)
			again := NewState(s.Config)
			for _, n := range s.Nodes {
				again.Apply(cluster.Event{Ref: n.Ref(), New: n})
			}
			for name, addrs := range s.JoinAddrs {
				again.GrantJoin(names.Own, name, addrs)
			}
			for _, is4 := range []bool{true, false} {
				working, all := GatewaysOf(s).Count(is4)
				if w, a := GatewaysOf(again).Count(is4); w != working || a != all {
					t.Fatalf("seed %d step %d: %d of %d gateways work, want %d of %d", seed, step, working, all, w, a)
				}
				for name := range s.Nodes {
					if GatewaysOf(s).Chosen(s, name, is4) != GatewaysOf(again).Chosen(again, name, is4) ||
						!GatewaysOf(s).Of(s, name).Equal(GatewaysOf(again).Of(again, name)) {
						t.Fatalf("seed %d step %d: %s serves %v as %+v, want %v, %+v", seed, step, name,
							GatewaysOf(s).Chosen(s, name, is4), GatewaysOf(s).Of(s, name), GatewaysOf(again).Chosen(again, name, is4),
							GatewaysOf(again).Of(again, name))
					}
				}
			}
		}
	}
}
