package index

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Zones count while at least one node is in a zone. Each change says which zones it added or removed, and whether the
// node's switch changed.
func TestZones(t *testing.T) {
	s := NewState(config.DefaultCluster())
	node := func(name, uid, zone string) func() cluster.Change {
		return func() cluster.Change { return apply(t, s, &cluster.Node{Name: name, UID: uid, Zone: zone}) }
	}
	gone := func(name string) func() cluster.Change {
		return func() cluster.Change { return remove(t, s, (&cluster.Node{Name: name}).Ref()) }
	}
	grant := func(name string, subnets ...string) func() cluster.Change {
		return func() cluster.Change {
			var list []netip.Prefix
			for _, p := range subnets {
				list = append(list, netip.MustParsePrefix(p))
			}
			return s.GrantNode(names.Own, name, list)
		}
	}
	for i, c := range []struct {
		do           func() cluster.Change
		zones, moved []string // of the topics; "yes" for a NodeSwitch
		all          []string // Zones.List after it
	}{
		{node("n1", "u1", ""), nil, nil, nil},
		{grant("n1", "10.128.0.0/23"), nil, []string{"yes"}, nil},
		{grant("n1", "10.128.2.0/23"), nil, nil, nil},
		{node("n2", "u2", "a"), []string{"", "a"}, nil, []string{"", "a"}},
		{node("n3", "u3", "a"), nil, nil, []string{"", "a"}},
		{node("n1", "u1", "b"), []string{"", "b"}, []string{"yes"}, []string{"a", "b"}},
		{node("n1", "u4", "b"), nil, []string{"yes"}, []string{"a", "b"}},
		{node("n2", "u2", "b"), nil, nil, []string{"a", "b"}},
		{gone("n3"), []string{"a"}, nil, []string{"b"}},
		{grant("n1"), nil, []string{"yes"}, []string{"b"}},
		{grant("n2", "10.128.4.0/23"), nil, []string{"yes"}, []string{"b"}},
		{node("n1", "u1", ""), []string{""}, nil, []string{"", "b"}},
		{gone("n2"), []string{"", "b"}, []string{"yes"}, nil},
	} {
		got := c.do()
		var zones []string
		for _, n := range got.About(ZoneInUse) {
			zones = append(zones, n.Name)
		}
		slices.Sort(zones)
		if !slices.Equal(zones, c.zones) || got.Concerns(NodeSwitch) != (len(c.moved) > 0) ||
			!slices.Equal(ZonesOf(s).List(), c.all) {
			t.Errorf("step %d: zones %q, moved %v, all %q; want %q, %v, %q", i, zones, got.Concerns(NodeSwitch),
				ZonesOf(s).List(), c.zones, c.moved, c.all)
		}
		for _, z := range []string{"", "a", "b"} {
			if ZonesOf(s).Has(z) != slices.Contains(c.all, z) {
				t.Errorf("step %d: HasZone(%q) = %v", i, z, ZonesOf(s).Has(z))
			}
		}
	}
	if got := ZonesOf(s).Nodes(""); len(got) != 1 || got[0].Name != "n1" {
		t.Errorf("nodes in no zone: %v, want n1", got)
	}
}

// Services are found by hints and policies as long as one of their slices, or the service itself, has them.
func TestNearServices(t *testing.T) {
	s := NewState(config.DefaultCluster())
	slice := func(n string, e cluster.Endpoint) *cluster.EndpointSlice {
		return &cluster.EndpointSlice{Name: name("default", n), Service: "web", Endpoints: []cluster.Endpoint{{Node: "n9"},
			e}}
	}
	web := name("default", "web")
	expect := func(what string, zone, node, local bool) {
		t.Helper()
		if z, n, l := slices.Contains(ServicesOf(s).ZoneHinted(), web), slices.Contains(ServicesOf(s).NodeHinted(), web),
			slices.Contains(ServicesOf(s).InternalLocalOn(s, "n1"), web); z != zone || n != node || l != local {
			t.Errorf("%s: zone-hinted %v, node-hinted %v, local on n1 %v; want %v, %v, %v", what, z, n, l, zone, node, local)
		}
	}
	apply(t, s, slice("e1", cluster.Endpoint{ForZones: "a", Node: "n1"}))
	expect("hints for a zone", true, false, false)
	apply(t, s, slice("e2", cluster.Endpoint{ForZones: "a", ForNodes: "n1"}))
	expect("hints for a node too", true, true, false)
	apply(t, s, slice("e2", cluster.Endpoint{}))
	expect("they go", true, false, false)
	apply(t, s, &cluster.Service{Name: web, InternalLocal: true})
	expect("policy Local", true, false, true)
	remove(t, s, cluster.Ref{Kind: cluster.KindEndpointSlice, Name: name("default", "e1")})
	expect("the endpoint goes", false, false, false)
	apply(t, s, slice("e1", cluster.Endpoint{Node: "n1"}))
	expect("it comes back", false, false, true)
	apply(t, s, &cluster.Service{Name: web})
	expect("policy Cluster", false, false, false)
	if got := cluster.Hints("a,b"); !slices.Equal(got, []string{"a", "b"}) || cluster.Hints("") != nil {
		t.Errorf("hints %q", got)
	}
}

func name(ns, n string) cluster.Name { return cluster.Name{Namespace: ns, Name: n} }

// apply puts an object into the state, and requires that this is a change.
func apply(t *testing.T, s *cluster.State, o cluster.Object) cluster.Change {
	t.Helper()
	return change(t, s, cluster.Event{Ref: o.Ref(), New: o})
}

func remove(t *testing.T, s *cluster.State, r cluster.Ref) cluster.Change {
	t.Helper()
	return change(t, s, cluster.Event{Ref: r})
}

func change(t *testing.T, s *cluster.State, e cluster.Event) cluster.Change {
	t.Helper()
	c, ok := s.Apply(e)
	if !ok {
		t.Fatalf("%s: no change", e.Ref)
	}
	return c
}
