package reconcile

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/liveness"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbrecord"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// deadline bounds every wait. Nothing here takes a tenth of it.
const deadline = 20 * time.Second

// feed is a Source and a Writer: a cluster whose API server applies every patch at once.
type feed struct {
	mu       sync.Mutex
	signal   chan struct{}
	synced   bool
	objects  map[cluster.Ref]cluster.Object
	pending  map[cluster.Ref]cluster.Event
	patches  int
	received time.Time
	problems []cluster.Problem
}

func newFeed(objects ...cluster.Object) *feed {
	f := &feed{signal: make(chan struct{}, 1), synced: true, objects: map[cluster.Ref]cluster.Object{},
		pending: map[cluster.Ref]cluster.Event{}}
	f.put(objects...)
	return f
}

func (f *feed) put(objects ...cluster.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range objects {
		f.objects[o.Ref()] = o
		f.pending[o.Ref()] = cluster.Event{Ref: o.Ref(), New: o}
	}
	f.wake()
}

func (f *feed) drop(objects ...cluster.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range objects {
		delete(f.objects, o.Ref())
		f.pending[o.Ref()] = cluster.Event{Ref: o.Ref()}
	}
	f.wake()
}

func (f *feed) wake() {
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

func (f *feed) Signal() <-chan struct{} { return f.signal }

func (f *feed) Synced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.synced
}

func (f *feed) Take() ([]cluster.Event, []cluster.Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Collect(maps.Values(f.pending))
	f.pending = map[cluster.Ref]cluster.Event{}
	return out, nil
}

func (f *feed) Received() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.received
}

// receivedAt sets when the next events came.
func (f *feed) receivedAt(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.received = at
}

func (f *feed) Patch(p allocate.Patch) {
	f.mu.Lock()
	o := f.objects[p.Ref]
	f.patches++
	f.mu.Unlock()
	switch o := o.(type) {
	case *cluster.Node:
		if o.UID != p.UID {
			return
		}
		n := cluster.Node{Name: o.Name, UID: o.UID, Created: o.Created, Zone: o.Zone, Addrs: o.Addrs}
		annotations := o.Annotations()
		maps.Copy(annotations, p.Annotations)
		for _, k := range p.Remove {
			delete(annotations, k)
		}
		n.ReadAnnotations(annotations)
		f.put(&n)
	case *cluster.Pod:
		if o.UID != p.UID {
			return
		}
		q := *o
		if value := p.Annotations[annotation.PodNetworks]; value != "" {
			q.Annotated, q.ClassicOK = value, true
		}
		f.put(&q)
	}
}

func (f *feed) Report(p cluster.Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = append(f.problems, p)
}

// reported lists the problems with this reason.
func (f *feed) reported(reason string) (out []cluster.Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.problems {
		if p.Reason == reason {
			out = append(out, p)
		}
	}
	return out
}

// bed is a loop on a real server.
type bed struct {
	t       testing.TB
	remote  string
	feed    *feed
	metrics *metrics.Master
	loop    *Loop
	ended   chan error // what Run returned
	stop    func()
}

// bedConfig is the configuration of every bed: dual stack.
func bedConfig() config.Cluster {
	c := config.DefaultCluster()
	c.Subnets = []config.ClusterSubnet{
		{CIDR: netip.MustParsePrefix("10.244.0.0/16"), NodeLength: 24},
		{CIDR: netip.MustParsePrefix("fd01::/48"), NodeLength: 64},
	}
	return c
}

func newBed(t testing.TB, remote string, f *feed) *bed {
	t.Helper()
	return newBedWith(t, remote, f, Config{Verify: true, Log: slog.New(slog.NewTextHandler(testWriter{t}, nil))})
}

// newBedWith is a bed with the given Verify, Log, Leader, Monitor and Options.
func newBedWith(t testing.TB, remote string, f *feed, with Config) *bed {
	t.Helper()
	return newBedOf(t, remote, f, bedConfig(), with)
}

// newBedOf is newBedWith for another cluster.
func newBedOf(t testing.TB, remote string, f *feed, c config.Cluster, with Config) *bed {
	t.Helper()
	schema := nb.NewSchema()
	db := ovsdb.New(config.OVSDB{Addresses: strings.Split(remote, ",")}, schema, with.Log)
	m := with.Metrics
	if m == nil {
		m = metrics.NewMaster(prometheus.NewRegistry())
	}
	if with.Monitor == nil {
		with.Monitor = liveness.NewGateways(nil, m, with.Log)
	}
	loop := New(Config{Core: core.New(c, schema, all.Translators(schema)), Database: db, Source: f, Writer: f,
		Recorder: nbrecord.Records{Router: c.RouterName}, Monitor: with.Monitor, Metrics: m, Log: with.Log,
		Verify: with.Verify, Leader: with.Leader, Adopt: with.Adopt, Options: with.Options})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); db.Run(ctx) }()
	b := &bed{t: t, remote: remote, feed: f, metrics: m, loop: loop, ended: make(chan error, 1)}
	go func() { defer wg.Done(); b.ended <- loop.Run(ctx) }()
	b.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(b.stop)
	return b
}

// startBed starts a loop and waits until it is in sync.
func startBed(t testing.TB, remote string, f *feed) *bed {
	t.Helper()
	testkit.Run(t, "ovn-nbctl", "--db="+remote, "init") // makes the row of NB_Global, as whoever sets up a database does
	b := newBed(t, remote, f)
	b.inSync()
	return b
}

func (b *bed) inSync() {
	b.t.Helper()
	select {
	case <-b.loop.InSync():
	case <-time.After(deadline):
		b.t.Fatal("not in sync")
	}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func (b *bed) nbctl(args ...string) string {
	b.t.Helper()
	return strings.TrimSpace(testkit.Run(b.t, "ovn-nbctl", append([]string{"--db=" + b.remote}, args...)...))
}

// eventually waits until get returns want.
func (b *bed) eventually(what, want string, get func() string) {
	b.t.Helper()
	end := time.Now().Add(deadline)
	got := get()
	for ; got != want; got = get() {
		if time.Now().After(end) {
			b.t.Fatalf("%s: got %q, want %q", what, got, want)
		}
	}
}

func (b *bed) names(table string) func() string {
	return func() string {
		lines := strings.Fields(b.nbctl("--bare", "--columns=name", "list", table))
		slices.Sort(lines)
		return strings.Join(lines, " ")
	}
}
