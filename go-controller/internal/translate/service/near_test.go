package service_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// The results for a connection that reaches no server.
const (
	refusal = "connection refused" // also to a UDP packet
	nobody  = "i/o timeout"
)

// asked is a VIP, and the servers that are to answer it from each node.
type asked struct {
	vip  string
	want [3]string
}

// answered waits until these servers answer: OVN applies changes in its own time.
func (b *bed) answered(a asked) {
	b.Helper()
	for i, want := range a.want {
		for _, network := range []string{"tcp", "udp"} {
			n, limit := 16, 5*time.Second // that one of two is never chosen in 16 fair choices has odds of 1 in 30,000
			switch want {
			case refusal:
				n = 1
			case nobody:
				n, limit = 1, 300*time.Millisecond
			}
			testkit.Eventually(b.T, fmt.Sprintf("%s %s from n%d is answered by %s", network, a.vip, i+1, want), func() string {
				got := askFor(b.T, client(i), network, a.vip, n, limit)
				if strings.Join(slices.Sorted(maps.Keys(got)), ",") != want {
					return fmt.Sprint(got)
				}
				return ""
			})
		}
	}
}

// numbered is an address of each of the formats.
func numbered(n int, formats ...string) []netip.Addr {
	var out []netip.Addr
	for _, f := range formats {
		out = append(out, netip.MustParseAddr(fmt.Sprintf(f, n)))
	}
	return out
}

// Clients get the endpoints that are near them. n1 is in zone a, n2 in b, n3 in none; the first two have a server each.
func TestNearPackets(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	ready := cluster.Ready | cluster.Serving
	ports := []cluster.ServicePort{
		{Name: "t", Protocol: cluster.TCP, Port: 80}, {Name: "u", Protocol: cluster.UDP, Port: 80}}
	numbers := []cluster.EndpointPort{
		{Name: "t", Protocol: cluster.TCP, Port: 8080}, {Name: "u", Protocol: cluster.UDP, Port: 8080}}
	service := func(name string, n int, local bool, endpoints ...cluster.Endpoint) []cluster.Object {
		s := &cluster.Service{Name: named(name), Ports: ports, InternalLocal: local,
			ClusterIPs: numbered(n, "10.96.0.%d", "fd02::%d"), ExternalIPs: numbered(n, "192.0.2.%d", "2001:db8::%d")}
		e := &cluster.EndpointSlice{Name: named(name), Service: name, Ports: numbers}
		for i, ep := range endpoints {
			for _, a := range podAddrs(i, 1) {
				ep.Addr, ep.Node, ep.Conditions = a, fmt.Sprintf("n%d", i+1), ep.Conditions|ready
				e.Endpoints = append(e.Endpoints, ep)
			}
		}
		return []cluster.Object{s, e}
	}
	nodes := []*cluster.Node{{Name: "n1", Zone: "a"}, {Name: "n2", Zone: "b"}, {Name: "n3"}}
	onOVN(t, nodes, [][]string{{"s1"}, {"s2"}, {}}, func(b *bed) {
		b.set(slices.Concat(
			service("local", 1, true, cluster.Endpoint{}, cluster.Endpoint{}),
			service("same-zone", 2, false, cluster.Endpoint{ForZones: "a"}, cluster.Endpoint{ForZones: "b"}),
			service("same-node", 3, false,
				cluster.Endpoint{ForNodes: "n1", ForZones: "a"}, cluster.Endpoint{ForNodes: "n2", ForZones: "b"}),
			service("one-unhinted", 4, false, cluster.Endpoint{ForZones: "a"}, cluster.Endpoint{}),
			service("local-nobody", 5, true),
			service("first", 6, true, cluster.Endpoint{}),
		)...)
		for i, format := range []string{"10.96.0.%d:80", "[fd02::%d]:80", "192.0.2.%d:80", "[2001:db8::%d]:80"} {
			at := func(n int, want ...string) {
				b.Helper()
				b.answered(asked{fmt.Sprintf(format, n), [3]string(want)})
			}
			near := []string{"s1", "s2", "s1,s2"}
			at(2, near...)
			at(3, near...)
			at(4, "s1,s2", "s1,s2", "s1,s2")
			at(5, refusal, refusal, refusal)
			if i < 2 {
				at(1, "s1", "s2", nobody)
				at(6, "s1", nobody, nobody)
				at(9, nobody, nobody, nobody) // no service has it
			} else { // internalTrafficPolicy is about ClusterIPs
				at(1, "s1,s2", "s1,s2", "s1,s2")
				at(6, "s1", "s1", "s1")
			}
		}
		// Node n3 moves to zone b, and the server of n1 is removed.
		nodes[2].Zone = "b"
		b.set(slices.Concat(
			service("same-zone", 2, false, cluster.Endpoint{ForZones: "a"}, cluster.Endpoint{ForZones: "b"}),
			service("local", 1, true, cluster.Endpoint{}),
		)...)
		b.answered(asked{"10.96.0.2:80", [3]string{"s1", "s2", "s2"}})
		b.answered(asked{"[fd02::2]:80", [3]string{"s1", "s2", "s2"}})
		b.answered(asked{"10.96.0.1:80", [3]string{"s1", nobody, nobody}})
	})
}
