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

// listed is a dual-stack cluster whose operator lists the addresses of gateways.
func listed(cidrs ...string) config.Cluster {
	c := config.DefaultCluster()
	c.Subnets = append(c.Subnets, config.ClusterSubnet{CIDR: netip.MustParsePrefix("fd01::/48"), NodeLength: 64})
	for _, s := range cidrs {
		c.Claims.GatewayCIDRs = append(c.Claims.GatewayCIDRs, netip.MustParsePrefix(s))
	}
	return c
}

// When gateways claim the same address, the oldest has it. The others keep the families that are left.
func TestGatewayAddresses(t *testing.T) {
	s := NewState(listed("192.0.2.0/24", "fd00::/64"))
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
		"a[fd00::8/64] [fd00::1] b[fd00::9/64] [fd00::1] c[192.0.2.9/24] [192.0.2.1]", "a", "b", "h")
	step("it goes", gatewayNode("c", -1), "a[fd00::8/64] [fd00::1] "+both("b"), "a", "b", "h")
	step("the holder moves", gatewayNode("b", 5, "192.0.2.7/24"),
		"a[192.0.2.9/24 fd00::8/64] [192.0.2.1 fd00::1] b[192.0.2.7/24] [192.0.2.1] h[fd00::9/64] [fd00::1]", "a", "h")
	step("and is none any more", &cluster.Node{Name: "b", Created: 5},
		"a[192.0.2.9/24 fd00::8/64] [192.0.2.1 fd00::1] h[fd00::9/64] [fd00::1]")
	step("the last Node goes", gatewayNode("a", -1), both("h"), "h")
	step("and that by hand", gatewayNode("h", -1), "")
	if g := GatewaysOf(s); len(g.claims.of)+len(g.reports.of)+len(g.naming)+len(g.verdicts) != 0 {
		t.Errorf("claims %v %v %v %v of no gateway", g.claims.of, g.reports.of, g.naming, g.verdicts)
	}
}

// somebody is a random event: a Node that may be a gateway and may report addresses, a range of ClusterIPs, or the API
// server's endpoints. Each may be at odds with the others.
func somebody(r *rand.Rand) cluster.Event {
	v4 := func() string { return fmt.Sprintf("192.0.2.%d/24", r.IntN(6)) }
	switch r.IntN(12) {
	case 0:
		c := &cluster.ServiceCIDR{Name: "range", CIDRs: []netip.Prefix{netip.MustParsePrefix("192.0.2.4/31")}}
		if r.IntN(2) == 0 {
			return cluster.Event{Ref: c.Ref()}
		}
		return cluster.Event{Ref: c.Ref(), New: c}
	case 1:
		e := &cluster.EndpointSlice{Name: apiServers().Name, Service: "kubernetes",
			Endpoints: []cluster.Endpoint{{Addr: netip.MustParsePrefix(v4()).Addr()}}}
		if r.IntN(2) == 0 {
			return cluster.Event{Ref: e.Ref()}
		}
		return cluster.Event{Ref: e.Ref(), New: e}
	}
	n := gatewayNode(fmt.Sprintf("n%d", r.IntN(6)), int64(r.IntN(3)), []string{v4(), fmt.Sprintf("fd00::%d/64",
		r.IntN(3))}[:1+r.IntN(2)]...)
	n.Gateway.Rampout = []netip.Prefix{netip.MustParsePrefix([]string{"10.128.2.0/24", "10.129.0.0/24"}[r.IntN(2)])}
	n.Unreachable, n.ByHand = r.IntN(4) == 0, r.IntN(10) == 0
	if r.IntN(4) == 0 {
		n.Gateway = nil
	}
	for range r.IntN(3) {
		n.Addrs = append(n.Addrs, netip.MustParsePrefix(v4()).Addr())
	}
	if r.IntN(3) == 0 {
		n.Labels = cluster.NewLabels(map[string]string{labelControlPlane: ""})
	}
	if r.IntN(4) == 0 {
		return cluster.Event{Ref: n.Ref()}
	}
	return cluster.Event{Ref: n.Ref(), New: n}
}

// Whatever happened, Gateways says what the whole state says, and the topics name every other node for which it says
// something else than before.
func TestGatewaysAfterAnyPath(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 4))
		s := NewState(listed("192.0.2.0/31", "fd00::/64"))
		for i := range 6 {
			s.GrantJoin(names.Own, fmt.Sprintf("n%d", i), []netip.Prefix{
				netip.MustParsePrefix(fmt.Sprintf("100.64.1.%d/24", i+2)),
				netip.MustParsePrefix(fmt.Sprintf("fd98::%d/64", i+2))})
		}
		said := map[string]string{}
		for i := range 6 {
			said[fmt.Sprintf("n%d", i)] = "<nil>"
		}
		for step := range 300 {
			var c cluster.Change
			if r.IntN(6) == 0 {
				subnets := []netip.Prefix{netip.MustParsePrefix("10.128.2.0/23")}
				c = s.GrantNode(names.Own, fmt.Sprintf("n%d", r.IntN(6)), subnets[:r.IntN(2)])
			} else {
				c, _ = s.Apply(somebody(r))
			}
			again := NewState(s.Config)
			for _, c := range s.All() {
				again.Apply(cluster.Event{Ref: c.Ref, New: c.New})
			}
			for name, addrs := range s.JoinAddrs {
				again.GrantJoin(names.Own, name, addrs)
			}
			for name, subnets := range s.NodeSubnets {
				again.GrantNode(names.Own, name, subnets)
			}
			g, h := GatewaysOf(s), GatewaysOf(again)
			for _, is4 := range families() {
				working, all := g.Count(is4)
				if w, a := h.Count(is4); w != working || a != all {
					t.Fatalf("seed %d step %d: %d of %d gateways work, want %d of %d", seed, step, working, all, w, a)
				}
			}
			for i := range 6 {
				name := fmt.Sprintf("n%d", i)
				says := func(s *cluster.State, g *Gateways) string {
					return fmt.Sprintf("%+v %v %v %v %v", g.Of(s, name), g.Own(name), g.Refused(name), g.Chosen(s, name, true),
						g.Chosen(s, name, false))
				}
				got := says(s, g)
				if want := says(again, h); got != want {
					t.Fatalf("seed %d step %d: %s is %s, want %s", seed, step, name, got, want)
				}
				if of := strings.Split(got, " [")[0]; of != said[name] && c.Ref.Name.Name != name &&
					!slices.Contains(c.About(GatewayAddress), cluster.Name{Name: name}) {
					t.Fatalf("seed %d step %d: %s became %s with %s, topics %v", seed, step, name, of, c.Ref, c.Topics)
				} else {
					said[name] = of
				}
			}
		}
	}
}
