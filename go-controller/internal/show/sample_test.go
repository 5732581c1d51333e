package show_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/show"
)

// dualStack is a configuration with both families.
func dualStack() config.Cluster {
	c := config.DefaultCluster()
	c.Subnets = append(c.Subnets, config.ClusterSubnet{CIDR: netip.MustParsePrefix("fd01::/48"), NodeLength: 64})
	return c
}

// sample is the translation of a small dual-stack cluster.
func sample(t *testing.T) (*nb.Schema, *nb.Database) {
	t.Helper()
	name := func(n string) cluster.Name { return cluster.Name{Namespace: "default", Name: n} }
	objects := []cluster.Object{&cluster.Namespace{Name: "default", UID: "u-ns"}, &cluster.Namespace{
		Name: "kube-system", Logging: cluster.Logging{Deny: cluster.SeverityAlert}}}
	gateway := &annotation.L3Gateway{Bridge: "breth0", Network: "physnet", Port: "breth0_n2", VLAN: 7,
		NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1")},
		IPs:      []netip.Prefix{netip.MustParsePrefix("172.18.0.3/16"), netip.MustParsePrefix("fc00::3/64")}}
	for i := range 3 {
		n := &cluster.Node{Name: fmt.Sprintf("n%d", i+1), ByHand: i == 2}
		n.UID, n.ChassisID = "u-"+n.Name, "chassis-"+n.Name
		if i == 1 {
			n.Gateway, n.Addrs = gateway, ipnet.Addrs(gateway.IPs)
		}
		node := n.Name
		objects = append(objects, n)
		for j := range 2 {
			objects = append(objects, &cluster.Pod{Name: name(fmt.Sprintf("web-%d-%d", i, j)), UID: fmt.Sprintf("u-%d-%d", i, j),
				Node:      node,
				Bandwidth: cluster.Bandwidth{Ingress: uint64(i) * 1_000_000, Egress: uint64(j) * 1_000_000}})
		}
	}
	ips := []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd02::10")}
	objects = append(objects,
		&cluster.Service{Name: name("web"), UID: "u-web", ClusterIPs: ips, Ports: []cluster.ServicePort{
			{Name: "http", Protocol: cluster.TCP, Port: 80}, {Name: "dns", Protocol: cluster.UDP, Port: 53}}},
		&cluster.Service{Name: name("empty"), UID: "u-empty", ClusterIPs: ips[:1],
			Ports: []cluster.ServicePort{{Name: "http", Protocol: cluster.SCTP, Port: 81}}},
		&cluster.EndpointSlice{Name: name("web-1"), Service: "web",
			Ports: []cluster.EndpointPort{{Name: "http", Protocol: cluster.TCP, Port: 8080}},
			Endpoints: []cluster.Endpoint{{Addr: netip.MustParseAddr("10.128.0.3"), Conditions: cluster.Ready},
				{Addr: netip.MustParseAddr("10.128.2.3"), Conditions: cluster.Ready}}},
		&cluster.EndpointSlice{Name: name("web-2"), Service: "web",
			Ports:     []cluster.EndpointPort{{Name: "http", Protocol: cluster.TCP, Port: 8080}},
			Endpoints: []cluster.Endpoint{{Addr: netip.MustParseAddr("fd01::3"), Conditions: cluster.Ready}}})
	c := offline.New(dualStack(), objects)
	db, errs := c.Database()
	if len(errs)+len(c.Problems) != 0 {
		t.Fatalf("errors %v, problems %v", errs, c.Problems)
	}
	return c.Schema, db
}

func printed(t *testing.T, f show.Format, s *nb.Schema, db *nb.Database) string {
	t.Helper()
	var b strings.Builder
	if err := show.Write(&b, f, s, db); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
