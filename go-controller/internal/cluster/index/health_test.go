package index

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Only an endpoint that is a pod, in the pod subnets of its node, can be checked. Services are found by the nodes of
// their endpoints.
func TestProbes(t *testing.T) {
	s := NewState(config.DefaultCluster())
	s.Apply(cluster.Event{Ref: (&cluster.Node{Name: "n1"}).Ref(), New: &cluster.Node{Name: "n1"}})
	s.GrantNode(names.Own, "n1", []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24"),
		netip.MustParsePrefix("fd01:0:0:1::/64")})
	for _, c := range []struct {
		addr, node, pod, source string
	}{
		{"10.244.1.3", "n1", "web", "10.244.1.254"}, {"fd01:0:0:1::3", "n1", "web", "fd01::1:0:0:ffff:ffff"},
		{"10.244.1.3", "n1", "", ""}, {"10.244.2.3", "n1", "web", ""}, {"10.244.1.3", "n2", "web", ""},
		{"10.244.1.3", "", "web", ""}, {"172.18.0.2", "n1", "web", ""},
	} {
		p, ok := HealthChecksOf(s).ProbeOf(s, "shop", cluster.Endpoint{Addr: netip.MustParseAddr(c.addr), Node: c.node,
			Pod: c.pod})
		if ok != (c.source != "") || ok && (p.Source.String() != c.source || p.Pod.String() != "shop/"+c.pod) {
			t.Errorf("%+v: %+v %v", c, p, ok)
		}
	}
	name := cluster.Name{Namespace: "shop", Name: "web"}
	slice := &cluster.EndpointSlice{Name: name, Service: "web",
		Endpoints: []cluster.Endpoint{{Addr: netip.MustParseAddr("10.244.1.3"), Node: "n1", Pod: "web"}}}
	s.Apply(cluster.Event{Ref: slice.Ref(), New: slice})
	for _, interval := range []int{0, 5, 0, 5} {
		svc := &cluster.Service{Name: name, HealthCheck: annotation.HealthCheck{Interval: interval}}
		s.Apply(cluster.Event{Ref: svc.Ref(), New: svc})
		var want []cluster.Name
		if interval > 0 {
			want = []cluster.Name{name}
		}
		if got := HealthChecksOf(s).CheckedOn(s, "n1"); !slices.Equal(got, want) ||
			len(HealthChecksOf(s).CheckedOn(s, "n2")) != 0 {
			t.Errorf("with interval %d on n1: %v, on n2: %v", interval, got, HealthChecksOf(s).CheckedOn(s, "n2"))
		}
	}
	s.Apply(cluster.Event{Ref: cluster.Ref{Kind: cluster.KindService, Name: name}})
	if got := HealthChecksOf(s).CheckedOn(s, "n1"); len(got) != 0 {
		t.Errorf("of a service that is gone: %v", got)
	}
}

// A pod that has the source address of checks keeps it. Nothing in its subnet is checked until the pod is deleted.
func TestSourceHolder(t *testing.T) {
	s := NewState(config.DefaultCluster())
	subnets := []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24"), netip.MustParsePrefix("fd01:0:0:1::/64")}
	s.Apply(cluster.Event{Ref: (&cluster.Node{Name: "n1"}).Ref(), New: &cluster.Node{Name: "n1"}})
	s.GrantNode(names.Own, "n1", subnets)
	old := cluster.Name{Namespace: "shop", Name: "old"}
	for i, c := range []struct {
		net    *annotation.PodNetwork
		source bool // the change concerns checks
		can    string
	}{
		{network("10.244.1.3/24", "fd01:0:0:1::3/64"), false, "true true"},
		{network("10.244.1.254/24", "fd01:0:0:1::3/64"), true, "false true"},
		{network("10.244.1.254/24", "fd01:0:0:1::ffff:ffff/64"), true, "false false"},
		{nil, true, "true true"},
		{nil, false, "true true"},
	} {
		if change := s.GrantPod(names.Own, cluster.PodPort{Pod: old}, c.net); change.Concerns(HealthSource) != c.source {
			t.Errorf("%d: Source is %v, want %v", i, change.Concerns(HealthSource), c.source)
		}
		var can []string
		for j, addr := range []string{"10.244.1.9", "fd01:0:0:1::9"} {
			_, ok := HealthChecksOf(s).ProbeOf(s, "shop", cluster.Endpoint{Addr: netip.MustParseAddr(addr), Node: "n1",
				Pod: "web"})
			can = append(can, fmt.Sprint(ok))
			if holder, held := HealthChecksOf(s).SourceHolder(subnets[j]); held == ok || held && holder != old {
				t.Errorf("%d: %v has the source of %s: %v, and probes are %v", i, holder, subnets[j], held, ok)
			}
		}
		if got := strings.Join(can, " "); got != c.can {
			t.Errorf("%d: endpoints that can be checked: %s, want %s", i, got, c.can)
		}
	}
}

func network(ips ...string) *annotation.PodNetwork {
	var n annotation.PodNetwork
	for _, ip := range ips {
		n.IPs = append(n.IPs, netip.MustParsePrefix(ip))
	}
	return &n
}
