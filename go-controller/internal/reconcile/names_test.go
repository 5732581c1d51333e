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

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/liveness"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/resolve"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
	"github.com/northbound-net/northbound/go-controller/internal/translate/policy"
)

// resolver is a liveness.Resolver that knows what the test says.
type resolver struct {
	mu       sync.Mutex
	signal   chan struct{}
	followed []string
	presumed map[string][]netip.Addr
	news     map[string]resolve.Known
	gone     []string
}

func newResolver() *resolver { return &resolver{signal: make(chan struct{}, 1)} }

func (r *resolver) Signal() <-chan struct{} { return r.signal }

func (r *resolver) Follow(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.followed {
		if !slices.Contains(names, n) {
			r.gone = append(r.gone, n)
		}
	}
	r.followed = slices.Clone(names)
}

func (r *resolver) Presume(known map[string][]netip.Addr) {
	r.mu.Lock()
	r.presumed = maps.Clone(known)
	r.mu.Unlock()
	for name, addrs := range known {
		r.say(name, resolve.Known{Addrs: addrs})
	}
}

// say is what DNS says from now on.
func (r *resolver) say(name string, k resolve.Known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.news == nil {
		r.news = map[string]resolve.Known{}
	}
	r.news[name] = k
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

func (r *resolver) Take() (map[string]resolve.Known, []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news, gone := r.news, r.gone
	r.news, r.gone = nil, nil
	return news, gone
}

func (r *resolver) following() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.followed, " ")
}

// namedAddresses is the addresses in the sets of a name.
func (b *bed) namedAddresses(name string) func() string {
	return func() string {
		var out []string
		for _, f := range []names.Family{names.IPv4, names.IPv6} {
			out = append(out, b.nbctl("--bare", "--columns=addresses", "find", "Address_Set",
				"name="+names.SelectorAddressSet(index.DomainNameHash(name), f)))
		}
		return strings.Join(out, " ")
	}
}

func namesPolicy(domains ...string) *cluster.TieredPolicy {
	p := &cluster.TieredPolicy{Name: "names", UID: "u", Tier: cluster.AdminTier,
		Egress: []cluster.TieredRule{{Action: cluster.Accept, PolicyRule: cluster.PolicyRule{AnyPort: true}}}}
	for _, d := range domains {
		p.Egress[0].Peers = append(p.Egress[0].Peers, cluster.PolicyPeer{Domain: d})
	}
	return p
}

func known(addrs ...string) resolve.Known {
	var k resolve.Known
	for _, a := range addrs {
		k.Addrs = append(k.Addrs, netip.MustParseAddr(a))
	}
	return k
}

// The addresses of names are in sets. A master that starts anew keeps them until DNS answers, and writes nothing.
func TestDomainNames(t *testing.T) {
	feed := newFeed(append(someCluster(), namesPolicy("a.example", "b.example"))...)
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	start := func(r *resolver) *bed {
		m, log := metrics.NewMaster(prometheus.NewRegistry()), slog.New(slog.NewTextHandler(testWriter{t}, nil))
		b := newBedWith(t, remote, feed, Config{Verify: true, Log: log, Metrics: m, Monitor: liveness.NewNames(r)})
		b.inSync()
		return b
	}
	r := newResolver()
	b := start(r)
	b.eventually("names to follow", "a.example b.example", r.following)
	r.say("a.example", known("192.0.2.1", "2001:db8::1"))
	b.eventually("addresses of a.example", "192.0.2.1 2001:db8::1", b.namedAddresses("a.example"))
	b.eventually("addresses of b.example", " ", b.namedAddresses("b.example"))
	r.say("b.example", resolve.Known{Trouble: "DNS knows no such name"})
	b.eventually("reports about b.example", "[domainNames: b.example: DNS knows no such name]", func() string {
		var out []string
		for _, p := range feed.reported(policy.ReasonNameTrouble) {
			out = append(out, p.Message)
		}
		return fmt.Sprint(out)
	})
	b.stop()

	feed.put(slices.Collect(maps.Values(feed.objects))...) // what a new watch lists
	r = newResolver()
	b = start(r)
	b.eventually("rows that a new master writes", "0", func() string { return fmt.Sprint(b.rows()) })
	if got := fmt.Sprint(r.presumed); got != "map[a.example:[192.0.2.1 2001:db8::1] b.example:[]]" {
		t.Errorf("the new master presumes %s", got)
	}
	r.say("a.example", known("192.0.2.1", "2001:db8::1")) // the first answer is what was known
	r.say("b.example", known("192.0.2.2"))
	b.eventually("addresses of b.example", "192.0.2.2 ", b.namedAddresses("b.example"))
	// The loop counts a row a moment after it is in the database.
	b.eventually("rows that are written for one address", "1", func() string { return fmt.Sprint(b.rows()) })
	feed.put(namesPolicy("b.example"))
	b.eventually("names to follow", "b.example", r.following)
	b.eventually("sets of a.example", " ", b.namedAddresses("a.example"))
	if n := testutil.ToFloat64(b.metrics.Differences); n != 0 {
		t.Errorf("%v differences were found", n)
	}
}
