package translate_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// blue is a network besides the cluster's own.
func blue(subnets ...config.ClusterSubnet) *cluster.Network {
	return &cluster.Network{Name: "blue", Subnets: subnets, JoinSubnets: []netip.Prefix{
		netip.MustParsePrefix("100.88.0.0/24"), netip.MustParsePrefix("fd97::/64")}}
}

// twoNodes is a small cluster in which two pods have interfaces in blue, one of them two.
func twoNodes() []cluster.Object {
	gateway := &annotation.L3Gateway{Bridge: "breth0", Network: "physnet", Port: "breth0_n1", MAC: ipnet.MAC{2},
		IPs: []netip.Prefix{netip.MustParsePrefix("172.18.0.3/16")}}
	out := []cluster.Object{
		&cluster.Node{Name: "n1", UID: "u-n1", Created: 1, ChassisID: "c1", Zone: "a", Gateway: gateway},
		&cluster.Node{Name: "n2", UID: "u-n2", Created: 2, ChassisID: "c2"}, &cluster.Namespace{Name: "ns", UID: "u-ns"},
		&cluster.Service{Name: cluster.Name{Namespace: "ns", Name: "s"}, UID: "u-s", Type: cluster.ClusterIP,
			ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.7")}, Ports: []cluster.ServicePort{
				{Protocol: cluster.TCP, Port: 80}}},
	}
	for i := range 4 {
		p := &cluster.Pod{Name: cluster.Name{Namespace: "ns", Name: fmt.Sprint("p", i)}, UID: fmt.Sprint("u-p", i),
			Created: int64(10 + i), Node: fmt.Sprint("n", 1+i%2), Bandwidth: cluster.Bandwidth{Egress: 1_000_000}}
		for k := range []int{2, 1, 0, 0}[i] {
			p.Attachments = append(p.Attachments, cluster.Attachment{Network: "blue", Interface: fmt.Sprint("net", k+1)})
		}
		out = append(out, p)
	}
	return out
}

func come(objects ...cluster.Object) (out []cluster.Event) {
	for _, o := range objects {
		out = append(out, cluster.Event{Ref: o.Ref(), New: o})
	}
	return out
}

// settle carries out events, and the events that the patches lead to.
func (m *master) settle(t *testing.T, p *path, events ...cluster.Event) {
	t.Helper()
	for len(events) > 0 {
		for _, e := range events {
			p.set(e.Ref, e.New)
		}
		patches, err := m.batch(events)
		if err != nil {
			t.Fatal(err)
		}
		events = nil
		for _, patch := range patches {
			if e, ok := p.patched(patch); ok {
				events = append(events, e)
			}
		}
	}
	m.check(t)
}

// begin has what each network has once be there.
func (m *master) begin(t *testing.T) {
	t.Helper()
	owners := map[nb.Owner]bool{}
	for _, o := range m.Owners() {
		owners[o] = o.Kind == names.KindCluster
	}
	maps.DeleteFunc(owners, func(_ nb.Owner, is bool) bool { return !is })
	if err := m.update(owners); err != nil {
		t.Fatal(err)
	}
}

// with is a cluster with networks and the objects of twoNodes.
func with(t *testing.T, networks ...*cluster.Network) *master {
	t.Helper()
	m := newMaster(networks...)
	m.begin(t)
	m.settle(t, newPath(0), come(twoNodes()...)...)
	return m
}

// ofBlue is true for a line of a dump that shows a row of the network blue.
func ofBlue(line string) bool {
	return strings.Contains(line, names.OwnerNameKey+":blue/") || strings.Contains(line, names.RoleKey+":port-blue/")
}

// split is the rows of a database without and with those of blue.
func split(m *master) (own, others []string) {
	for line := range strings.Lines(dump(m.Schema, m.db)) {
		if ofBlue(line) {
			others = append(others, line)
		} else {
			own = append(own, line)
		}
	}
	return own, others
}

func networks() map[string]*cluster.Network {
	v4, v6 := config.ClusterSubnet{CIDR: netip.MustParsePrefix("10.99.0.0/24"), NodeLength: 28},
		config.ClusterSubnet{CIDR: netip.MustParsePrefix("fd99::/48"), NodeLength: 64}
	return map[string]*cluster.Network{"IPv4": blue(v4), "IPv6": blue(v6), "both families": blue(v4, v6),
		"the cluster's own subnets": blue(smallCluster().Subnets...)}
}

// A second network has rows of its own, and the rows of the cluster's own network do not change by a byte.
func TestSecondNetwork(t *testing.T) {
	want, none := split(with(t))
	if len(none) != 0 {
		t.Fatalf("rows of blue without blue:\n%s", none)
	}
	for what, network := range networks() {
		t.Run(what, func(t *testing.T) {
			m := with(t, network)
			if own, _ := split(m); !slices.Equal(own, want) {
				t.Errorf("the cluster's own rows with blue:\n%s\nand without:\n%s", own, want)
			}
			checkBlue(t, m, network)
		})
	}
}

// checkBlue checks names and addresses of blue's rows.
func checkBlue(t *testing.T, m *master, network *cluster.Network) {
	t.Helper()
	got := map[string]string{}
	for _, table := range []string{nbdb.LogicalSwitchTable, nbdb.LogicalRouterTable, nbdb.LogicalSwitchPortTable,
		nbdb.LogicalRouterPortTable} {
		for _, row := range m.db.Rows(table) {
			k, _ := m.Schema.Mark(row)
			got[m.Schema.Label(row)] = k.Owner.String() + " " + k.Role
		}
	}
	for name, owner := range map[string]string{
		"blue_ovn_cluster_router": "Cluster blue/cluster router", "blue_join": "Cluster blue/cluster join",
		"rtoj-blue_ovn_cluster_router": "Cluster blue/cluster rtoj",
		"jtor-blue_ovn_cluster_router": "Cluster blue/cluster jtor",
		"blue_n1":                      "Node blue/n1 switch",
		"rtos-blue_n1":                 "Node blue/n1 rtos", "stor-blue_n1": "Node blue/n1 stor",
		"blue_n2": "Node blue/n2 switch", "rtos-blue_n2": "Node blue/n2 rtos", "stor-blue_n2": "Node blue/n2 stor",
		"blue_ns_p0_net1": "Pod ns/p0 port-blue/net1", "blue_ns_p0_net2": "Pod ns/p0 port-blue/net2",
		"blue_ns_p1_net1": "Pod ns/p1 port-blue/net1", "ns_p0": "Pod ns/p0 port", "n1": "Node n1 switch",
	} {
		if got[name] != owner {
			t.Errorf("%s is of %q, want %q", name, got[name], owner)
		}
	}
	for name := range got {
		if strings.Contains(name, "k8s-blue") {
			t.Errorf("%s: want no management port", name)
		}
	}
	pod := m.State.Pods[cluster.Name{Namespace: "ns", Name: "p0"}]
	for _, a := range pod.Attachments {
		net, ok, err := annotation.PodNetworkIn(pod.Annotated, a.Key())
		held := m.State.In("blue").PodNetworks[cluster.PodPort{Pod: pod.Name, Interface: a.Interface}]
		if !ok || err != nil || !cluster.SamePodNetwork(net, held) || len(net.IPs) != len(network.Subnets) ||
			len(net.Gateways) != 0 {
			t.Errorf("annotated %+v, %v, %v; held %+v", net, ok, err, held)
		}
		for i, ip := range net.IPs {
			if !network.Subnets[i].CIDR.Contains(ip.Addr()) {
				t.Errorf("%v: want an address in %v", ip, network.Subnets[i])
			}
		}
	}
}

// Whoever names a pod like a node, in a namespace named like the node's bridge, takes no gateway's port away.
func TestPodNamedAsAGatewaysPort(t *testing.T) {
	m, p := newMaster(), newPath(1)
	m.begin(t)
	pod := &cluster.Pod{Name: cluster.Name{Namespace: "breth0", Name: "n2"}, UID: "u-p", Created: 9, Node: "n1"}
	plain := &cluster.Node{Name: "n2", UID: "u-n2", Created: 2, ChassisID: "c2"}
	gateway := *plain
	gateway.Gateway = &annotation.L3Gateway{Bridge: "breth0", Network: "physnet", Port: "breth0_n2", MAC: ipnet.MAC{2},
		IPs: []netip.Prefix{netip.MustParsePrefix("172.18.0.3/16")}}
	gateway.Addrs = []netip.Addr{netip.MustParseAddr("172.18.0.3")}
	m.settle(t, p, come(&cluster.Node{Name: "n1", UID: "u-n1", Created: 1, ChassisID: "c1"}, plain, pod)...)
	check := func(rows int, report string) {
		t.Helper()
		got, err := m.Rows(nb.Owner{Kind: names.KindPod, Name: "breth0/n2"})
		if err != nil || len(got.Rows) != rows || len(got.Reports) > 1 {
			t.Fatalf("%d rows, reports %v, %v: want %d rows", len(got.Rows), got.Reports, err, rows)
		}
		if said := fmt.Sprint(got.Reports); !strings.Contains(said, report) {
			t.Errorf("reports %v, want %q", got.Reports, report)
		}
	}
	check(1, "")
	m.settle(t, p, come(&gateway)...)
	check(0, "would be called breth0_n2, as the port of Node n2 to its bridge breth0")
	m.settle(t, p, come(plain)...)
	check(1, "")
}
