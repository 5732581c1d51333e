package index

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// claimer is the Node "n" that claims something; it reports its own addresses of both families, and is young.
func claimer(ips, hops, pins []string) *cluster.Node {
	g := &annotation.L3Gateway{Bridge: "breth0", Port: "breth0_n"}
	for _, s := range ips {
		g.IPs = append(g.IPs, netip.MustParsePrefix(s))
	}
	for _, s := range pins {
		g.Rampout = append(g.Rampout, netip.MustParsePrefix(s))
	}
	g.NextHops = addrs(hops...)
	return &cluster.Node{Name: "n", UID: "u", Created: 9, Gateway: g, Addrs: addrs("172.18.0.9", "fc00::9"),
		ExternalAddrs: addrs("203.0.113.9")}
}

// around is a cluster with another node, which is the first, and an API server outside.
func around(c config.Cluster) *cluster.State {
	s := NewState(c)
	for _, o := range []cluster.Object{
		&cluster.Node{Name: "first", Created: 1, Addrs: addrs("172.18.0.3", "fc00::3"), ExternalAddrs: addrs("203.0.113.3")},
		&cluster.ServiceCIDR{Name: "more", CIDRs: []netip.Prefix{netip.MustParsePrefix("10.97.0.0/16")}},
		&cluster.EndpointSlice{Name: cluster.Name{Namespace: "default", Name: "kubernetes"}, Service: "kubernetes",
			Endpoints: []cluster.Endpoint{{Addr: netip.MustParseAddr("172.18.0.2")}}},
	} {
		s.Apply(cluster.Event{Ref: o.Ref(), New: o})
	}
	return s
}

// A gateway may have only what the cluster knows to be its own, or its operator lists. Whatever it claims besides, in
// either family, has no effect, and is reported.
func TestGatewayClaims(t *testing.T) {
	const own4, own6 = "172.18.0.9/16", "fc00::9/64"
	list := func(v ...string) []string { return v }
	for what, c := range map[string]struct {
		ips, hops, pins []string
		want            string // what is left: addresses, next hops, pins
		refused         []string
	}{
		"its own": {list(own4, own6), list("172.18.0.1", "fc00::1"), nil,
			"[172.18.0.9/16 fc00::9/64] [172.18.0.1 fc00::1] []", nil},
		"its ExternalIP": {list("203.0.113.9/24"), list("203.0.113.1"), nil,
			"[203.0.113.9/24] [203.0.113.1] []", nil},
		"an address that the operator lists": {list("198.51.100.7/24"), nil, nil, "[198.51.100.7/24] [] []", nil},
		"a router by its link-local address": {list(own6), list("fe80::1"), nil, "[fc00::9/64] [fe80::1] []", nil},
		"a router beside an address of its own": {list("172.18.0.9/32"), list("10.0.0.1"), nil,
			"[172.18.0.9/32] [10.0.0.1] []", nil},
		"a pod's address": {list("10.128.0.5/16", own6), list("10.128.0.1", "fc00::1"), nil,
			"[fc00::9/64] [fc00::1] []", list("ip-addresses: 10.128.0.5/16: it is in the pods' range 10.128.0.0/14")},
		"a pod's IPv6 address": {list(own4, "fd01::5/64"), list("172.18.0.1", "fd01::1"), nil,
			"[172.18.0.9/16] [172.18.0.1] []", list("ip-addresses: fd01::5/64: it is in the pods' range fd01::/48")},
		"a ClusterIP": {list("10.96.0.1/16"), nil, nil,
			"", list("it is in the range 10.96.0.0/16 of ClusterIPs")},
		"a ClusterIP of the API's": {list("10.97.0.1/16"), nil, nil,
			"", list("it is in the range 10.97.0.0/16 of ClusterIPs")},
		"the join switch": {list("100.64.1.1/24", "fd98::1/64"), nil, nil,
			"", list("in the join subnet 100.64.1.0/24", "in the join subnet fd98::/64")},
		"another Node's address": {list("172.18.0.3/16", "fc00::3/64"), nil, nil,
			"",
			list("172.18.0.3/16: it is an address of Node first", "fc00::3/64: it is an address of Node first")},
		"another Node's ExternalIP": {list("203.0.113.3/24"), nil, nil, "", list("it is an address of Node first")},
		"the API server's address": {list("172.18.0.2/16"), nil, nil, "",
			list("want an address that the Node reports [172.18.0.9 fc00::9 203.0.113.9], or one in --gateway-cidrs " +
				"[198.51.100.0/24 fd18::/64] of the master")},
		"nobody's address": {list("172.18.0.77/16", "fc00::77/64"), nil, nil,
			"", list("172.18.0.77/16: want an address that", "fc00::77/64: want an address that")},
		"an address of every host": {list("127.0.0.1/8", "::1/128"), nil, nil,
			"", list("127.0.0.1/8: other hosts can't reach it", "::1/128: other")},
		"no address": {list("0.0.0.0/0", "::/0"), nil, nil,
			"", list("other hosts can't", "other hosts can't")},
		"everybody's address": {list("224.0.0.1/4", "ff02::1/128"), nil, nil,
			"", list("other hosts can't", "other hosts can't")},
		"a link-local address": {list("169.254.169.254/16", "fe80::9/64"), nil, nil,
			"", list("other hosts can't", "other hosts can't")},
		"an IPv4 address as IPv6": {list("::ffff:10.128.0.5/128"), nil, nil, "", list("other hosts can't")},
		"a pod as the router": {list(own4, own6), list("10.128.0.5", "fd01::5"), nil,
			"[172.18.0.9/16 fc00::9/64] [] []",
			list("next-hops: 10.128.0.5: it is in the pods' range", "next-hops: fd01::5: it is in the pods'")},
		"a ClusterIP as the router": {list(own4), list("10.96.0.10"), nil,
			"[172.18.0.9/16] [] []", list("next-hops: 10.96.0.10: it is in the range")},
		"the cluster router as the router": {list(own4, own6), list("100.64.1.1", "fd98::1"), nil,
			"[172.18.0.9/16 fc00::9/64] [] []", list("in the join subnet", "in the join subnet")},
		"a router elsewhere": {list(own4, own6), list("192.0.2.1", "2001:db8::1"), nil,
			"[172.18.0.9/16 fc00::9/64] [] []",
			list("next-hops: 192.0.2.1: it is not on the network of", "next-hops: 2001:db8::1: it is not")},
		"itself as the router": {list(own4), list("172.18.0.9"), nil,
			"[172.18.0.9/16] [] []", list("it is not on the network of")},
		"a multicast router": {list(own4, own6), list("224.0.0.1", "ff02::2"), nil,
			"[172.18.0.9/16 fc00::9/64] [] []", list("it is not on", "it is not on")},
		"its own pods": {list(own4, own6), nil, list("10.128.2.0/23", "10.128.2.7/32", "fd01:0:0:1::/64"),
			"[172.18.0.9/16 fc00::9/64] [] [10.128.2.0/23 10.128.2.7/32 fd01:0:0:1::/64]", nil},
		"pods that the operator lists": {list(own4), nil, list("10.131.0.0/24"),
			"[172.18.0.9/16] [] [10.131.0.0/24]", nil},
		"another node's pods": {list(own4, own6), nil, list("10.128.4.0/23", "fd01:0:0:2::/64"),
			"[172.18.0.9/16 fc00::9/64] [] []",
			list("rampout-ip-subnets: 10.128.4.0/23: it is neither in the node's own subnets [10.128.2.0/23 fd01:0:0:1::/64] "+
				"nor in --gateway-pin-cidrs [10.131.0.0/16]", "fd01:0:0:2::/64: it is neither")},
		"all pods": {list(own4, own6), nil, list("10.128.0.0/14", "fd01::/48"),
			"[172.18.0.9/16 fc00::9/64] [] []", list("10.128.0.0/14: it is neither", "fd01::/48: it is neither")},
		"everything": {list(own4, own6), nil, list("0.0.0.0/0", "::/0"),
			"[172.18.0.9/16 fc00::9/64] [] []",
			list("0.0.0.0/0: it is not in the pods' ranges", "::/0: it is not")},
		"the nodes' network": {list(own4), nil, list("172.18.0.0/16"),
			"[172.18.0.9/16] [] []", list("172.18.0.0/16: it is not in the pods'")},
		"ClusterIPs as pods": {list(own4), nil, list("10.96.0.0/16"),
			"[172.18.0.9/16] [] []", list("10.96.0.0/16: it is not in the pods'")},
	} {
		t.Run(what, func(t *testing.T) {
			cfg := listed("198.51.100.0/24", "fd18::/64")
			cfg.Claims.PinCIDRs = []netip.Prefix{netip.MustParsePrefix("10.131.0.0/16")}
			s, n := around(cfg), claimer(c.ips, c.hops, c.pins)
			s.GrantNode(names.Own, "n", []netip.Prefix{netip.MustParsePrefix("10.128.2.0/23"),
				netip.MustParsePrefix("fd01:0:0:1::/64")})
			s.Apply(cluster.Event{Ref: n.Ref(), New: n})
			expect(t, s, c.want, c.refused)
			free := s.Config
			free.Claims.Unchecked = true
			s = around(free)
			s.Apply(cluster.Event{Ref: n.Ref(), New: n})
			if got := GatewaysOf(s).Of(s, "n"); !got.Equal(n.Gateway) || GatewaysOf(s).Refused("n") != nil {
				t.Errorf("unchecked, %+v is left, %v refused; want all", got, GatewaysOf(s).Refused("n"))
			}
		})
	}
}

// expect checks what is left of the claims of Node n, and what is refused.
func expect(t *testing.T, s *cluster.State, want string, refused []string) {
	t.Helper()
	got := ""
	if g := GatewaysOf(s).Of(s, "n"); g != nil {
		got = strings.Join([]string{text(g.IPs), text(g.NextHops), text(g.Rampout)}, " ")
	}
	list := GatewaysOf(s).Refused("n")
	matches := slices.EqualFunc(list, refused, func(r Refusal, part string) bool {
		return strings.Contains(r.Field+": "+r.Value+": "+r.Why, part)
	})
	if got != want || !matches {
		t.Errorf("%q is left, refused is %v; want %q, %v", got, list, want, refused)
	}
}

func text[T interface{ String() string }](list []T) string {
	var out []string
	for _, v := range list {
		out = append(out, v.String())
	}
	return "[" + strings.Join(out, " ") + "]"
}

// A kubelet may report any address in its Node's status. That gives the node no address of the cluster, of an older
// Node or of the API server, nor a route to it.
func TestReportedAddresses(t *testing.T) {
	for what, c := range map[string]struct {
		address, refused string
		labels           map[string]string
	}{
		"a pod's":                    {"10.128.0.5", "it is in the pods' range 10.128.0.0/14", nil},
		"a pod's, IPv6":              {"fd01::5", "it is in the pods' range fd01::/48", nil},
		"a ClusterIP":                {"10.96.0.1", "ClusterIPs", nil},
		"the cluster router's":       {"100.64.1.1", "the join subnet", nil},
		"an older Node's":            {"172.18.0.3", "it is an address of Node first", nil},
		"an older Node's, IPv6":      {"fc00::3", "it is an address of Node first", nil},
		"the API server's":           {"172.18.0.2", "it is an endpoint of Service default/kubernetes", nil},
		"the API server's, its Node": {"172.18.0.2", "", map[string]string{labelControlPlane: ""}},
		"a younger Node's":           {"172.18.0.20", "", nil},
		"the metadata service's":     {"169.254.169.254", "other hosts can't reach it", nil},
	} {
		t.Run(what, func(t *testing.T) {
			s := around(listed())
			a := netip.MustParseAddr(c.address)
			n := claimer([]string{netip.PrefixFrom(a, a.BitLen()-8).String()}, nil, nil)
			n.Addrs, n.Labels = []netip.Addr{a}, cluster.NewLabels(c.labels)
			younger := &cluster.Node{Name: "young", Created: 20, Addrs: addrs("172.18.0.20")}
			for _, o := range []*cluster.Node{younger, n} {
				s.Apply(cluster.Event{Ref: o.Ref(), New: o})
			}
			g := GatewaysOf(s)
			if ok := c.refused == ""; (g.Of(s, "n") != nil) != ok || slices.Contains(g.Own("n"), a) != ok {
				t.Errorf("the gateway is %+v, its own addresses are %v", g.Of(s, "n"), g.Own("n"))
			}
			for _, r := range g.Refused("n") {
				if c.refused == "" || !strings.Contains(r.Why, c.refused) {
					t.Errorf("refused %v, want %q", r, c.refused)
				}
			}
		})
	}
}

// A claim is judged again when what it disagrees with goes: another Node, a range, an endpoint.
func TestGatewayClaimsAreJudgedAgain(t *testing.T) {
	s := around(listed())
	n := claimer([]string{"172.18.0.3/16"}, []string{"172.18.0.1"}, nil)
	n.Addrs = addrs("172.18.0.3")
	steps := []struct {
		what    string
		e       cluster.Event
		want    string
		refused []string
	}{
		{"an older Node reports it", cluster.Event{Ref: n.Ref(), New: n}, "",
			[]string{"172.18.0.3: it is an address of Node first", "172.18.0.3/16: it is an address of Node first"}},
		{"that Node goes", cluster.Event{Ref: (&cluster.Node{Name: "first"}).Ref()}, "[172.18.0.3/16] [172.18.0.1] []", nil},
		{"it becomes the API server's", cluster.Event{Ref: apiServers(), New: &cluster.EndpointSlice{Name: apiServers().Name,
			Service: "kubernetes", Endpoints: []cluster.Endpoint{{Addr: n.Addrs[0]}}}}, "",
			[]string{"default/kubernetes", "default/kubernetes"}},
		{"the API server moves", cluster.Event{Ref: apiServers()}, "[172.18.0.3/16] [172.18.0.1] []", nil},
	}
	for _, step := range steps {
		c, ok := s.Apply(step.e)
		if !ok {
			t.Fatalf("%s is no change", step.what)
		}
		if named := slices.Contains(c.About(GatewayAddress), n.Ref().Name); named != (step.e.New != cluster.Object(n)) {
			t.Errorf("%s: topics %v", step.what, c.Topics)
		}
		expect(t, s, step.want, step.refused)
	}
}

// A node that names an outside address as its gateway's keeps it from no Service, unless the operator lists it.
func TestGatewayClaimsAndServices(t *testing.T) {
	svc := &cluster.Service{Name: cluster.Name{Namespace: "d", Name: "s"}, ClusterIPs: addrs("10.96.0.9"),
		ExternalIPs: addrs("192.0.2.7", "2001:db8::7"), Ports: []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80}}}
	n := claimer([]string{"192.0.2.7/24", "2001:db8::7/64"}, nil, nil)
	for want, c := range map[int]config.Cluster{3: listed(), 1: listed("192.0.2.0/24", "2001:db8::/64")} {
		s := around(c)
		for _, o := range []cluster.Object{svc, n} {
			s.Apply(cluster.Event{Ref: o.Ref(), New: o})
		}
		if got := svc.VIPs(svc.Addresses(s.Config.Services, TakenOf(s))); len(got) != want {
			t.Errorf("with --gateway-cidrs %v the Service has %v, want %d", c.Claims.GatewayCIDRs, got, want)
		}
	}
}
