package reconcile

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const (
	backends = 10 // of every service, in each family
	zones    = 3  // that nodes and endpoints are in

	// fillDeadline bounds writing everything, which takes some seconds.
	fillDeadline = 3 * time.Minute

	maxJoinRows     = 10   // that change when a node joins
	maxEndpointOps  = 2    // for one endpoint
	maxEndpointWire = 1024 // bytes that are sent for it
	maxServiceRows  = 4    // that change with a service, whose answer is the same everywhere
	maxZoneRows     = 3 * zones
	maxLocalRows    = 2 * backends // a row for each node with endpoints, and its switch

	// The bytes that a client reads for one service of both families with one port: two VIPs, ten backends each, and the
	// row around them.
	maxServiceBytes = 1024
	maxNodeBytes    = 3072
)

// scale is a loop on a real server, with many nodes and services.
type scale struct {
	*bed
	nodes, services int
	feed            *feed
	relay           *relay
	barriers        int
}

// scaleConfig has room for 1,024 nodes and for 65,536 cluster IPs, all in one namespace.
func scaleConfig() config.Cluster {
	c := bedConfig()
	c.Services.MaxNamespaceVIPs = 0
	c.Subnets[0].CIDR = netip.MustParsePrefix("10.128.0.0/14")
	return c
}

func newScale(t *testing.T, nodes, services int) *scale {
	t.Helper()
	s := &scale{nodes: nodes, services: services, feed: newFeed(&cluster.Namespace{Name: "ns", UID: "ns"})}
	for i := range nodes {
		s.feed.put(&cluster.Node{Name: fmt.Sprintf("n%04d", i), UID: fmt.Sprintf("n%04d", i),
			ChassisID: fmt.Sprintf("c0ffee00-0000-4000-8000-%012d", i), Zone: zone(i)})
	}
	for i := range services {
		svc := scaleService(fmt.Sprintf("web-%05d", i), i)
		s.feed.put(svc, scaleSlice(svc, i, true), scaleSlice(svc, i, false))
	}
	s.relay = startRelay(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]), nil)
	s.bed = s.start(t)
	return s
}

func (s *scale) start(t *testing.T) *bed {
	t.Helper()
	b := newBedOf(t, s.relay.Remote, s.feed, scaleConfig(), Config{Log: slog.New(slog.DiscardHandler)})
	select {
	case <-b.loop.InSync():
	case <-time.After(fillDeadline):
		t.Fatalf("not in sync after %s, with %v owners dirty", fillDeadline, testutil.ToFloat64(b.metrics.Dirty))
	}
	return b
}

// scaleService is a service of both families; i is below 65,536.
func scaleService(name string, i int) *cluster.Service {
	return &cluster.Service{Name: cluster.Name{Namespace: "ns", Name: name}, UID: name, Type: cluster.ClusterIP,
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}),
			netip.MustParseAddr(fmt.Sprintf("fd02::%x", 1+i))},
		Ports: []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80}}}
}

// zone is the zone of the i-th node or endpoint.
func zone(i int) string { return fmt.Sprintf("zone-%d", i%zones) }

// near is a slice whose endpoints are on one node each, with hints as asked.
func near(e *cluster.EndpointSlice, byZone, byNode bool) *cluster.EndpointSlice {
	out := *e
	out.Endpoints = slices.Clone(e.Endpoints)
	for j := range out.Endpoints {
		ep := &out.Endpoints[j]
		ep.Node, ep.Zone = fmt.Sprintf("n%04d", j), zone(j)
		if byZone {
			ep.ForZones = ep.Zone
		}
		if byNode {
			ep.ForNodes = ep.Node
		}
	}
	return &out
}

// scaleSlice is a service's endpoints of one family, without the one at position gone, if there is one.
func scaleSlice(svc *cluster.Service, i int, v4 bool, gone ...int) *cluster.EndpointSlice {
	e := &cluster.EndpointSlice{Name: svc.Name, Service: svc.Name.Name, Ports: []cluster.EndpointPort{
		{Name: "http", Protocol: cluster.TCP, Port: 8080}, {Name: "https", Protocol: cluster.TCP, Port: 8443}}}
	e.Name.Name += map[bool]string{true: "-v4", false: "-v6"}[v4]
	for j := range backends {
		a := netip.AddrFrom4([4]byte{10, 128 + byte(j&3), byte(i), byte(3 + j)})
		if !v4 {
			a = netip.MustParseAddr(fmt.Sprintf("fd01:0:0:%x::%x", 1+i&0x3ff, 3+j))
		}
		conditions := cluster.Ready | cluster.Serving
		for _, g := range gone {
			if g == j {
				conditions = cluster.Terminating
			}
		}
		e.Endpoints = append(e.Endpoints, cluster.Endpoint{Addr: a, Conditions: conditions})
	}
	return e
}

// footprint is what one change costs. It does not depend on the number of digits in a request's id.
type footprint struct {
	Operations int
	Bytes      int // of the operations
	Rows       int // that the server says have changed
	request    int // bytes of the whole request; a longer id makes it longer
}

// change is one event in a cluster.
type change struct {
	what string
	do   func(*feed)
}

// changes happen one after the other, each to an object of its own, so that they cost the same in a cluster of any
// size.
func changes() []change {
	node := &cluster.Node{Name: "joiner", UID: "joiner", Zone: zone(0), ChassisID: "c0ffee00-0000-4000-8000-00000000ffff",
		Annotated: `{"default":["10.131.255.0/24","fd01:0:0:ffff::/64"]}`}
	svc := scaleService("changing", 0xfff0)
	more := *svc
	more.Ports = append(slices.Clone(svc.Ports), cluster.ServicePort{Name: "https", Protocol: cluster.TCP, Port: 443})
	outside := more
	outside.Type, outside.ExternalIPs = cluster.LoadBalancer, []netip.Addr{netip.MustParseAddr("192.0.2.1"),
		netip.MustParseAddr("2001:db8::1")}
	sticky := outside
	sticky.AffinitySeconds = 60
	put := func(o ...cluster.Object) func(*feed) { return func(f *feed) { f.put(o...) } }
	drop := func(o ...cluster.Object) func(*feed) { return func(f *feed) { f.drop(o...) } }
	v4, v6 := scaleSlice(svc, 0xfff0, true), scaleSlice(svc, 0xfff0, false)
	return []change{
		{"a node joins", put(node)},
		{"a service comes", put(svc)},
		{"its endpoints come", put(v4, v6)},
		{"one endpoint goes (IPv4)", put(scaleSlice(svc, 0xfff0, true, 7))},
		{"one endpoint comes (IPv4)", put(v4)},
		{"one endpoint goes (IPv6)", put(scaleSlice(svc, 0xfff0, false, 7))},
		{"one endpoint comes (IPv6)", put(v6)},
		{"the service gets a second port", put(&more)},
		{"one endpoint of two ports goes (IPv4)", put(scaleSlice(svc, 0xfff0, true, 7))},
		{"one endpoint of two ports goes (IPv6)", put(scaleSlice(svc, 0xfff0, false, 7))},
		{"the service gets external IPs", put(&outside)},
		{"the service gets session affinity", put(&sticky)},
		{"a service goes", drop(&sticky, v4, v6)},
		{"a node leaves", drop(node)},
	}
}

// nearChanges are changes of services whose backends depend on the client's node, and of a node while there are such.
func nearChanges() []change {
	node := &cluster.Node{Name: "joiner", UID: "joiner", Zone: zone(0), ChassisID: "c0ffee00-0000-4000-8000-00000000ffff",
		Annotated: `{"default":["10.131.255.0/24","fd01:0:0:ffff::/64"]}`}
	byZone, local := scaleService("by-zone", 0xfff1), scaleService("local", 0xfff2)
	local.InternalLocal = true
	put := func(o ...cluster.Object) func(*feed) { return func(f *feed) { f.put(o...) } }
	drop := func(o ...cluster.Object) func(*feed) { return func(f *feed) { f.drop(o...) } }
	slice := func(s *cluster.Service, i int, v4 bool, gone ...int) *cluster.EndpointSlice {
		return near(scaleSlice(s, i, v4, gone...), s == byZone, false)
	}
	return []change{
		{"by zone: a service comes with its endpoints", put(byZone, slice(byZone, 0xfff1, true),
			slice(byZone, 0xfff1, false))},
		{"by zone: one endpoint goes (IPv4)", put(slice(byZone, 0xfff1, true, 7))},
		{"by zone: one endpoint comes (IPv4)", put(slice(byZone, 0xfff1, true))},
		{"by zone: one endpoint goes (IPv6)", put(slice(byZone, 0xfff1, false, 7))},
		{"Local: a service comes with its endpoints", put(local, slice(local, 0xfff2, true), slice(local, 0xfff2, false))},
		{"Local: one endpoint goes (IPv4)", put(slice(local, 0xfff2, true, 7))},
		{"Local: one endpoint comes (IPv4)", put(slice(local, 0xfff2, true))},
		{"a node joins when there are such services", put(node)},
		{"a node leaves when there are such services", drop(node)},
		{"by zone: a service goes", drop(byZone)},
		{"Local: a service goes", drop(local)},
	}
}

// The cost of one change is small and does not depend on the number of nodes and services.
func TestServicesAtScale(t *testing.T) {
	small, full := newScale(t, 10, 100), newScale(t, 1000, 10000)
	small.checkContents(t)
	full.checkContents(t)
	for _, c := range slices.Concat(changes(), nearChanges()) {
		want, got := small.measure(t, c), full.measure(t, c)
		small, big := want, got
		small.request, big.request = 0, 0
		if big != small {
			t.Errorf("%s: %+v with %d nodes and %d services, %+v with %d and %d", c.what, big, 1000, 10000, small, 10, 100)
		}
		if most := maxRows(c.what); got.Rows > most {
			t.Errorf("%s: %d rows change, want at most %d", c.what, got.Rows, most)
		}
		if strings.Contains(c.what, "one endpoint") && (got.Operations > maxEndpointOps || got.Rows != 1 ||
			got.request > maxEndpointWire) {
			t.Errorf("%s: %d operations, %d rows and %d bytes, want at most %d operations, one row and %d bytes", c.what,
				got.Operations, got.Rows, got.request, maxEndpointOps, maxEndpointWire)
		}
	}
	read := full.restart(t)
	if most := full.services*maxServiceBytes + full.nodes*maxNodeBytes; read > most {
		t.Errorf("%d nodes, %d services: a client reads %d bytes, want at most %d", full.nodes, full.services, read, most)
	}
	// Hints for nodes are the exception. Every node's switch lists a load balancer of such a service, so that adding or
	// removing one concerns all nodes.
	for _, s := range []*scale{small, full} {
		s.byNode(t)
	}
}

// maxRows is how many rows one change may alter.
func maxRows(what string) int {
	switch {
	case strings.HasPrefix(what, "a node"):
		return maxJoinRows
	case strings.HasPrefix(what, "by zone"):
		return maxZoneRows
	case strings.HasPrefix(what, "Local"):
		return maxLocalRows
	}
	return maxServiceRows
}

// byNode adds a service whose endpoints are hinted for a node each: a load balancer for each of these nodes, one for
// all others, and a slot on every switch. A change of an endpoint concerns the rows of its node and of the others.
func (s *scale) byNode(t *testing.T) {
	t.Helper()
	svc := scaleService("by-node", 0xfff3)
	v4, v6 := near(scaleSlice(svc, 0xfff3, true), false, true), near(scaleSlice(svc, 0xfff3, false), false, true)
	less := near(scaleSlice(svc, 0xfff3, true, 7), false, true)
	others := 0
	if s.nodes > backends {
		others = 1
	}
	come := s.measure(t, change{"by node: a service comes with its endpoints", func(f *feed) { f.put(svc, v4, v6) }})
	if want := backends + others + s.nodes; come.Rows != want || come.Operations != want {
		t.Errorf("by node: a service that comes to %d nodes: %d operations and %d rows, want %d", s.nodes, come.Operations,
			come.Rows, want)
	}
	node := &cluster.Node{Name: "joiner", UID: "again", Zone: zone(0), ChassisID: "c0ffee00-0000-4000-8000-00000000ffff"}
	if joins := s.measure(t, change{"by node: a node joins", func(f *feed) { f.put(node) }}); joins.Rows > maxJoinRows {
		t.Errorf("by node: %d rows change when a node joins, want at most %d", joins.Rows, maxJoinRows)
	}
	if goes := s.measure(t, change{"by node: one endpoint goes", func(f *feed) { f.put(less) }}); goes.Rows > 4 {
		t.Errorf("by node: %d rows change for an endpoint, want at most 4", goes.Rows)
	}
}

// measure makes a change and waits for everything that follows. A namespace that is added after it is the only other
// thing that is written.
func (s *scale) measure(t *testing.T, c change) footprint {
	t.Helper()
	before := s.relay.Wire()
	c.do(s.feed)
	s.await(t, c.what, len(before.Transactions)+1)
	middle := s.relay.Wire()
	s.barriers++
	s.feed.put(&cluster.Namespace{Name: fmt.Sprintf("after-%d", s.barriers)})
	s.await(t, "a namespace after "+c.what, len(before.Transactions)+2)
	after := s.relay.Wire()
	if got := len(after.Transactions[len(before.Transactions)+1].Operations); got != 2 {
		t.Errorf("%s: %d operations follow for a namespace, want 2, for its address sets", c.what, got)
	}
	tx := after.Transactions[len(before.Transactions)]
	f := footprint{Operations: len(tx.Operations), Rows: middle.Changed - before.Changed, request: tx.Request}
	for _, op := range tx.Operations {
		f.Bytes += len(op)
	}
	t.Logf("%d nodes, %d services: %s: %d operations, %d rows, %d bytes sent, %d answered, %d notified", s.nodes,
		s.services, c.what,
		f.Operations, f.Rows, tx.Request, tx.Answer, middle.Notified-before.Notified)
	return f
}

// await waits for the n-th transaction since the start.
func (s *scale) await(t *testing.T, what string, n int) {
	t.Helper()
	testkit.Eventually(t, what, func() string {
		if have := len(s.relay.Wire().Transactions); have < n {
			return fmt.Sprintf("%d transactions so far, want %d", have, n)
		}
		return ""
	})
}

// checkContents counts the rows, and the bytes in which a client reads them.
func (s *scale) checkContents(t *testing.T) {
	t.Helper()
	want := map[string]int{
		nbdb.LoadBalancerTable: s.services, nbdb.LoadBalancerGroupTable: 1 + zones, nbdb.LogicalSwitchTable: 1 + s.nodes,
		nbdb.LogicalSwitchPortTable: 1 + 2*s.nodes, nbdb.LogicalRouterPortTable: 1 + s.nodes, nbdb.LogicalRouterTable: 1,
		nbdb.LogicalRouterStaticRouteTable: 2 * s.nodes, nbdb.ACLTable: 7 + s.nodes, nbdb.PortGroupTable: 1,
		nbdb.AddressSetTable:          2,
		nbdb.LogicalRouterPolicyTable: 3,
	}
	for _, table := range nb.NewSchema().Tables() {
		if have := len(strings.Fields(s.nbctl("--bare", "--columns=_uuid", "list", table))); have != want[table] {
			t.Errorf("%d nodes, %d services: %d rows in %s, want %d", s.nodes, s.services, have, table, want[table])
		}
	}
}

// restart starts another loop, which reads everything once and writes nothing. It returns how many bytes the loop
// reads.
func (s *scale) restart(t *testing.T) int {
	t.Helper()
	s.stop()
	s.feed.put(slices.Collect(maps.Values(s.feed.objects))...) // as a watch lists them
	before := s.relay.Wire()
	s.bed = s.start(t)
	after := s.relay.Wire()
	for _, tx := range after.Transactions[len(before.Transactions):] {
		if len(tx.Operations) == 1 && strings.Contains(string(tx.Operations[0]), `"where":[["nb_cfg","==",0]]`) {
			continue // it only changes a database that is not marked as filled
		}
		t.Errorf("a restart with everything in place wrote %d operations, want none: %.500s", len(tx.Operations),
			tx.Operations)
	}
	read := after.Received - before.Received
	t.Logf("%d nodes, %d services: a client reads %d bytes", s.nodes, s.services, read)
	return read
}
