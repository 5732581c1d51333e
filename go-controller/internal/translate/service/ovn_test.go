package service_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// Packets go to every ready endpoint; with affinity always to the same one; without ready endpoints to those that
// terminate; and without any they are rejected at once. This holds on every kind of address.
func TestPackets(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	ports := []cluster.ServicePort{{Name: "t", Protocol: cluster.TCP, Port: 80}, {Name: "u", Protocol: cluster.UDP,
		Port: 80}}
	service := func(name string, n int, affinity int, conditions ...cluster.Conditions) []cluster.Object {
		ips := func(v4, v6 string) []netip.Addr {
			return []netip.Addr{netip.MustParseAddr(fmt.Sprintf(v4, n)), netip.MustParseAddr(fmt.Sprintf(v6, n))}
		}
		s := &cluster.Service{Name: named(name), Type: cluster.LoadBalancer, Ports: ports, AffinitySeconds: affinity,
			ExternalLocal: true,
			ClusterIPs:    ips("10.96.0.%d", "fd02::%d"), ExternalIPs: ips("192.0.2.%d", "2001:db8::%d")}
		for _, a := range ips("198.51.100.%d", "2001:db8:1::%d") {
			s.Ingress = append(s.Ingress, cluster.Ingress{Addr: a})
		}
		e := &cluster.EndpointSlice{Name: named(name), Service: name,
			Ports: []cluster.EndpointPort{{Name: "t", Protocol: cluster.TCP, Port: 8080}, {Name: "u", Protocol: cluster.UDP,
				Port: 8080}}}
		for i, c := range conditions {
			for _, a := range podAddrs(0, 1+i) {
				e.Endpoints = append(e.Endpoints, cluster.Endpoint{Addr: a, Conditions: c})
			}
		}
		return []cluster.Object{s, e}
	}
	ready, leaving := cluster.Ready|cluster.Serving, cluster.Serving|cluster.Terminating
	var objects []cluster.Object
	for _, s := range [][]cluster.Object{
		service("spread", 1, 0, ready, ready, ready), service("sticky", 2, 86400, ready, ready, ready),
		service("leaving", 3, 0, leaving, cluster.Terminating, leaving), service("nobody", 4, 0, 0, cluster.Serving,
			cluster.Terminating),
		service("timed", 5, 600, ready, ready, ready),
	} {
		objects = append(objects, s...)
	}
	onOVN(t, []*cluster.Node{{Name: "n1"}}, [][]string{{"s1", "s2", "s3"}}, func(b *bed) {
		b.set(objects...)
		packets(t)
	})
}

func packets(t *testing.T) {
	t.Helper()
	const connections = 24
	for _, prefix := range []string{"10.96.0.%d", "[fd02::%d]", "192.0.2.%d", "[2001:db8::%d]", "198.51.100.%d",
		"[2001:db8:1::%d]"} {
		vip := func(n int) string { return fmt.Sprintf(prefix, n) + ":80" }
		for _, network := range []string{"tcp", "udp"} {
			testkit.Eventually(t, "an answer from "+network+" "+vip(1), func() string {
				if got := ask(t, client(0), network, vip(1), 1); got["s1"]+got["s2"]+got["s3"] == 0 {
					return fmt.Sprint(got)
				}
				return ""
			})
			// The odds that one of three is never chosen in 24 fair choices are 1 in 5,000.
			if got := ask(t, client(0), network, vip(1), 4*connections); len(got) != 3 ||
				got["s1"]+got["s2"]+got["s3"] != 4*connections {
				t.Errorf("%s %s is answered by %v, want all three", network, vip(1), got)
			}
			if got := ask(t, client(0), network, vip(2), connections); len(got) != 1 ||
				got["s1"]+got["s2"]+got["s3"] != connections {
				t.Errorf("%s %s, with affinity, is answered by %v, want always the same", network, vip(2), got)
			}
			// The connection by which OVN learns of the client may be lost.
			askFor(t, client(0), network, vip(5), 1, 300*time.Millisecond)
			got := ask(t, client(0), network, vip(5), connections)
			if network == "udp" && got[nobody] == 1 { // one lost while Open vSwitch put the client's new flow to use
				delete(got, nobody)
				for who, n := range ask(t, client(0), network, vip(5), 1) {
					got[who] += n
				}
			}
			if len(got) != 1 || got["s1"]+got["s2"]+got["s3"] != connections {
				t.Errorf("%s %s, with affinity for a time, is answered by %v, want always the same", network, vip(5), got)
			}
			if got := ask(t, client(0), network, vip(3), 2*connections); len(got) != 2 || got["s1"]+got["s3"] != 2*connections {
				t.Errorf("%s %s is answered by %v, want s1 and s3, which terminate and serve", network, vip(3), got)
			}
			if got := ask(t, client(0), network, vip(4), 2); got["connection refused"] != 2 {
				t.Errorf("%s %s is answered by %v, want refusal", network, vip(4), got)
			}
		}
	}
}
