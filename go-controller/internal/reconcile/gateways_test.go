package reconcile

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/liveness"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// leases is a liveness.Leases that the test sets.
type leases struct {
	mu       sync.Mutex
	signal   chan struct{}
	followed []string
	expired  map[string]bool
}

func newLeases() *leases { return &leases{signal: make(chan struct{}, 1), expired: map[string]bool{}} }

func (f *leases) Signal() <-chan struct{} { return f.signal }

func (f *leases) Follow(nodes []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followed = nodes
}

func (f *leases) PresumeExpired(nodes []string) { f.set(nodes...) }

func (f *leases) Expired() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.expired)
}

// set sets whose Leases are expired, and signals.
func (f *leases) set(nodes ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expired = map[string]bool{}
	for _, n := range nodes {
		f.expired[n] = true
	}
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

func gatewayNode(name, ip string) *cluster.Node {
	n := node(name)
	n.Gateway = &annotation.L3Gateway{Bridge: "breth0", Network: "physnet", Port: "breth0_" + name, MAC: ipnet.MAC{2},
		IPs: []netip.Prefix{netip.MustParsePrefix(ip)}, NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1")}}
	n.Addrs = []netip.Addr{n.Gateway.IPs[0].Addr()}
	return n
}

// gatewaysBed starts loops with gateways n1 and n2, one after the other, on one database.
type gatewaysBed struct {
	*bed
	feed   *feed
	remote string
}

// Next hops of the cluster router's default routes.
const first, second = "100.64.1.2", "100.64.1.3"

func newGatewaysBed(t *testing.T) *gatewaysBed {
	feed := newFeed(append(someCluster(), gatewayNode("n1", "172.18.0.3/16"), gatewayNode("n2", "172.18.0.4/16"))...)
	return &gatewaysBed{feed: feed, remote: testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])}
}

// start starts the next loop.
func (b *gatewaysBed) start(t *testing.T, l *leases) {
	m, log := metrics.NewMaster(prometheus.NewRegistry()), slog.New(slog.NewTextHandler(testWriter{t}, nil))
	b.bed = newBedWith(t, b.remote, b.feed, Config{Verify: true, Log: log, Metrics: m, Monitor: liveness.NewGateways(l, m,
		log)})
}

func (b *gatewaysBed) routes() string {
	out := b.nbctl("--bare", "--columns=nexthop", "find", "Logical_Router_Static_Route", `ip_prefix="0.0.0.0/0"`,
		`nexthop!="172.18.0.1"`)
	return strings.Join(slices.Sorted(strings.FieldsSeq(out)), " ")
}

// rows is how many rows the loop has written.
func (b *bed) rows() float64 {
	n := 0.0
	for _, verb := range []string{"insert", "update", "delete"} {
		n += testutil.ToFloat64(b.metrics.Rows.WithLabelValues(verb))
	}
	return n
}

func (b *gatewaysBed) problems() []cluster.Problem {
	b.feed.mu.Lock()
	defer b.feed.mu.Unlock()
	return slices.Clone(b.feed.problems)
}

// A gateway without a Lease loses its routes and nothing else. When no gateway has one, they all keep their routes. The
// next master begins where the last one was.
func TestGatewaysWithoutLease(t *testing.T) {
	b, signs := newGatewaysBed(t), newLeases()
	b.start(t, signs)
	b.inSync()
	b.eventually("routes", first+" "+second, b.routes)
	b.eventually("followed", "n1 n2", func() string {
		signs.mu.Lock()
		defer signs.mu.Unlock()
		return strings.Join(signs.followed, " ")
	})
	before := b.rows()
	signs.set("n2")
	b.eventually("routes without n2", first, b.routes)
	b.eventually("rows that were written: the default route, and that of the node's own pods", "2",
		func() string { return fmt.Sprint(b.rows() - before) })
	told := gatewayNode("n2", "172.18.0.4/16")
	told.ChassisID = "chassis-2" // the Node changes otherwise
	b.feed.put(told)
	b.eventually("chassis", "chassis-2",
		func() string { return b.nbctl("get", "Logical_Router", "GR_n2", "options:chassis") })
	b.eventually("routes without n2", first, b.routes)
	signs.set("n1", "n2")
	b.eventually("routes when none has a Lease", first+" "+second, b.routes)
	signs.set("n1")
	b.eventually("routes without n1", second, b.routes)
	signs.set("n2") // n1's come back under other UUIDs than they had
	b.eventually("routes without n2", first, b.routes)
	events := len(b.problems())
	b.stop()

	again := newLeases()
	b.start(t, again)
	b.feed.put(slices.Collect(maps.Values(b.feed.objects))...)
	b.inSync()
	if got := slices.Collect(maps.Keys(again.Expired())); !slices.Equal(got, []string{"n2"}) || b.routes() != first ||
		b.rows() != 0 {
		t.Errorf("the next master presumes %v without Leases, has routes to %s, and wrote %v rows; want n2, %s, 0",
			got, b.routes(), b.rows(), first)
	}
	if out := testutil.ToFloat64(b.metrics.Gateways.WithLabelValues("ipv4", "out")); out != 1 {
		t.Errorf("it counts %v gateways out of service, want 1", out)
	}
	if problems := b.problems(); len(problems) != events {
		t.Errorf("it reports again: %v", problems[events:])
	}
	again.set()
	b.eventually("routes when n2 is heard", first+" "+second, b.routes)
}
