package reconcile

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func node(name string) *cluster.Node { return &cluster.Node{Name: name, UID: "uid-" + name} }

func pod(name, node string) *cluster.Pod {
	return &cluster.Pod{Name: cluster.Name{Namespace: "default", Name: name}, UID: "uid-" + name, Node: node}
}

func someCluster() []cluster.Object {
	return []cluster.Object{
		&cluster.Namespace{Name: "default", UID: "uid-default"}, node("n1"), node("n2"), pod("a", "n1"), pod("b", "n2"),
		&cluster.Service{Name: cluster.Name{Namespace: "default", Name: "web"}, UID: "uid-web",
			ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.10")},
			Ports:      []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80}}},
		&cluster.EndpointSlice{Name: cluster.Name{Namespace: "default", Name: "web-1"}, Service: "web",
			Ports:     []cluster.EndpointPort{{Name: "http", Protocol: cluster.TCP, Port: 8080}},
			Endpoints: []cluster.Endpoint{{Addr: netip.MustParseAddr("10.244.0.3"), Conditions: cluster.Ready}}},
	}
}

func TestLoopOnRealServers(t *testing.T) {
	for ovn, schema := range testkit.NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			remote := testkit.StartOVSDB(t, schema)
			b := startBed(t, remote, newFeed(someCluster()...))
			if got, want := b.names("Logical_Switch")(), "join n1 n2"; got != want {
				t.Errorf("switches %q, want %q", got, want)
			}
			if got, want := b.nbctl("lsp-get-addresses", "default_a"), "0a:58:0a:f4:00:03 10.244.0.3 fd01::3"; got != want {
				t.Errorf("addresses %q, want %q", got, want)
			}
			if got, want := b.nbctl("--bare", "--columns=vips", "list", "Load_Balancer"),
				"10.96.0.10:80=10.244.0.3:8080"; got != want {
				t.Errorf("vips %q, want %q", got, want)
			}
			b.follow()
			b.restart()
		})
	}
}

// follow adds, moves and removes pods.
func (b *bed) follow() {
	b.feed.put(pod("c", "n1"))
	b.eventually("ports of n1", "default_a default_c k8s-n1 stor-n1", b.portsOf("n1"))
	moved := pod("c", "n2")
	moved.UID = "another"
	b.feed.put(moved)
	b.eventually("ports of n1", "default_a k8s-n1 stor-n1", b.portsOf("n1"))
	b.eventually("ports of n2", "default_b default_c k8s-n2 stor-n2", b.portsOf("n2"))
	b.feed.drop(moved)
	b.eventually("ports of n2", "default_b k8s-n2 stor-n2", b.portsOf("n2"))
	b.feed.drop(node("n2"))
	b.eventually("switches", "join n1", b.names("Logical_Switch"))
	b.feed.put(node("n2"))
	b.eventually("switches", "join n1 n2", b.names("Logical_Switch"))
	b.eventually("ports of n2", "default_b k8s-n2 stor-n2", b.portsOf("n2"))
}

func (b *bed) portsOf(sw string) func() string {
	return func() string {
		var out []string
		for line := range strings.Lines(b.nbctl("lsp-list", sw)) {
			_, name, _ := strings.Cut(strings.TrimSpace(line), "(")
			out = append(out, strings.TrimSuffix(name, ")"))
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
}

// restart stops the loop and starts another: nothing may be written, not even the annotations that the pods now have.
func (b *bed) restart() {
	b.t.Helper()
	b.stop()
	objects := slices.Collect(maps.Values(b.feed.objects))
	before := b.dump()
	again := startBed(b.t, b.remote, newFeed(objects...))
	if got := testutil.ToFloat64(again.metrics.Operations); got != 0 {
		b.t.Errorf("a restart on an unchanged cluster sent %v operations, want 0", got)
	}
	if again.feed.patches != 0 {
		b.t.Errorf("a restart on an unchanged cluster patched %d objects, want 0", again.feed.patches)
	}
	if got := again.dump(); got != before {
		b.t.Errorf("a restart changed the database:\n%s\nwant\n%s", got, before)
	}
}

func (b *bed) dump() string {
	b.t.Helper()
	return testkit.Run(b.t, "ovsdb-client", "-f", "csv", "dump", b.remote, "OVN_Northbound")
}

// A machine's clock that is set does not make a loop look stuck: see time's words about monotonic clocks.
func TestTurnedIsNoClockTime(t *testing.T) {
	if at := New(Config{}).Turned().String(); !strings.Contains(at, " m=") {
		t.Errorf("the loop turned at %s, want a time with a monotonic reading", at)
	}
}

// TestRepair breaks things by hand, each as an operator would.
func TestRepair(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	b := startBed(t, remote, newFeed(someCluster()...))
	want := b.content()
	const theLB = "UUID of the load balancer" // which changes when it is put back
	for _, args := range [][]string{
		{"lsp-del", "default_a"},
		{"lsp-del", "stor-n1"},
		{"lrp-del", "rtos-n1"},
		{"lb-del", "Service_default/web_TCP"},
		{"ls-del", "n1"},
		{"lr-del", "ovn_cluster_router"},
		{"lr-route-del", "ovn_cluster_router"},
		{"set", "logical_switch_port", "default_a", `addresses="0a:00:00:00:00:01 1.2.3.4"`},
		{"clear", "logical_switch_port", "default_a", "port_security"},
		{"set", "logical_switch_port", "default_a", "options:requested-chassis=elsewhere"},
		{"set", "logical_switch_port", "default_a", "options:extra=1"},
		// the mark of another pod
		{"set", "logical_switch_port", "default_a", "external_ids:k8s.ovn.org/owner-name=default/b"},
		// of a kind that we do not know
		{"set", "logical_switch_port", "default_a", "external_ids:k8s.ovn.org/owner-type=Nobody"},
		{"clear", "logical_switch_port", "default_a", "external_ids"},
		{"set", "load_balancer", theLB, `vips:"10.96.0.10:80"="1.2.3.4:1"`},
		{"clear", "load_balancer", theLB, "external_ids"},
		{"clear", "load_balancer_group", "clusterLBGroup", "load_balancer"},
		{"set", "load_balancer_group", "clusterLBGroup", "name=stolen"},
		{"clear", "logical_switch", "n1", "load_balancer_group"},
		{"add", "address_set", "ns_default_v4", "addresses", "1.2.3.4"},
		{"destroy", "address_set", "ns_default_v6"},
		{"set", "logical_router", "ovn_cluster_router", "name=renamed"},
		{"set", "logical_router_port", "rtos-n1", "networks=1.2.3.4/24"}, // a set that may not be empty
		{"set", "logical_router_port", "rtoj-ovn_cluster_router", "mac=\"0a:00:00:00:00:01\""},
	} {
		if i := slices.Index(args, theLB); i >= 0 {
			args[i] = b.nbctl("--bare", "--columns=_uuid", "find", "load_balancer", "name=Service_default/web_TCP")
		}
		b.nbctl(args...)
		b.eventually("content after "+strings.Join(args, " "), want, b.content)
	}
	if got := testutil.ToFloat64(b.metrics.Repairs.WithLabelValues("Pod")); got == 0 {
		t.Error("no repair of a pod was counted")
	}
	if got := testutil.ToFloat64(b.metrics.Differences); got != 0 {
		t.Errorf("verification found %v differences, want 0", got)
	}
	derived := names.ClusterRow(nbdb.LogicalRouterTable, names.RoleRouter)
	if router := b.nbctl("--bare", "--columns=_uuid", "list", "logical_router"); router != names.StandIn(derived, 1) {
		t.Errorf("the router that was deleted is %s now, want the first stand-in of %s", router, derived)
	}
	b.restart()
}

func anyUUID() *regexp.Regexp { return regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`) }

// content is what our rows hold, without row order and UUIDs: a row that was just deleted comes back under another
// UUID.
func (b *bed) content() string {
	var all []string
	uuid := anyUUID()
	for _, table := range nb.NewSchema().Tables() {
		out := testkit.Run(b.t, "ovsdb-client", "-f", "csv", "dump", b.remote, "OVN_Northbound", table)
		lines := slices.Collect(strings.Lines(uuid.ReplaceAllString(out, "UUID")))
		slices.Sort(lines)
		all = append(all, lines...)
	}
	// The record of what was freed has times.
	all = slices.DeleteFunc(all, func(l string) bool { return strings.Contains(l, names.FreedAddressSet) })
	return strings.Join(all, "")
}

// TestForeignRowsStay checks that rows without our mark are never touched.
func TestForeignRowsStay(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["23.03"])
	nbctl := func(args ...string) string {
		return strings.TrimSpace(testkit.Run(t, "ovn-nbctl", append([]string{"--db=" + remote}, args...)...))
	}
	nbctl("ls-add", "theirs", "--", "lsp-add", "theirs", "p1", "--", "lr-add", "r1", "--", "lb-add", "lb1", "1.1.1.1:80",
		"2.2.2.2:80",
		"--", "create", "address_set", "name=ns_x", "addresses=1.2.3.4")
	b := startBed(t, remote, newFeed(someCluster()...))
	b.nbctl("lsp-add", "n1", "guest", "--", "set", "logical_switch", "n1", "external_ids:theirs=1")
	for _, o := range someCluster()[1:] {
		b.feed.drop(o)
	}
	b.eventually("switches", "join theirs", b.names("Logical_Switch"))
	b.eventually("load balancers", "lb1", b.names("Load_Balancer"))
	b.eventually("routers", "ovn_cluster_router r1", b.names("Logical_Router"))
	b.eventually("sets", "northbound_freed ns_default_v4 ns_default_v6 ns_x", b.names("Address_Set"))
}

// TestRouterOfAnotherIsUsed checks that a router tagged k8s-cluster-router=yes is adopted with its name.
func TestRouterOfAnotherIsUsed(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	testkit.Run(t, "ovn-nbctl", "--db="+remote, "lr-add", "kube-master", "--", "set", "logical_router", "kube-master",
		"external_ids:k8s-cluster-router=yes")
	b := startBed(t, remote, newFeed(someCluster()...))
	if got, want := b.names("Logical_Router")(), "kube-master"; got != want {
		t.Errorf("routers %q, want %q", got, want)
	}
	if got, want := b.names("Logical_Router_Port")(), "rtoj-kube-master rtos-n1 rtos-n2"; got != want {
		t.Errorf("router ports %q, want %q", got, want)
	}
}

// TestOneBadOwnerStopsNobody has a name in use by somebody else's row. The server rejects the whole batch until the
// owner to blame is alone.
func TestOneBadOwnerStopsNobody(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	testkit.Run(t, "ovn-nbctl", "--db="+remote, "ls-add", "theirs", "--", "lsp-add", "theirs", "default_p7")
	objects := someCluster()
	for i := range 20 {
		objects = append(objects, pod(fmt.Sprintf("p%d", i), "n1"))
	}
	f := newFeed(objects...)
	b := startBed(t, remote, f) // one bad object does not keep the rest from being in sync
	b.eventually("number of pod ports", "21", func() string {
		return fmt.Sprint(len(strings.Fields(b.nbctl("--bare", "--columns=name", "find", "logical_switch_port",
			"external_ids:pod=true"))))
	})
	b.eventually("what is refused", "Pod default/p7, after 7 attempts", func() string {
		if err := b.loop.Failing(); err != nil && strings.Contains(err.Error(), "Pod default/p7 is not in the database") &&
			strings.Contains(err.Error(), "after 7 attempts") {
			return "Pod default/p7, after 7 attempts"
		}
		return fmt.Sprint(b.loop.Failing())
	})
	// By itself the next attempt is in 6 seconds, and the one after that in 13.
	freed := time.Now()
	b.nbctl("lsp-del", "default_p7")
	b.eventually("number of pod ports", "22", func() string {
		return fmt.Sprint(len(strings.Fields(b.nbctl("--bare", "--columns=name", "find", "logical_switch_port",
			"external_ids:pod=true"))))
	})
	if took := time.Since(freed); took > 3*time.Second {
		t.Errorf("the port came %s after the name was free, want at once", took)
	}
	b.eventually("what is refused", "<nil>", func() string { return fmt.Sprint(b.loop.Failing()) })
}
