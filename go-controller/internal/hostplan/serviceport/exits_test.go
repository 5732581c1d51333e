package serviceport_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
)

// Clients from outside reach pods of primary networks at the node ports of this node's exit, which is one backend
// whatever the number of pods. A service that exits do not lead to has none of them, also for load balancers that ask.
func TestExits(t *testing.T) {
	addr := netip.MustParseAddr
	web := cluster.Service{Name: cluster.Name{Namespace: "red", Name: "web"}, Type: cluster.LoadBalancer,
		ClusterIPs: []netip.Addr{addr("10.96.0.9")}, ExternalIPs: []netip.Addr{addr("192.0.2.9")}, ExternalLocal: true,
		HealthCheckPort: 31000,
		Ports:           []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80, NodePort: 30080}}}
	slice := &cluster.EndpointSlice{Name: web.Name, Service: "web",
		Ports: []cluster.EndpointPort{{Name: "http", Protocol: cluster.TCP, Port: 8080}}}
	for a, node := range map[string]string{"10.128.2.5": "n1", "10.128.2.6": "n1", "10.128.4.5": "n2"} {
		slice.Endpoints = append(slice.Endpoints, cluster.Endpoint{Addr: addr(a), Node: node, Conditions: cluster.Ready})
	}
	slices.SortFunc(slice.Endpoints, cluster.CompareEndpoints)
	exit := addr("10.128.2.9")
	f := facts(serviceport.Slices{web.Name: {slice}})
	f.Exits = map[netip.Addr]netip.Addr{addr("10.128.2.5"): exit, addr("10.128.2.6"): exit}
	without, near := web, web
	without.Ports = []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80}}
	near.InternalLocal = true
	for what, c := range map[string]struct {
		svc   cluster.Service
		want  []string // entries that lead to this node's endpoints
		ready int
	}{
		"with node ports": {web, []string{"local TCP 0.0.0.0:30080 to 10.128.2.9:30080",
			"local TCP 192.0.2.9:80 to 10.128.2.9:30080"}, 2},
		"without node ports":          {without, nil, 0},
		"internalTrafficPolicy Local": {near, nil, 0},
	} {
		plan, notes := serviceport.Plan([]*cluster.Service{&c.svc}, f, nodeConfig())
		var got []string
		for line := range strings.SplitSeq(plan.Host[0].(hostplan.ServicePorts).Entries, "\n") {
			if strings.HasPrefix(line, "local ") || strings.HasPrefix(line, "share ") {
				got = append(got, line)
			}
		}
		if !slices.Equal(got, c.want) || len(notes) > 0 {
			t.Errorf("%s: entries %q, %v, want %q", what, got, notes, c.want)
		}
		checks := serviceport.Checks([]*cluster.Service{&c.svc}, f, nodeConfig())
		if len(checks) != 1 || checks[0].Endpoints != c.ready {
			t.Errorf("%s: checks %v, want %d endpoints", what, checks, c.ready)
		}
	}
	if got := serviceport.RemoteNodes([]*cluster.Service{&web}, f, nodeConfig()); got != nil {
		t.Errorf("with an exit here: nodes %q, want none", got)
	}
	if got := serviceport.RemoteNodes([]*cluster.Service{&near}, f, nodeConfig()); !slices.Equal(got, []string{"n2"}) {
		t.Errorf("without one: nodes %q, want n2", got)
	}
}
