package serviceport

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// A load balancer that has no address yet, and node ports neither, is told at
// once where endpoints are: of either family, a pod with both once, those of this
// node that are ready.
func TestChecks(t *testing.T) {
	web := &cluster.Service{Name: cluster.Name{Namespace: "shop", Name: "web"}, Type: cluster.LoadBalancer,
		ExternalLocal: true, HealthCheckPort: 31000,
		ClusterIPs: []netip.Addr{netip.MustParseAddr("fd02::1")}}
	if !NeedsEndpoints(web) {
		t.Error("nobody asks for its endpoints")
	}
	slice := func(addrs ...string) *cluster.EndpointSlice {
		e := &cluster.EndpointSlice{Service: "web"}
		for i, a := range addrs {
			e.Endpoints = append(e.Endpoints,
				cluster.Endpoint{Addr: netip.MustParseAddr(a), Node: []string{"n1", "n1", "n2"}[i],
					Conditions: cluster.Ready | cluster.Serving})
		}
		return e
	}
	v4, v6 := slice("10.0.0.3", "10.0.0.4", "10.0.1.3"), slice("fd01::3", "fd01::4", "fd01:0:0:1::3")
	leaving := slice("fd01::3", "fd01::4")
	leaving.Endpoints[1].Conditions = cluster.Serving | cluster.Terminating
	for _, c := range []struct {
		what   string
		slices []*cluster.EndpointSlice
		node   string
		want   int
	}{
		{"IPv4", []*cluster.EndpointSlice{v4}, "n1", 2},
		{"IPv6", []*cluster.EndpointSlice{v6}, "n1", 2},
		{"both", []*cluster.EndpointSlice{v4, v6}, "n1", 2},
		{"in two slices", []*cluster.EndpointSlice{v6, slice("fd01::3")}, "n1", 2},
		{"another node", []*cluster.EndpointSlice{v4, v6}, "n2", 1},
		{"none here", []*cluster.EndpointSlice{v4, v6}, "n3", 0},
		{"one is leaving", []*cluster.EndpointSlice{leaving}, "n1", 1},
	} {
		want := []Check{{Port: 31000, Service: web.Name, Endpoints: c.want}}
		facts := Facts{Endpoints: Slices{web.Name: c.slices}}
		if have := Checks([]*cluster.Service{web}, facts, config.Node{Name: c.node}); !slices.Equal(have, want) {
			t.Errorf("%s: %v, want %v", c.what, have, want)
		}
	}
}
