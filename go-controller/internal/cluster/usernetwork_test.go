package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// asks is a pod that asks for networks.
func asks(namespace string, networks ...names.Network) *cluster.Pod {
	p := &cluster.Pod{Name: cluster.Name{Namespace: namespace, Name: "p"}}
	for i, n := range networks {
		p.Attachments = append(p.Attachments, cluster.Attachment{Network: n, Interface: fmt.Sprint("net", i+1)})
	}
	return p
}

// clusterNetwork is a ClusterUserDefinedNetwork of the namespaces of a team; of none if the selector can't be read.
func clusterNetwork(name, team string) *cluster.UserNetwork {
	u := &cluster.UserNetwork{Name: cluster.Name{Name: name}, Network: &cluster.Network{
		Name: names.Defined("", name), Topology: cluster.Layer2, UserDefined: true}}
	if team != "" {
		s := cluster.NewLabelSelector(cluster.Requirement{Key: "team", Operator: cluster.In, Values: []string{team}})
		u.Selects = &s
	}
	return u
}

// A request means the network of the pod's own namespace, else the cluster's network that selects the namespace.
func TestResolve(t *testing.T) {
	s := cluster.NewState(config.DefaultCluster())
	put := func(o cluster.Object) { s.Apply(cluster.Event{Ref: o.Ref(), New: o}) }
	team := func(name string) cluster.Labels { return cluster.NewLabels(map[string]string{"team": name}) }
	put(&cluster.Namespace{Name: "red", Labels: team("north")})
	put(&cluster.Namespace{Name: "green", Labels: team("north")})
	put(&cluster.Namespace{Name: "blue", Labels: team("south")})
	put(clusterNetwork("shared", "north"))
	put(clusterNetwork("none", ""))
	put(&cluster.UserNetwork{Name: cluster.Name{Namespace: "green", Name: "shared"}})
	for _, c := range []struct {
		namespace string
		asked     names.Network
		want      names.Network
	}{
		{"red", "red.shared", ".shared"}, {"red", "red.other", "red.other"}, {"red", "red.none", "red.none"},
		{"green", "green.shared", "green.shared"}, {"blue", "blue.shared", "blue.shared"},
		{"blue", "red.shared", "red.shared"}, {"unknown", "unknown.shared", "unknown.shared"},
	} {
		got := s.Resolve(asks(c.namespace, "x.y", c.asked)).(*cluster.Pod).Attachments[1]
		if got.Network != c.want || got.Name() != c.asked || got.Key() != string(c.asked)+"/net2" {
			t.Errorf("%s asks for %s: %+v, want %s", c.namespace, c.asked, got, c.want)
		}
	}
	p := s.Resolve(asks("red", "red.shared"))
	if s.Resolve(p) != p {
		t.Error("a resolved pod is resolved again to another")
	}
}

// about is a MultiNetworkPolicy about networks, by their names.
func about(namespace string, networks ...names.Network) *cluster.MultiNetworkPolicy {
	return &cluster.MultiNetworkPolicy{
		NetworkPolicy: cluster.NetworkPolicy{Name: cluster.Name{Namespace: namespace, Name: "p"}},
		Named:         networks, Networks: networks,
	}
}

// A policy is about the networks that its names mean to the pods of its namespace.
func TestResolvePolicy(t *testing.T) {
	s := cluster.NewState(config.DefaultCluster())
	put := func(o cluster.Object) { s.Apply(cluster.Event{Ref: o.Ref(), New: o}) }
	put(&cluster.Namespace{Name: "red", Labels: cluster.NewLabels(map[string]string{"team": "north"})})
	put(clusterNetwork("shared", "north"))
	put(&cluster.UserNetwork{Name: cluster.Name{Namespace: "red", Name: "own"}})
	put(clusterNetwork("own", "north"))
	p := s.Resolve(about("red", "default.far", "red.own", "red.shared")).(*cluster.MultiNetworkPolicy)
	if got := fmt.Sprint(p.Networks); got != "[.shared default.far red.own]" {
		t.Errorf("the policy is about %s, want the cluster's network shared and two others", got)
	}
	if s.Resolve(p) != cluster.Object(p) {
		t.Error("a resolved policy is resolved again to another")
	}
}

// Only pods and policies whose requests mean something else are applied again.
func TestResolved(t *testing.T) {
	s := cluster.NewState(config.DefaultCluster())
	step := func(what string, o cluster.Object, gone bool, want ...string) {
		t.Helper()
		e := cluster.Event{Ref: o.Ref(), New: o}
		if gone {
			e.New = nil
		}
		s.Apply(e)
		var got []string
		for _, o := range s.Resolved(e.Ref) {
			got = append(got, string(o.Ref().Kind)+" "+o.Ref().Name.Namespace)
			s.Apply(cluster.Event{Ref: o.Ref(), New: o})
		}
		var both []string
		for _, ns := range want {
			both = append(both, "Pod "+ns, "MultiNetworkPolicy "+ns)
		}
		if !slices.Equal(got, both) {
			t.Errorf("%s: %v are resolved, want %v", what, got, both)
		}
	}
	for _, ns := range []string{"a", "b"} {
		p := asks(ns, names.Defined(ns, "shared"))
		s.Apply(cluster.Event{Ref: p.Ref(), New: p})
		q := about(ns, names.Defined(ns, "shared"))
		s.Apply(cluster.Event{Ref: q.Ref(), New: q})
	}
	north := func(ns string) *cluster.Namespace {
		return &cluster.Namespace{Name: ns, Labels: cluster.NewLabels(map[string]string{"team": "north"})}
	}
	own := &cluster.NetworkDefinition{Name: cluster.Name{Namespace: "a", Name: "shared"}}
	step("a namespace, without networks", north("a"), false)
	step("a network", clusterNetwork("shared", "north"), false, "a")
	step("another network", clusterNetwork("other", "north"), false)
	step("a namespace", north("b"), false, "b")
	step("a definition of a namespace", own, false, "a")
	step("no label any more", &cluster.Namespace{Name: "b"}, false, "b")
	step("no definition any more", own, true, "a")
	step("another selector", clusterNetwork("shared", "south"), false, "a")
	step("the first selector", clusterNetwork("shared", "north"), false, "a")
	step("no network any more", clusterNetwork("shared", "north"), true, "a")
}
