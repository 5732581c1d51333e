package translate_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// bigMaster is a master with nodes, pods on each of them, and services.
func bigMaster(t *testing.T, nodes, podsPerNode, services int) *master {
	t.Helper()
	m := newMasterOf(config.DefaultCluster())
	events := []cluster.Event{event(&cluster.Namespace{Name: "default"})}
	for i := range nodes {
		n := fmt.Sprintf("n%d", i)
		events = append(events, event(&cluster.Node{Name: n}))
		for j := range podsPerNode {
			events = append(events, event(&cluster.Pod{Name: cluster.Name{Namespace: "default", Name: fmt.Sprintf("p-%d-%d", i,
				j)}, Node: n}))
		}
	}
	for i := range services {
		n := cluster.Name{Namespace: "default", Name: fmt.Sprintf("s%d", i)}
		svc := service(n)
		svc.ClusterIPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})}
		events = append(events, event(svc), event(&cluster.EndpointSlice{Name: n, Service: n.Name}))
	}
	res := m.Step(events)
	if len(res.Problems) != 0 || len(res.Patches) != nodes*(1+podsPerNode) {
		t.Fatalf("%d patches, problems %v", len(res.Patches), res.Problems)
	}
	return m
}

func event(o cluster.Object) cluster.Event { return cluster.Event{Ref: o.Ref(), New: o} }

func service(n cluster.Name) *cluster.Service {
	return &cluster.Service{Name: n, ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.255.1")},
		Ports: []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80}}}
}

// affected lists every owner that an event, and what package allocate makes of it, dirties.
func (m *master) affected(t *testing.T, e cluster.Event) []nb.Owner {
	t.Helper()
	res := m.Step([]cluster.Event{e})
	if len(res.Changes) == 0 {
		t.Fatalf("%s says nothing new", e.Ref)
	}
	out := res.Dirty
	slices.SortFunc(out, nb.Owner.Compare)
	return slices.Compact(out)
}

// fanOut is a change and the owners that it dirties.
type fanOut struct {
	what string
	e    cluster.Event
	want []nb.Owner
}

func gateway(n, ip string) *cluster.Node {
	p := netip.MustParsePrefix(ip)
	return &cluster.Node{Name: n, Addrs: []netip.Addr{p.Addr()}, Gateway: &annotation.L3Gateway{IPs: []netip.Prefix{p},
		NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1")}}}
}

// withChassis is a node with a chassis.
func withChassis(n *cluster.Node, id string) *cluster.Node {
	n.ChassisID = id
	return n
}

func fanOuts() []fanOut {
	owner := func(k names.Kind, n string) nb.Owner { return nb.Owner{Kind: k, Name: n} }
	node := func(n string) nb.Owner { return owner(names.KindNode, n) }
	pod := func(n string) nb.Owner { return owner(names.KindPod, n) }
	svc := func(n string) nb.Owner { return owner(names.KindService, "default/"+n) }
	gatewayOf := func(n string) nb.Owner { return owner(names.KindGateway, n) }
	name := cluster.Name{Namespace: "default", Name: "new"}
	return []fanOut{
		{"a node joins", event(&cluster.Node{Name: "new"}), []nb.Owner{node("new"), svc("same-node")}},
		{"another gateway joins", event(gateway("new", "172.18.0.4/16")),
			[]nb.Owner{node("new"), gatewayOf("new"), svc("same-node")}},
		{"a gateway joins with the address of another", event(gateway("new", "172.18.0.3/16")),
			[]nb.Owner{node("new"), gatewayOf("new"), svc("same-node")}},
		{"a gateway takes the address of another", event(gateway("a-new", "172.18.0.3/16")),
			[]nb.Owner{node("a-new"), gatewayOf("a-new"), gatewayOf("n0"), svc("same-node")}},
		{"a node names the chassis of another", event(withChassis(gateway("a-new", "172.18.0.5/16"), "chassis-0")),
			[]nb.Owner{node("a-new"), gatewayOf("a-new"), svc("same-node")}},
		{"a node leaves", cluster.Event{Ref: (&cluster.Node{Name: "new"}).Ref()},
			[]nb.Owner{node("new"), svc("same-node")}},
		{"a pod comes", event(&cluster.Pod{Name: name, Node: "n0"}),
			[]nb.Owner{owner(names.KindNamespace, "default"), pod("default/new")}},
		{"a pod goes", cluster.Event{Ref: cluster.Ref{Kind: cluster.KindPod, Name: name}},
			[]nb.Owner{owner(names.KindNamespace, "default"), pod("default/new")}},
		{"a pod has the address of health checks", event(&cluster.Pod{Name: name, Node: "n0",
			Annotated: annotation.MarshalPodNetworks(annotation.PodNetwork{
				IPs: []netip.Prefix{netip.MustParsePrefix("10.128.1.254/23")}})}),
			[]nb.Owner{owner(names.KindNamespace, "default"), pod("default/new"), svc("checked")}},
		{"a pod's limit comes", event(&cluster.Pod{Name: cluster.Name{Namespace: "default", Name: "p-0-0"}, Node: "n0",
			Bandwidth: cluster.Bandwidth{Egress: 1000}}),
			[]nb.Owner{pod("default/p-0-0")}},
		{"a service comes", event(service(name)), []nb.Owner{svc("new")}},
		{"a service takes the address of another", event(&cluster.Service{Name: name,
			ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.7")}, Ports: service(name).Ports}),
			[]nb.Owner{svc("new"), svc("s7")}},
		{"a service names the address of another and does not get it",
			event(&cluster.Service{Name: name, ClusterIPs: service(name).ClusterIPs,
				ExternalIPs: []netip.Addr{netip.MustParseAddr("10.96.0.7")}, Ports: service(name).Ports}),
			[]nb.Owner{svc("new")}},
		{"its endpoints change", event(&cluster.EndpointSlice{Name: name, Service: "new"}), []nb.Owner{svc("new")}},
		{"its endpoints go to another service", event(&cluster.EndpointSlice{Name: name, Service: "s0"}),
			[]nb.Owner{svc("new"), svc("s0")}},
		{"a node joins in a zone that is there", event(&cluster.Node{Name: "new", Zone: "a"}),
			[]nb.Owner{node("new"), svc("same-node")}},
		{"a node with a local endpoint joins", event(&cluster.Node{Name: "n777"}),
			[]nb.Owner{node("n777"), svc("checked"), svc("from-outside"), svc("local"), svc("same-node")}},
		{"the last node of a zone goes to another", event(&cluster.Node{Name: "n2", Zone: "a"}),
			[]nb.Owner{owner(names.KindZone, "b"), node("n2"), svc("same-node"), svc("same-zone")}},
		{"a namespace comes", event(&cluster.Namespace{Name: "new"}), []nb.Owner{owner(names.KindNamespace, "new")}},
	}
}

// The fan-out laws: what one change dirties does not grow with the cluster.
func TestFanOut(t *testing.T) {
	name := cluster.Name{Namespace: "default", Name: "new"}
	for _, c := range fanOuts() {
		m := bigMaster(t, 50, 10, 50)
		m.nearby(t)
		if first := m.affected(t, event(gateway("n0", "172.18.0.3/16"))); len(first) != 1+50+1 {
			t.Fatalf("the first gateway dirties %d owners, want itself, all 50 nodes, whose pods now leave another way, and "+
				"the service whose answers would", len(first))
		}
		m.affected(t, event(gateway("n9", "172.18.0.9/16")))
		if c.e.New == nil {
			if c.e.Ref.Kind == cluster.KindNode {
				m.affected(t, event(&cluster.Node{Name: "new"}))
			} else {
				m.affected(t, event(&cluster.Pod{Name: name, Node: "n0"}))
			}
		}
		if slice, ok := c.e.New.(*cluster.EndpointSlice); ok && slice.Service == "s0" {
			m.affected(t, event(&cluster.EndpointSlice{Name: name, Service: "new"}))
		}
		if got := m.affected(t, c.e); !slices.Equal(got, c.want) {
			t.Errorf("%s: dirties %v, want %v", c.what, got, c.want)
		}
	}
}

// nearby adds what differs per node or zone: n1 and n2 are each alone in their zone, and there is a service of each
// kind.
func (m *master) nearby(t *testing.T) {
	t.Helper()
	for _, o := range nearbyObjects() {
		m.affected(t, event(o))
	}
}

func nearbyObjects() []cluster.Object {
	out := []cluster.Object{&cluster.Node{Name: "n1", Zone: "a"}, &cluster.Node{Name: "n2", Zone: "b"}}
	for i, e := range []cluster.Endpoint{{ForZones: "a"}, {ForNodes: "n1"}, {Node: "n777"}, {Node: "n777"},
		{Node: "n777"}} {
		n := cluster.Name{Namespace: "default", Name: []string{"same-zone", "same-node", "local", "from-outside",
			"checked"}[i]}
		svc := service(n)
		svc.ClusterIPs, svc.InternalLocal = []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 254, byte(i)})}, i == 2
		switch i {
		case 3:
			svc.ExternalLocal, svc.Ports[0].NodePort = true, 30080
		case 4:
			svc.HealthCheck = annotation.HealthCheck{Interval: 5, Timeout: 20, Successes: 3, Failures: 3}
		}
		other := cluster.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 128, 0, 4}), Conditions: cluster.Ready}
		e.Addr, e.Conditions = netip.AddrFrom4([4]byte{10, 128, 0, 3}), cluster.Ready
		switch i {
		case 0:
			other.ForZones = "b"
		case 1:
			other.ForNodes = "n2"
		}
		out = append(out, svc, &cluster.EndpointSlice{Name: n, Service: n.Name,
			Ports: []cluster.EndpointPort{{Protocol: cluster.TCP, Port: 8080}}, Endpoints: []cluster.Endpoint{e, other}})
	}
	return out
}

// A service that differs per node or zone has a row for each zone or node with endpoints of its own, and one more. Only
// the lists of nodes that hints for nodes make grow with the cluster.
func TestRowsOfNearbyServices(t *testing.T) {
	for _, c := range []struct {
		service         string
		rows            int
		members, growth int // memberships with 10 nodes, and more of them for each further node
	}{
		{"same-zone", 3, 3, 0}, // zones a, b and the nodes without
		{"same-node", 3, 10, 1},
		{"local", 0, 0, 0}, // on no node that is there
		{"from-outside", 1, 1, 0},
		{"checked", 2, 2, 0}, // with its health check
	} {
		var members []int
		for _, nodes := range []int{10, 30} {
			m := bigMaster(t, nodes, 0, 0)
			m.nearby(t)
			want, err := m.Rows(nb.Owner{Kind: names.KindService, Name: "default/" + c.service})
			rows := want.Rows
			n := 0
			for _, r := range rows {
				n += len(r.ListIn)
			}
			if members = append(members, n); err != nil || len(rows) != c.rows {
				t.Errorf("%s: %d rows (%v) with %d nodes, want %d", c.service, len(rows), err, nodes, c.rows)
			}
		}
		if members[0] != c.members || members[1] != c.members+20*c.growth {
			t.Errorf("%s: %v memberships with 10 and 30 nodes, want %d and %d more for each", c.service, members, c.members,
				c.growth)
		}
	}
}

// sizes counts the rows and memberships of each owner.
func sizes(t *testing.T, m *master) map[nb.Owner]int {
	t.Helper()
	out := map[nb.Owner]int{}
	for o, rows := range full(t, m.Core) {
		for _, r := range rows {
			out[o] += 1 + len(r.ListIn)
		}
	}
	return out
}

// No owner's rows grow with the number of nodes.
func TestRowsPerOwnerDoNotGrowWithNodes(t *testing.T) {
	small, big := sizes(t, bigMaster(t, 2, 2, 3)), sizes(t, bigMaster(t, 100, 2, 3))
	if len(small) != 1+1+2+4+3 {
		t.Errorf("%d owners, want 11: %v", len(small), small)
	}
	for o, n := range small {
		if big[o] != n {
			t.Errorf("%s: %d rows and memberships with 2 nodes, %d with 100", o, n, big[o])
		}
	}
}

// The change of one endpoint changes one row. Its bytes are those of the VIPs with their backends, whatever the number
// of services and nodes.
func TestAnEndpointChangesOneRow(t *testing.T) {
	m := bigMaster(t, 20, 1, 500)
	n := cluster.Name{Namespace: "default", Name: "s7"}
	slice := func(i byte, c cluster.Conditions) *cluster.EndpointSlice {
		e := &cluster.EndpointSlice{Name: n, Service: n.Name,
			Ports: []cluster.EndpointPort{{Protocol: cluster.TCP, Port: 8080}}}
		for j := range byte(10) {
			e.Endpoints = append(e.Endpoints, cluster.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 244, 100, 100 + j}),
				Conditions: cluster.Ready})
		}
		e.Endpoints[i].Conditions = c
		return e
	}
	m.dirty(t, event(slice(3, 0))) // the row comes
	for _, c := range []struct {
		what  string
		slice cluster.Object
	}{
		{"an endpoint becomes ready", slice(3, cluster.Ready)}, {"an endpoint is not ready any more", slice(3, 0)},
		{"all go", &cluster.EndpointSlice{Name: n, Service: n.Name}}, {"all come", slice(0, cluster.Ready)},
	} {
		what, plans := c.what, m.dirty(t, event(c.slice))
		if len(plans) != 1 || plans[0].Ops() > 2 || len(plans[0].Rows) != 1 || plans[0].Rows[0].Verb != nb.Update {
			t.Fatalf("%s: plans %v, want one row's change", what, plans)
		}
		bytes := 0
		for _, c := range plans[0].Rows[0].Columns {
			for k, v := range c.Put {
				bytes += len(k) + len(v)
			}
			for _, k := range c.Drop {
				bytes += len(k) + len(c.Was[k])
			}
		}
		if bytes == 0 || bytes > 600 {
			t.Errorf("%s: %d bytes change, want at most 600", what, bytes)
		}
	}
}

// dirty lists the plans that an event leads to, and applies them.
func (m *master) dirty(t *testing.T, e cluster.Event) []nb.Plan {
	t.Helper()
	need := nb.Owner{Kind: names.KindCluster, Name: names.ClusterOwner} // what lists the rows
	b := m.Plan(m.db, append(m.affected(t, e), need), nil)
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	plans := b.Plans
	if err := m.db.Apply(plans...); err != nil {
		t.Fatal(err)
	}
	return plans
}

// The policies for replies of a Local service are one row a node with endpoints. An endpoint changes one of them, and
// its conditions change none. Without a gateway there are none.
func TestReplies(t *testing.T) {
	m := bigMaster(t, 20, 1, 20)
	n := cluster.Name{Namespace: "default", Name: "s7"}
	svc := service(n)
	svc.ClusterIPs, svc.ExternalLocal, svc.Ports[0].NodePort = []netip.Addr{netip.MustParseAddr("10.96.0.7")}, true, 30080
	slice := func(endpoints int, c cluster.Conditions) *cluster.EndpointSlice {
		e := &cluster.EndpointSlice{Name: n, Service: n.Name,
			Ports: []cluster.EndpointPort{{Protocol: cluster.TCP, Port: 8080}}}
		for i := range endpoints {
			node := fmt.Sprintf("n%d", i%10)
			a := m.State.NodeSubnets[node][0].Addr().As4()
			a[3] = byte(100 + i)
			e.Endpoints = append(e.Endpoints, cluster.Endpoint{Addr: netip.AddrFrom4(a), Node: node, Conditions: c})
		}
		return e
	}
	policies := func(e cluster.Event) (changed, all int) {
		for _, p := range m.dirty(t, e) {
			for _, r := range p.Rows {
				if r.Key.Table == nbdb.LogicalRouterPolicyTable && r.Key.Owner.Kind == names.KindService {
					changed++
				}
			}
		}
		for _, row := range m.db.Rows(nbdb.LogicalRouterPolicyTable) {
			if p := row.(*nbdb.LogicalRouterPolicy); p.Priority == names.PolicyReply {
				all++
			}
		}
		return changed, all
	}
	for _, c := range []struct {
		what         string
		e            cluster.Event
		changed, all int
	}{
		{"endpoints on ten nodes", event(slice(30, cluster.Ready)), 0, 0},
		{"the policy becomes Local", event(svc), 0, 0},
		{"a gateway comes", event(gateway("n0", "172.18.0.3/16")), 10, 10},
		{"an endpoint comes", event(slice(31, cluster.Ready)), 1, 10},
		{"all terminate", event(slice(31, cluster.Serving|cluster.Terminating)), 0, 10},
		{"those of one node go, and one of another", event(slice(9, cluster.Ready)), 10, 9},
		{"the gateway goes", event(&cluster.Node{Name: "n0"}), 9, 0},
	} {
		if changed, all := policies(c.e); changed != c.changed || all != c.all {
			t.Errorf("%s: %d policies change and %d are there, want %d and %d", c.what, changed, all, c.changed, c.all)
		}
	}
}
