package cluster_test

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

func name(ns, n string) cluster.Name { return cluster.Name{Namespace: ns, Name: n} }

func apply(t *testing.T, s *cluster.State, o cluster.Object) cluster.Change {
	t.Helper()
	c, ok := s.Apply(cluster.Event{Ref: o.Ref(), New: o})
	if !ok {
		t.Fatalf("%s says nothing new", o.Ref())
	}
	return c
}

func remove(t *testing.T, s *cluster.State, r cluster.Ref) cluster.Change {
	t.Helper()
	c, ok := s.Apply(cluster.Event{Ref: r})
	if !ok {
		t.Fatalf("removing %s says nothing new", r)
	}
	return c
}

func TestApply(t *testing.T) {
	objects := []cluster.Object{
		&cluster.Node{Name: "n1", UID: "u1"},
		&cluster.Namespace{Name: "default", UID: "u2"},
		&cluster.Pod{Name: name("default", "a"), UID: "u3", Node: "n1"},
		&cluster.Service{Name: name("default", "a"), UID: "u4"},
		&cluster.EndpointSlice{Name: name("default", "a"), Service: "a"},
	}
	s := cluster.NewState(config.DefaultCluster())
	for _, o := range objects {
		if got := s.Object(o.Ref()); got != nil {
			t.Errorf("%s before it came: %v, want nil", o.Ref(), got)
		}
		if c := apply(t, s, o); c.Old != nil || c.New != o || c.Granted || c.Ref != o.Ref() {
			t.Errorf("%s came: %+v", o.Ref(), c)
		}
		if s.Object(o.Ref()) != o {
			t.Errorf("%s is not in the state", o.Ref())
		}
		if _, ok := s.Apply(cluster.Event{Ref: o.Ref(), New: o}); ok {
			t.Errorf("%s again: a change, want none", o.Ref())
		}
	}
	if n := len(s.Nodes) + len(s.Namespaces) + len(s.Pods) + len(s.Services) + len(s.Slices); n != 5 {
		t.Errorf("%d objects, want 5", n)
	}
	for _, o := range objects {
		if c := remove(t, s, o.Ref()); c.Old != o || c.New != nil {
			t.Errorf("%s went: %+v", o.Ref(), c)
		}
		if _, ok := s.Apply(cluster.Event{Ref: o.Ref()}); ok {
			t.Errorf("%s went twice", o.Ref())
		}
	}
	if n := len(s.Nodes) + len(s.Namespaces) + len(s.Pods) + len(s.Services) + len(s.Slices); n != 0 {
		t.Errorf("%d objects left, want 0", n)
	}
	if _, ok := s.Apply(cluster.Event{Ref: cluster.Ref{Kind: "Gateway", Name: name("", "x")}}); ok {
		t.Error("an object of an unknown kind went: a change")
	}
	if _, ok := s.Apply(cluster.Event{Ref: cluster.Ref{Kind: "Gateway", Name: name("", "x")}, New: objects[0]}); !ok {
		t.Error("an object of a kind without a row came: no change")
	}
}

func endpoint(e cluster.Endpoint) []cluster.Endpoint { return []cluster.Endpoint{e} }

// differing lists objects by kind; no two of them are equal.
func differing() map[string][]cluster.Object {
	subnet := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
	ip := []netip.Addr{netip.MustParseAddr("10.96.0.1")}
	n := name("d", "x")
	services := []cluster.Object{
		&cluster.Service{Name: n}, &cluster.Service{Name: n, UID: "u"}, &cluster.Service{Name: n, ClusterIPs: ip},
		&cluster.Service{Name: n, Ports: []cluster.ServicePort{{Port: 80}}},
		&cluster.Service{Name: n, Ports: []cluster.ServicePort{{Port: 81}}},
		&cluster.Service{Name: n, Ports: []cluster.ServicePort{{Port: 80, Name: "http"}}},
		&cluster.Service{Name: n, Ports: []cluster.ServicePort{{Port: 80, NodePort: 30080}}},
		&cluster.Service{Name: n, Ports: []cluster.ServicePort{{Port: 80, Protocol: cluster.UDP}}},
		&cluster.Service{Name: n, Created: 1}, &cluster.Service{Name: n, Type: cluster.NodePort},
		&cluster.Service{Name: n, Headless: true},
		&cluster.Service{Name: n, ExternalIPs: ip}, &cluster.Service{Name: n, Ingress: []cluster.Ingress{{Addr: ip[0]}}},
		&cluster.Service{Name: n, Ingress: []cluster.Ingress{{Addr: ip[0], Proxied: true}}},
		&cluster.Service{Name: n, AffinitySeconds: 1},
		&cluster.Service{Name: n, InternalLocal: true}, &cluster.Service{Name: n, ExternalLocal: true},
		&cluster.Service{Name: n, HealthCheckPort: 1},
		&cluster.Service{Name: n, SourceRanges: subnet}, &cluster.Service{Name: n, SourceRanges: []netip.Prefix{{}}},
		&cluster.Service{Name: n, PublishNotReady: true},
	}
	return map[string][]cluster.Object{
		"Node": {
			&cluster.Node{Name: "n"}, &cluster.Node{Name: "n", UID: "u"}, &cluster.Node{Name: "n", Created: 1},
			&cluster.Node{Name: "n", Annotated: "a"}, &cluster.Node{Name: "n", JoinAnnotated: "a"},
			&cluster.Node{Name: "n", ChassisID: "c"},
		},
		"Namespace": {&cluster.Namespace{Name: "n"}, &cluster.Namespace{Name: "n", UID: "u"}},
		"Pod": {
			&cluster.Pod{Name: n}, &cluster.Pod{Name: n, UID: "u"}, &cluster.Pod{Name: n, Node: "n"},
			&cluster.Pod{Name: n, Created: 1},
			&cluster.Pod{Name: n, HostNetwork: true}, &cluster.Pod{Name: n, Finished: true},
			&cluster.Pod{Name: n, ClassicOK: true}, &cluster.Pod{Name: n, Annotated: "a"},
		},
		"Service": services,
		"EndpointSlice": {
			&cluster.EndpointSlice{Name: n},
			&cluster.EndpointSlice{Name: n, Service: "s"},
			&cluster.EndpointSlice{Name: n, Endpoints: endpoint(cluster.Endpoint{})},
			&cluster.EndpointSlice{Name: n, Endpoints: endpoint(cluster.Endpoint{Addr: ip[0]})},
			&cluster.EndpointSlice{Name: n, Endpoints: endpoint(cluster.Endpoint{Conditions: cluster.Ready})},
			&cluster.EndpointSlice{Name: n, Endpoints: endpoint(cluster.Endpoint{Conditions: cluster.Serving})},
			&cluster.EndpointSlice{Name: n, Endpoints: endpoint(cluster.Endpoint{Conditions: cluster.Terminating})},
			&cluster.EndpointSlice{Name: n, Endpoints: endpoint(cluster.Endpoint{Node: "x"})},
			&cluster.EndpointSlice{Name: n, Endpoints: endpoint(cluster.Endpoint{Zone: "x"})},
			&cluster.EndpointSlice{Name: n, Endpoints: endpoint(cluster.Endpoint{Pod: "x"})},
			&cluster.EndpointSlice{Name: n, Endpoints: endpoint(cluster.Endpoint{ForZones: "x"})},
			&cluster.EndpointSlice{Name: n, Endpoints: endpoint(cluster.Endpoint{ForNodes: "x"})},
			&cluster.EndpointSlice{Name: n, Ports: []cluster.EndpointPort{{Port: 80}}},
			&cluster.EndpointSlice{Name: n, Ports: []cluster.EndpointPort{{Port: 80, Protocol: cluster.UDP}}},
		},
	}
}

// Equal compares every field that a translator or package allocate reads.
func TestEqualSeesEveryDifference(t *testing.T) {
	groups := differing()
	for kind, variants := range groups {
		for i, a := range variants {
			for j, b := range variants {
				if a.Equal(b) != (i == j) {
					t.Errorf("%s: variants %d and %d: Equal is %v", kind, i, j, a.Equal(b))
				}
			}
			for other, objects := range groups {
				if other != kind && a.Equal(objects[0]) {
					t.Errorf("a %s equals a %s", kind, other)
				}
			}
		}
	}
}

func TestIndexes(t *testing.T) {
	s := cluster.NewState(config.DefaultCluster())
	apply(t, s, &cluster.Pod{Name: name("b", "z"), Node: "n1"})
	apply(t, s, &cluster.Pod{Name: name("b", "a"), Node: "n1"})
	apply(t, s, &cluster.Pod{Name: name("a", "z"), Node: "n2"})
	apply(t, s, &cluster.Pod{Name: name("a", "p")}) // not scheduled yet
	want := func(what string, got []cluster.Name, want ...cluster.Name) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	want("on n1", s.PodsOn("n1"), name("b", "a"), name("b", "z"))
	want("on the empty name", s.PodsOn(""))

	apply(t, s, &cluster.Pod{Name: name("b", "z"), UID: "again", Node: "n2"}) // moved
	want("on n1 after a move", s.PodsOn("n1"), name("b", "a"))
	want("on n2 after a move", s.PodsOn("n2"), name("a", "z"), name("b", "z"))
	remove(t, s, cluster.Ref{Kind: cluster.KindPod, Name: name("b", "a")})
	want("on n1 when empty", s.PodsOn("n1"))

	slice := func(n, svc string) { apply(t, s, &cluster.EndpointSlice{Name: name("a", n), Service: svc}) }
	slice("s2", "web")
	slice("s1", "web")
	slice("s3", "") // belongs to no service
	var got []string
	for _, e := range s.SlicesOf(name("a", "web")) {
		got = append(got, e.Name.Name)
	}
	if !slices.Equal(got, []string{"s1", "s2"}) {
		t.Errorf("slices of a/web: %v, want s1 s2", got)
	}
	slice("s1", "db") // the label was edited
	if n := len(s.SlicesOf(name("a", "web"))); n != 1 {
		t.Errorf("%d slices of a/web after one left, want 1", n)
	}
	if n := len(s.SlicesOf(name("b", "web"))); n != 0 {
		t.Errorf("%d slices of b/web, want 0", n)
	}
}

// Attachments that differ in any field are not the same.
func TestSamePodNetwork(t *testing.T) {
	same := annotation.PodNetwork{IPs: []netip.Prefix{netip.MustParsePrefix("10.0.0.3/24")}, MAC: ipnet.MAC{1},
		Gateways: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
	others := []annotation.PodNetwork{same, same, same, same, same, same, same}
	others[0].MAC = ipnet.MAC{2}
	others[1].Gateways = nil
	others[2].Routes = []annotation.Route{{}}
	others[3].MTU = 1300
	others[4].IPs = nil
	others[6].Physical = "lan"
	others[5].Waiting = "there is no network"
	for _, other := range others {
		if cluster.SamePodNetwork(same, other) || !cluster.SamePodNetwork(other, other) {
			t.Errorf("%+v and %+v", same, other)
		}
	}
	if n := reflect.TypeFor[annotation.PodNetwork]().NumField(); n != len(others) {
		t.Errorf("an attachment has %d fields, %d are compared", n, len(others))
	}
}

func TestGrants(t *testing.T) {
	s := cluster.NewState(config.DefaultCluster())
	node := &cluster.Node{Name: "n1"}
	pod := &cluster.Pod{Name: name("a", "p"), Node: "n1"}
	apply(t, s, node)
	apply(t, s, pod)
	subnets := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
	if c := s.GrantNode(names.Own, "n1", subnets); !c.Granted || c.Old != node || c.New != node || c.Ref != node.Ref() {
		t.Errorf("grant to a node: %+v", c)
	}
	net := annotation.PodNetwork{IPs: subnets}
	port := cluster.PodPort{Pod: pod.Name}
	if c := s.GrantPod(names.Own, port, &net); !c.Granted || c.Old != pod || c.New != pod || c.Ref != pod.Ref() ||
		c.Network != names.Own {
		t.Errorf("grant to a pod: %+v", c)
	}
	if !slices.Equal(s.NodeSubnets["n1"], subnets) || !cluster.SamePodNetwork(s.PodNetworks[port], net) {
		t.Errorf("granted %v and %v", s.NodeSubnets, s.PodNetworks)
	}
	s.GrantNode(names.Own, "n1", nil)
	s.GrantPod(names.Own, port, nil)
	if len(s.NodeSubnets)+len(s.PodNetworks) != 0 {
		t.Errorf("taken back, but there are %v and %v", s.NodeSubnets, s.PodNetworks)
	}
	gone := cluster.PodPort{Pod: name("a", "gone")}
	if c := s.GrantPod(names.Own, gone, nil); c.Old != nil || c.New != nil || !c.Granted {
		t.Errorf("grant taken from a pod that is gone: %+v", c)
	}
}

func TestNames(t *testing.T) {
	for text, n := range map[string]cluster.Name{"default/web": name("default", "web"), "n1": name("", "n1"),
		"/x": name("", "x")} {
		if got := cluster.ParseName(text); got != n {
			t.Errorf("ParseName(%q) = %v, want %v", text, got, n)
		}
	}
	if got := (&cluster.Pod{Name: name("a", "b")}).Ref().String(); got != "Pod a/b" {
		t.Errorf("reference %q, want Pod a/b", got)
	}
	if got := (&cluster.Node{Name: "n1"}).Ref().String(); got != "Node n1" {
		t.Errorf("reference %q, want Node n1", got)
	}
	for _, p := range []cluster.Pod{{}, {Node: "n", HostNetwork: true}, {Node: "n", Finished: true}} {
		if p.WantsNetwork() {
			t.Errorf("%+v wants a network", p)
		}
	}
	if p := (cluster.Pod{Node: "n"}); !p.WantsNetwork() {
		t.Errorf("%+v wants no network", p)
	}
}

// The pods of a namespace are those that were there when somebody first asked, and what came and went since.
func TestPodsIn(t *testing.T) {
	s := cluster.NewState(config.DefaultCluster())
	in := func(want ...string) {
		t.Helper()
		var got []string
		for _, n := range s.PodsIn("shop") {
			got = append(got, n.Name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("pods in the namespace: %v, want %v", got, want)
		}
	}
	put := func(namespace, pod string) {
		o := &cluster.Pod{Name: name(namespace, pod), UID: pod}
		s.Apply(cluster.Event{Ref: o.Ref(), New: o})
	}
	put("shop", "a")
	put("other", "b")
	in("a")
	put("shop", "c")
	in("a", "c")
	s.Apply(cluster.Event{Ref: (&cluster.Pod{Name: name("shop", "a")}).Ref()})
	in("c")
	s.Apply(cluster.Event{Ref: (&cluster.Pod{Name: name("shop", "c")}).Ref()})
	in()
}
