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
	return &cluster.Network{Name: "blue", Role: annotation.RoleSecondary, Subnets: subnets, JoinSubnets: []netip.Prefix{
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
			p.Attachments = append(p.Attachments, cluster.Attachment{Network: "blue", Interface: fmt.Sprint("net", k+1),
				Key: fmt.Sprint("ns/blue/", k)})
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

// with is a cluster with the objects of twoNodes and others.
func with(t *testing.T, others ...cluster.Object) (*master, *path) {
	t.Helper()
	m, p := newMaster(), newPath(0)
	if err := m.update(map[nb.Owner]bool{m.Owners()[0]: true}); err != nil {
		t.Fatal(err)
	}
	m.settle(t, p, come(append(twoNodes(), others...)...)...)
	return m, p
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

// A second network has rows of its own, and the rows of the cluster's own network do not change by a byte. When it is
// deleted, exactly its rows and its entries in annotations go.
func TestSecondNetwork(t *testing.T) {
	for what, network := range networks() {
		t.Run(what, func(t *testing.T) {
			alone, aloneObjects := with(t)
			want, none := split(alone)
			if len(none) != 0 {
				t.Fatalf("rows of blue without blue:\n%s", none)
			}
			m, p := with(t)
			m.settle(t, p, come(network)...)
			own, others := split(m)
			if !slices.Equal(own, want) {
				t.Errorf("the cluster's own rows with blue:\n%s\nand without:\n%s", own, want)
			}
			checkBlue(t, m, network)
			again, _ := with(t, network)
			if _, rows := split(again); !slices.Equal(rows, others) {
				t.Errorf("blue's rows in another order of events:\n%s\nwant\n%s", rows, others)
			}
			m.repair(t)

			m.settle(t, p, cluster.Event{Ref: network.Ref()})
			if own, others = split(m); !slices.Equal(own, want) || len(others) != 0 {
				t.Errorf("after the deletion: rows of blue %s, others\n%s\nwant\n%s", others, own, want)
			}
			for r, o := range aloneObjects.objects {
				if got, ok := p.objects[r]; !ok || !got.Equal(o) {
					t.Errorf("%s is %+v after the deletion, want %+v", r, got, o)
				}
			}
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
		net, ok, err := annotation.PodNetworkIn(pod.Annotated, a.Key)
		held := m.State.In("blue").PodNetworks[cluster.PodPort{Pod: pod.Name, Interface: a.Interface}]
		if !ok || err != nil || !cluster.SamePodNetwork(net, held) || len(net.IPs) != len(network.Subnets) ||
			len(net.Gateways) != 0 || len(net.Routes) != len(network.Subnets) {
			t.Errorf("annotated %+v, %v, %v; held %+v", net, ok, err, held)
		}
		for i, ip := range net.IPs {
			if !network.Subnets[i].CIDR.Contains(ip.Addr()) || net.Routes[i].Dest != network.Subnets[i].CIDR {
				t.Errorf("%v, routes %v: want an address in %v", ip, net.Routes, network.Subnets[i])
			}
		}
	}
}

// repair drops each row of blue. The plan of its owner brings it back, and then nothing is left to do.
func (m *master) repair(t *testing.T) {
	t.Helper()
	count := func() int { _, rows := split(m); return len(rows) }
	before := count()
	for o, rows := range maps.Clone(m.rows) {
		for _, row := range rows {
			ref := m.Schema.Ref(row.Model)
			if !ofBlue(fmt.Sprint(names.OwnerNameKey, ":", o.Name)) && !strings.HasPrefix(row.Key.Role, "port-blue/") {
				continue
			}
			m.db.Drop(ref)
			if p := m.Plan(m.db, []nb.Owner{o}, nil); len(p.Plans) != 1 {
				t.Fatalf("plans %v after %s of %s was dropped, want one", p.Plans, row.Key.Role, o)
			}
			if err := m.update(map[nb.Owner]bool{o: true}); err != nil {
				t.Fatal(err)
			}
			// What listed the row in other rows is of the owners of these.
			for dependent := range m.rows {
				if err := m.update(map[nb.Owner]bool{dependent: true}); err != nil {
					t.Fatal(err)
				}
			}
			if p := m.Plan(m.db, m.Owners(), nil); len(p.Plans) != 0 || count() != before {
				t.Fatalf("plans %v are left, and %d rows of %d", p.Plans, count(), before)
			}
		}
	}
}

// A network goes together with a node and a pod in it: nothing of it is left.
func TestNetworkGoesWithItsNode(t *testing.T) {
	network := blue(smallCluster().Subnets...)
	m, p := with(t)
	m.settle(t, p, come(network)...)
	m.settle(t, p, cluster.Event{Ref: cluster.Ref{Kind: cluster.KindNode, Name: cluster.Name{Name: "n1"}}},
		cluster.Event{Ref: network.Ref()},
		cluster.Event{Ref: cluster.Ref{Kind: cluster.KindPod, Name: cluster.Name{Namespace: "ns", Name: "p0"}}})
	if _, others := split(m); len(others) != 0 {
		t.Errorf("left of blue:\n%s", others)
	}
	if g := m.State.In("blue"); len(g.NodeSubnets)+len(g.JoinAddrs)+len(g.PodNetworks) != 0 {
		t.Errorf("grants that are left: %+v", g)
	}
}
