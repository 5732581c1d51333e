package cluster_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// red is a cluster whose namespace red has a primary network. Its pod a has addresses in both networks, and pod b in
// the cluster's own.
func red(labels map[string]string) *cluster.State {
	s := cluster.NewState(config.DefaultCluster())
	network := &cluster.Network{Name: names.Defined("red", "own"), Topology: cluster.Layer2, Primary: true,
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/16")}}}
	for _, o := range []cluster.Object{
		&cluster.Namespace{Name: "red", Labels: cluster.NewLabels(labels)},
		&cluster.NetworkDefinition{Name: cluster.Name{Namespace: "red", Name: "own"}, Network: network},
		&cluster.Pod{Name: cluster.Name{Namespace: "red", Name: "a"}, Node: "n1"},
	} {
		s.Apply(cluster.Event{Ref: o.Ref(), New: o})
	}
	grant := func(n names.Network, pod, iface, ip string) {
		s.GrantPod(n, cluster.PodPort{Pod: cluster.Name{Namespace: "red", Name: pod}, Interface: iface},
			&annotation.PodNetwork{IPs: []netip.Prefix{netip.MustParsePrefix(ip)}})
	}
	grant(names.Own, "a", "", "10.128.0.3/23")
	grant(names.Own, "b", "", "10.128.0.4/23")
	grant(network.Name, "a", names.PrimaryInterface, "10.77.0.2/16")
	return s
}

func primaryLabel() map[string]string { return map[string]string{names.PrimaryLabel: ""} }

// Endpoints have the addresses of their pods in the primary network. All others are left out.
func TestSlicesIn(t *testing.T) {
	s := red(primaryLabel())
	e := &cluster.EndpointSlice{Name: cluster.Name{Namespace: "red", Name: "e"}, Service: "web"}
	for i, pod := range []string{"a", "a", "b", "gone", ""} {
		addr := netip.MustParseAddr([]string{"10.128.0.3", "10.128.0.9", "10.128.0.4", "10.128.0.5", "10.77.0.2"}[i])
		e.Endpoints = append(e.Endpoints, cluster.Endpoint{Addr: addr, Pod: pod, Conditions: cluster.Ready, Node: "n1",
			ForZones: "z", ForNodes: "n1"})
	}
	s.Apply(cluster.Event{Ref: e.Ref(), New: e})
	service := cluster.Name{Namespace: "red", Name: "web"}
	n, why := s.ServedIn(&cluster.Service{Name: service})
	if n == nil {
		t.Fatal(why)
	}
	got, left := s.SlicesIn(n, service)
	want := cluster.Endpoint{Addr: netip.MustParseAddr("10.77.0.2"), Pod: "a", Conditions: cluster.Ready, Node: "n1"}
	if len(got) != 1 || len(got[0].Endpoints) != 1 || got[0].Endpoints[0] != want {
		t.Errorf("slices %+v, want one endpoint %+v", got, want)
	}
	if text := fmt.Sprint(left); text != "[10.128.0.9 10.128.0.4 10.128.0.5 10.77.0.2]" {
		t.Errorf("left out: %s, want the four others", text)
	}
	if len(e.Endpoints) != 5 || e.Endpoints[0].ForZones != "z" {
		t.Errorf("the slice itself was changed: %+v", e)
	}
	for pod, want := range map[string]int{"a": 1, "b": 1, "gone": 1, "other": 0} {
		if got := s.ServicesOfPod(cluster.Name{Namespace: "red", Name: pod}); len(got) != want {
			t.Errorf("services of pod %s: %v, want %d", pod, got, want)
		}
	}
	plain := red(nil)
	plain.Apply(cluster.Event{Ref: e.Ref(), New: e})
	if got, left := plain.SlicesIn(plain.Networks[names.Own], service); len(got) != 1 || got[0] != e || left != nil {
		t.Errorf("in the cluster's own network: %+v without %v, want the slice itself", got, left)
	}
	if got := plain.ServicesOfPod(cluster.Name{Namespace: "red", Name: "a"}); got != nil {
		t.Errorf("services of a pod in no primary network: %v, want none", got)
	}
}

// A service is served in its namespace's network, at its ClusterIPs.
func TestServedIn(t *testing.T) {
	svc := &cluster.Service{Name: cluster.Name{Namespace: "red", Name: "web"},
		ClusterIPs:  []netip.Addr{netip.MustParseAddr("10.96.0.9")},
		ExternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	local := *svc
	local.InternalLocal = true
	s := red(primaryLabel())
	n, _ := s.ServedIn(svc)
	if n == nil || n.Name != "red.own" {
		t.Fatalf("served in %+v, want red.own", n)
	}
	for i, a := range svc.AddressesIn(n, s.Config.Services, nil) {
		if want := []cluster.Withheld{cluster.NotWithheld, cluster.NotInPrimary}[i]; a.Withheld != want {
			t.Errorf("%s: withheld %q, want %q", a.Addr, a.Withheld, want)
		}
	}
	outside := *svc
	outside.Ports = []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80, NodePort: 30080}}
	outside.ExternalIPs = append(outside.ExternalIPs, netip.MustParseAddr("10.77.0.9"), netip.MustParseAddr("100.66.0.9"))
	joined := *n
	joined.JoinSubnets = []netip.Prefix{netip.MustParsePrefix("100.66.0.0/15")}
	for i, a := range outside.AddressesIn(&joined, s.Config.Services, nil) {
		if want := []cluster.Withheld{cluster.NotWithheld, cluster.NotWithheld, cluster.OfPrimary,
			cluster.OfPrimary}[i]; a.Withheld != want {
			t.Errorf("%s: withheld %q, want %q", a.Addr, a.Withheld, want)
		}
	}
	for _, a := range svc.AddressesIn(nil, s.Config.Services, nil) {
		if a.Withheld.Served() || a.Withheld.Refused() {
			t.Errorf("%s: withheld %q, want that it is not served", a.Addr, a.Withheld)
		}
	}
	if n, why := red(nil).ServedIn(&local); n == nil || n.Name != names.Own {
		t.Errorf("without the label: served in %+v, %s, want the cluster's own network", n, why)
	}
	refused := red(primaryLabel())
	other := &cluster.NetworkDefinition{Name: cluster.Name{Namespace: "red", Name: "own"},
		Network: &cluster.Network{Name: names.Defined("red", "own"), Topology: cluster.Layer2, Primary: true,
			Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.96.0.0/16")}}}}
	refused.Apply(cluster.Event{Ref: other.Ref(), New: other})
	for want, in := range map[string]struct {
		*cluster.State
		*cluster.Service
	}{"internalTrafficPolicy": {s, &local}, "is refused": {refused, svc}} {
		if n, why := in.ServedIn(in.Service); n != nil || !strings.Contains(why, want) {
			t.Errorf("served in %+v, %q, want none and %q", n, why, want)
		}
	}
}

// With externalTrafficPolicy Local, the exits of nodes with endpoints stand for these, and have their conditions. All
// exits do otherwise.
func TestExitSlices(t *testing.T) {
	s := red(primaryLabel())
	network := s.Networks[names.Defined("red", "own")]
	for i, node := range []string{"n1", "n2", "n3", "n4", "without-join"} {
		s.GrantExit(network.Name, node, []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.128.%d.9/24", i))})
		if node != "without-join" {
			s.GrantJoin(network.Name, node, []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("100.66.0.%d/15", i+2))})
		}
	}
	svc := &cluster.Service{Name: cluster.Name{Namespace: "red", Name: "web"}, Ports: []cluster.ServicePort{
		{Name: "a", Protocol: cluster.TCP, Port: 80, NodePort: 30080}, {Name: "b", Protocol: cluster.UDP, Port: 80}}}
	const leaving = cluster.Serving | cluster.Terminating
	e := &cluster.EndpointSlice{Name: svc.Name, Service: "web", Ports: []cluster.EndpointPort{
		{Name: "a", Protocol: cluster.TCP, Port: 8080}, {Name: "b", Protocol: cluster.UDP, Port: 8080}}}
	for i, c := range []cluster.Conditions{cluster.Ready | cluster.Serving, leaving, leaving, 0} {
		e.Endpoints = append(e.Endpoints, cluster.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 2)}),
			Node: []string{"n1", "n1", "n2", "n3"}[i], Conditions: c})
	}
	for local, want := range map[bool]string{
		false: "n1 1, n2 1, n3 1, n4 1 at [{a TCP 30080}]; at []",
		true:  fmt.Sprintf("n1 %d, n2 %d, n3 0 at [{a TCP 30080}]; at [{a TCP 30080}]", cluster.Ready, leaving),
	} {
		svc.ExternalLocal = local
		var got []string
		for _, slice := range s.ExitSlices(network, svc, []*cluster.EndpointSlice{e}) {
			var exits []string
			for _, ep := range slice.Endpoints {
				exits = append(exits, fmt.Sprintf("%s %d", ep.Node, ep.Conditions))
			}
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s at %v", strings.Join(exits, ", "), slice.Ports)))
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("local %v: %s, want %s", local, text, want)
		}
	}
}
