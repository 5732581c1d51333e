package cluster_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// A node uses its own endpoints that are ready, or else those that terminate, whatever other nodes have.
func TestChooseLocal(t *testing.T) {
	const going = cluster.Serving | cluster.Terminating
	ep := func(addr, node string, c cluster.Conditions) cluster.Endpoint {
		return cluster.Endpoint{Addr: netip.MustParseAddr(addr), Node: node, Conditions: c}
	}
	port := cluster.ServicePort{Name: "web", Protocol: cluster.TCP, Port: 80}
	slices := []*cluster.EndpointSlice{
		{Ports: []cluster.EndpointPort{{Name: "web", Protocol: cluster.TCP, Port: 8080}}, Endpoints: []cluster.Endpoint{
			ep("10.0.1.3", "n1", cluster.Ready|cluster.Serving), ep("10.0.1.4", "n1", going), ep("10.0.2.3", "n2", going),
			ep("10.0.2.4", "n2", 0), ep("10.0.9.9", "", cluster.Ready),
		}},
		{Ports: []cluster.EndpointPort{{Name: "web", Protocol: cluster.TCP, Port: 9090}, {Name: "web", Protocol: cluster.UDP,
			Port: 53}}, Endpoints: []cluster.Endpoint{
			ep("10.0.1.3", "n1", cluster.Ready), ep("10.0.3.3", "n3", cluster.Terminating), ep("fd01::3", "n1", going),
		}},
	}
	for _, c := range []struct {
		node string
		is4  bool
		want string
	}{
		{"n1", true, "[10.0.1.3:8080 10.0.1.3:9090]"}, {"n1", false, "[[fd01::3]:9090]"}, {"n2", true, "[10.0.2.3:8080]"},
		{"n3", true, "[]"}, {"n4", true, "[]"},
	} {
		if got := fmt.Sprint(cluster.ChooseLocal(port, c.is4, slices).Nodes[c.node]); got != c.want {
			t.Errorf("on %s (IPv4: %v): %s, want %s", c.node, c.is4, got, c.want)
		}
		if got := fmt.Sprint(cluster.OnNode(c.node, port, c.is4, slices)); got != c.want {
			t.Errorf("asked for %s alone (IPv4: %v): %s, want %s", c.node, c.is4, got, c.want)
		}
	}
	if got := len(cluster.Choose(port, true, slices).Backends); got != 3 {
		t.Errorf("everywhere %d endpoints serve, want the 3 that are ready", got)
	}
}
