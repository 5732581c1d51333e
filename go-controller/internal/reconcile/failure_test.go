package reconcile

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// quiet waits until the loop has nothing left to do: it has applied all events, and --verify found no difference.
func (b *bed) quiet(what string) {
	b.t.Helper()
	b.eventually(what, "0", func() string { return fmt.Sprint(testutil.ToFloat64(b.metrics.Dirty)) })
}

// A node made anew under its name gets a new switch in place of the old one. Its pods keep their addresses and move to
// it.
func TestNodeMadeAnew(t *testing.T) {
	b := startBed(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]), newFeed(someCluster()...))
	uuid := func() string {
		return b.nbctl("--bare", "--columns=_uuid", "find", "logical_switch", "name=n1")
	}
	before := uuid()
	anew := node("n1")
	anew.UID = "another"
	b.feed.put(anew)
	b.eventually("the switch is another, and there is one", "true 1", func() string {
		now := uuid()
		return fmt.Sprint(now != before, len(strings.Fields(now)))
	})
	b.eventually("ports of n1", "default_a k8s-n1 stor-n1", b.portsOf("n1"))
	b.eventually("addresses of the pod", "0a:58:0a:f4:00:03 10.244.0.3 fd01::3", b.addresses("default_a"))
	b.eventually("router ports", "rtoj-ovn_cluster_router rtos-n1 rtos-n2", b.names("Logical_Router_Port"))
}

// A pod of the same name on another node, and another pod with its old address, are added in the batch in which the
// first is deleted.
func TestSameNamesAndAddressesInOneBatch(t *testing.T) {
	b := startBed(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]), newFeed(someCluster()...))
	for round := range 5 {
		moved := pod("a", []string{"n2", "n1"}[round%2])
		moved.UID = fmt.Sprint("round-", round)
		b.feed.mu.Lock()
		old, _ := b.feed.objects[moved.Ref()].(*cluster.Pod)
		b.feed.mu.Unlock()
		heir := pod(fmt.Sprint("heir", round), old.Node)
		heir.Annotated, heir.ClassicOK = old.Annotated, true
		b.feed.put(moved, heir)
		b.eventually("the heir's node", "true", func() string {
			return fmt.Sprint(strings.Contains(b.portsOf(heir.Node)(), "default_"+heir.Name.Name) &&
				!strings.Contains(b.portsOf(heir.Node)(), "default_a "))
		})
		b.eventually("the pod's node", "true", func() string {
			return fmt.Sprint(strings.Contains(b.portsOf(moved.Node)(),
				"default_a "))
		})
		b.eventually("the heir's addresses", "true", func() string {
			net, err := annotation.ParsePodNetworks(old.Annotated)
			return fmt.Sprint(err == nil && strings.HasPrefix(b.addresses("default_"+heir.Name.Name)(), net.MAC.String()+" "))
		})
		b.feed.drop(heir)
		b.eventually("the heir's port", "", b.addresses("default_"+heir.Name.Name))
	}
	if got := testutil.ToFloat64(b.metrics.Transactions.WithLabelValues("rejected")); got != 0 {
		t.Errorf("%v transactions were rejected, want 0", got)
	}
}

// What was deleted while no master ran is removed at the start, and what was added is served. Completed pods have no
// port, and nobody gets their addresses at once.
func TestChangesWhileNoMasterRan(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	b := startBed(t, remote, newFeed(someCluster()...))
	b.stop()
	b.feed.mu.Lock()
	done, _ := b.feed.objects[pod("a", "n1").Ref()].(*cluster.Pod)
	b.feed.mu.Unlock()
	finished := *done
	finished.Finished = true
	again := startBed(t, remote, newFeed(&cluster.Namespace{Name: "default", UID: "uid-default"}, node("n1"), &finished,
		pod("new", "n1")))
	again.eventually("switches", "join n1", again.names("Logical_Switch"))
	again.eventually("ports of n1", "default_new k8s-n1 stor-n1", again.portsOf("n1"))
	again.eventually("router ports", "rtoj-ovn_cluster_router rtos-n1", again.names("Logical_Router_Port"))
	again.eventually("load balancers", "", again.names("Load_Balancer"))
	again.eventually("the namespace's addresses", "10.244.0.4 fd01::4", func() string {
		return strings.Join(slices.Sorted(strings.FieldsSeq(again.nbctl("--bare", "--columns=addresses", "list",
			"address_set"))), " ")
	})
}

// Nothing is deleted before the cluster is known: neither while lists are missing, nor when the API server says that
// there is nothing at all.
func TestNothingIsDeletedBeforeTheClusterIsKnown(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	first := startBed(t, remote, newFeed(someCluster()...))
	first.stop()
	before := first.content()

	f := newFeed()
	f.synced = false
	b := newBed(t, remote, f)
	b.eventually("the database is connected", "true",
		func() string { return fmt.Sprint(b.loop.Database.Session() != nil) })
	f.put(node("n9"))
	b.taken()
	f.mu.Lock()
	f.synced = true // of an API server that lists no namespaces
	f.mu.Unlock()
	f.put(pod("x", "n9"))
	b.taken()
	if got := b.content(); got != before || testutil.ToFloat64(b.metrics.Operations) != 0 || f.patches != 0 {
		t.Errorf("before the cluster was known %v operations and %d patches were sent; content\n%s\nwas\n%s",
			testutil.ToFloat64(b.metrics.Operations), f.patches, got, before)
	}
	f.put(&cluster.Namespace{Name: "default", UID: "uid-default"})
	b.eventually("switches", "join n9", b.names("Logical_Switch"))
	b.eventually("ports of n9", "default_x k8s-n9 stor-n9", b.portsOf("n9"))
}

// taken waits until the loop has applied everything and waits for more: also the signal that a second change leaves
// behind.
func (b *bed) taken() {
	b.t.Helper()
	for range 2 {
		b.feed.mu.Lock()
		b.feed.wake()
		b.feed.mu.Unlock()
		b.eventually("the signal is taken", "0 0", func() string {
			b.feed.mu.Lock()
			defer b.feed.mu.Unlock()
			return fmt.Sprint(len(b.feed.signal), len(b.feed.pending))
		})
	}
}

// Without a server at the start and later, nothing is lost, and the loop continues when there is one.
func TestDatabaseUnreachable(t *testing.T) {
	raft := testkit.StartRaft(t, testkit.NBSchemas()["25.03"], ovsdb.DatabaseName)
	for _, i := range []int{0, 1, 2} {
		raft.Kill(i)
	}
	f := newFeed(someCluster()...)
	b := newBed(t, strings.Join(raft.Remotes(), ","), f)
	b.eventually("a reason why not", "true", func() string { return fmt.Sprint(b.loop.Database.Failure() != nil) })
	f.put(pod("early", "n1"))
	for _, i := range []int{1, 0, 2} {
		raft.Start(i)
	}
	back := func() {
		b.eventually("a leader", "true", func() string { return fmt.Sprint(raft.Leader() >= 0) })
		b.remote = raft.Remotes()[raft.Leader()]
	}
	back()
	b.eventually("the pods of the start", "true true", func() string {
		return fmt.Sprint(b.addresses("default_a")() != "", b.addresses("default_early")() != "")
	})
	for _, i := range []int{0, 1, 2} {
		raft.Kill(i)
	}
	f.put(pod("during", "n2"))
	f.drop(pod("early", "n1"))
	for _, i := range []int{2, 1, 0} {
		raft.Start(i)
	}
	back()
	b.eventually("the pod that came", "true", func() string { return fmt.Sprint(b.addresses("default_during")() != "") })
	b.eventually("the pod that went", "", b.addresses("default_early"))
}

// A node whose rows are refused delays its own pods and nobody else's. When it is repaired, its pods follow.
func TestPodsWaitForTheirNodesSwitch(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	testkit.Run(t, "ovn-nbctl", "--db="+remote, "ls-add", "theirs", "--", "lsp-add", "theirs", "stor-n1")
	objects := someCluster()
	for i := range 10 {
		objects = append(objects, pod(fmt.Sprint("p", i), "n1"))
	}
	b := startBed(t, remote, newFeed(objects...))
	b.eventually("ports of n2", "default_b k8s-n2 stor-n2", b.portsOf("n2"))
	b.eventually("switches", "join n2 theirs", b.names("Logical_Switch"))
	b.nbctl("lsp-del", "stor-n1")
	b.eventually("number of ports of n1", "13", func() string {
		if !strings.Contains(b.names("Logical_Switch")(), "n1") {
			return "no switch"
		}
		return fmt.Sprint(len(strings.Fields(b.portsOf("n1")())))
	})
	b.quiet("everything is done")
}

// When two routers are marked as the cluster's, nothing is written until an operator decides.
func TestTwoClusterRouters(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	for _, r := range []string{"r1", "r2"} {
		testkit.Run(t, "ovn-nbctl", "--db="+remote, "lr-add", r, "--", "set", "logical_router", r,
			"external_ids:"+names.KeyClusterRouter+"=yes")
	}
	b := newBed(t, remote, newFeed(someCluster()...))
	b.eventually("the database is connected", "true",
		func() string { return fmt.Sprint(b.loop.Database.Session() != nil) })
	b.taken()
	if got := b.names("Logical_Switch")(); got != "" {
		t.Errorf("switches %q, want none", got)
	}
	b.nbctl("remove", "logical_router", "r1", "external_ids", names.KeyClusterRouter)
	b.eventually("switches", "join n1 n2", b.names("Logical_Switch"))
	b.eventually("router ports", "rtoj-r2 rtos-n1 rtos-n2", b.names("Logical_Router_Port"))
}

// Names of the greatest length that Kubernetes allows work.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("n", 253)
	b := startBed(t, testkit.StartOVSDB(t, testkit.NBSchemas()["23.03"]),
		newFeed(append(someCluster(), node(long), pod(long, long))...))
	b.eventually("ports of the node", "default_"+long+" k8s-"+long+" stor-"+long, b.portsOf(long))
}

// While nothing may be sent, only a signal wakes the loop, however many owners wait for their next attempt.
func TestNoWakingWhileNothingMayBeSent(t *testing.T) {
	l := New(Config{Core: core.New(bedConfig(), nb.NewSchema(), nil)})
	o := owner(names.KindNode, "n1")
	l.dirty.fail(o, errRefused, time.Now().Add(-time.Minute))
	for what, set := range map[string]func(){
		"without a connection":        func() { l.session, l.fullPassBegun, l.inFlight = nil, false, false },
		"before the full pass":        func() { l.session, l.fullPassBegun, l.inFlight = &ovsdb.Session{}, false, false },
		"with a transaction underway": func() { l.session, l.fullPassBegun, l.inFlight = &ovsdb.Session{}, true, true },
	} {
		set()
		if next := l.untilNext(); next != time.Hour {
			t.Errorf("%s: wakes in %s, want an hour", what, next)
		}
	}
	l.session, l.fullPassBegun, l.inFlight = &ovsdb.Session{}, true, false
	if next := l.untilNext(); next != time.Millisecond {
		t.Errorf("when it may send: wakes in %s, want at once", next)
	}
}

// An owner whose transaction never gets an answer costs the others a few attempts. Once it changes it is tried again.
func TestUnansweredTransactionIsIsolated(t *testing.T) {
	var cuts, alone atomic.Int32
	relay := startRelay(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]), func(m []byte) bool {
		cut := bytes.Contains(m, []byte(`"transact"`)) && bytes.Contains(m, []byte("default/killer")) &&
			!bytes.Contains(m, []byte(`"affinity_timeout","60"`))
		if cut {
			cuts.Add(1)
		}
		if cut && !bytes.Contains(m, []byte(`"pod"`)) {
			alone.Add(1)
		}
		return cut
	})
	killer := &cluster.Service{Name: cluster.Name{Namespace: "default", Name: "killer"}, UID: "uid-killer",
		ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.11")},
		Ports:      []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80}}}
	objects := append(someCluster(), killer)
	for i := range 20 {
		objects = append(objects, pod(fmt.Sprint("p", i), "n1"))
	}
	f := newFeed(objects...)
	b := startBed(t, relay.Remote, f)
	if got := len(strings.Fields(b.portsOf("n1")())); got != 23 {
		t.Errorf("in sync with %d ports of n1, want 23", got)
	}
	if got := b.names("Load_Balancer")(); got != "Service_default/web_TCP" {
		t.Errorf("in sync with load balancers %s, want all but the killer's", got)
	}
	if alone.Load() == 0 || cuts.Load() > 20 {
		t.Errorf("%d transactions with the killer ended the connection, %d of them without pods: want few, and some",
			cuts.Load(), alone.Load())
	}
	changed := *killer
	changed.AffinitySeconds = 60
	f.put(&changed)
	b.eventually("load balancers", "Service_default/killer_TCP Service_default/web_TCP", b.names("Load_Balancer"))
}

// A transaction without an answer halves the number of owners of the next one, until one is alone. The number grows
// again with each transaction that is carried out. A new connection forgives all but the one that was alone.
func TestUnansweredTransactionsShrink(t *testing.T) {
	m := metrics.NewMaster(prometheus.NewRegistry())
	l := New(Config{Metrics: m, Log: slog.New(slog.DiscardHandler),
		Database: ovsdb.New(config.OVSDB{}, nb.NewSchema(), slog.New(slog.DiscardHandler))})
	plans := func(n int) []nb.Plan {
		out := make([]nb.Plan, n)
		for i := range out {
			out[i].Owner = owner(names.KindPod, fmt.Sprint("default/p", i))
		}
		return out
	}
	for _, most := range []int{3, 1, 1} {
		l.finish(result{plans: plans(max(2*most, 1)), err: context.DeadlineExceeded})
		if !l.dirty.undecided() {
			t.Error("of owners that failed together it is known which one is the reason")
		}
		if l.most != most {
			t.Errorf("at most %d owners, want %d", l.most, most)
		}
	}
	l.finish(result{plans: plans(1), err: context.DeadlineExceeded})
	l.dirty.forgive()
	if l.dirty.undecided() {
		t.Error("of an owner that failed alone it is not known that it is the reason")
	}
	if _, waits := l.dirty.waiting[plans(1)[0].Owner]; !waits || len(l.dirty.waiting) != 1 || l.dirty.size != 6 {
		t.Errorf("%v of %d dirty owners wait, want the one that was alone", l.dirty.waiting, l.dirty.size)
	}
	for _, most := range []int{2, 4, 8} {
		if l.finish(result{plans: plans(1), batch: &core.Batch{}}); l.most != most {
			t.Errorf("at most %d owners, want %d", l.most, most)
		}
	}
	for range 10 {
		l.finish(result{plans: plans(1), batch: &core.Batch{}})
	}
	if l.most != 0 || len(l.dirty.waiting) != 0 {
		t.Errorf("at most %d owners, %v wait; want any number, and none", l.most, l.dirty.waiting)
	}
}
