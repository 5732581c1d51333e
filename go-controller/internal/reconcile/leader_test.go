package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// candidate is a master of an election that holder decides. By its own clock it always leads, which is the worst case.
type candidate struct {
	id      string
	mu      sync.Mutex
	holder  string
	err     error
	paused  sync.Mutex    // while it is locked, the loop stands still just before it would write
	reached chan struct{} // the loop wants to write
}

func newCandidate(id string) *candidate {
	return &candidate{id: id, holder: id, reached: make(chan struct{}, 1)}
}

func (c *candidate) Identity() string { return c.id }

func (c *candidate) Holds() error {
	if !c.paused.TryLock() {
		select {
		case c.reached <- struct{}{}:
		default:
		}
		c.paused.Lock()
	}
	c.paused.Unlock()
	return nil
}

func (c *candidate) Holder(context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holder, c.err
}

func (c *candidate) set(holder string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holder, c.err = holder, err
}

// lead starts a loop with a Leader.
func lead(t *testing.T, remote string, f *feed, c *candidate) *bed {
	t.Helper()
	return newBedWith(t, remote, f, Config{Verify: true, Leader: c,
		Log: slog.New(slog.NewTextHandler(testWriter{t}, nil))})
}

// epoch is the number and the master that the cluster router records.
func (b *bed) epoch() string {
	get := func(key string) string {
		return b.nbctl("--if-exists", "get", "logical_router", "ovn_cluster_router", "external_ids:\""+key+"\"")
	}
	return get(names.EpochKey) + " " + get(names.LeaderKey)
}

// stopsLeading waits until the loop has ended because another master leads.
func (b *bed) stopsLeading(other string) {
	b.t.Helper()
	select {
	case err := <-b.ended:
		b.ended <- nil // for stop
		if !errors.Is(err, ErrNotLeader) || !strings.Contains(err.Error(), other) {
			b.t.Errorf("the loop ended with %v, want that %s leads", err, other)
		}
	case <-time.After(deadline):
		b.t.Fatal("the loop still runs")
	}
}

// A master that was stopped just before a transaction, and continues when another leads, commits nothing and ends. It
// sends that transaction once.
func TestAPausedLeaderIsFenced(t *testing.T) {
	for ovn, schema := range testkit.NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			remote := testkit.StartOVSDB(t, schema)
			old := newCandidate("old")
			a := lead(t, remote, newFeed(someCluster()...), old)
			a.inSync()
			a.eventually("the epoch", `"1" old`, a.epoch)
			old.paused.Lock()
			a.feed.put(pod("late", "n1"))
			<-old.reached
			old.set("new", nil)
			b := lead(t, remote, newFeed(someCluster()...), newCandidate("new"))
			b.inSync()
			b.eventually("the epoch", `"2" new`, b.epoch)
			before, written := b.content(), testutil.ToFloat64(a.metrics.Operations)
			old.paused.Unlock()
			a.stopsLeading("new")
			if got := b.content(); got != before {
				t.Errorf("the old master changed\n%s\nto\n%s", before, got)
			}
			if got := testutil.ToFloat64(a.metrics.Operations); got != written {
				t.Errorf("the old master committed %v operations, want none", got-written)
			}
			for result, want := range map[string]float64{"failed": 1, "rejected": 0} {
				if got := testutil.ToFloat64(a.metrics.Transactions.WithLabelValues(result)); got != want {
					t.Errorf("%v transactions %s, want %v", got, result, want)
				}
			}
			b.feed.put(pod("c", "n1"))
			b.eventually("ports of n1", "default_a default_c k8s-n1 stor-n1", b.portsOf("n1"))
		})
	}
}

// An idle master ends at the first sight of another epoch. One that can't ask who leads does nothing meanwhile.
func TestALeaderSeesAnotherEpoch(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	first := newCandidate("first")
	a := lead(t, remote, newFeed(someCluster()...), first)
	a.inSync()
	second := newCandidate("second")
	second.set("", errors.New("the API server does not answer"))
	b := lead(t, remote, newFeed(someCluster()...), second)
	b.feed.put(pod("c", "n1"))
	b.eventually("the database is connected", "true",
		func() string { return fmt.Sprint(b.loop.Database.Session() != nil) })
	b.taken()
	if got := a.epoch(); got != `"1" first` || testutil.ToFloat64(b.metrics.Operations) != 0 || b.feed.patches != 0 {
		t.Errorf("a master that does not know who leads: epoch %s, %v operations, %d patches", got,
			testutil.ToFloat64(b.metrics.Operations), b.feed.patches)
	}
	second.set("second", nil)
	b.inSync()
	a.stopsLeading("second")
}

// A master that does not hold the Lease any more when its database comes ends, also when nobody else has written.
func TestOnlyTheHolderRaisesTheEpoch(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	c := newCandidate("late")
	c.set("another", nil)
	b := lead(t, remote, newFeed(someCluster()...), c)
	b.stopsLeading("another")
	if got := b.names("Logical_Router")(); got != "" {
		t.Errorf("routers %q, want none", got)
	}
}

// The epoch is no drift. When it is lost with the cluster router, with the whole database or by hand, the leader raises
// it again.
func TestTheEpochComesBack(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	b := lead(t, remote, newFeed(someCluster()...), newCandidate("me"))
	b.inSync()
	want := b.content()
	b.nbctl("remove", "logical_router", "ovn_cluster_router", "external_ids", "\""+names.EpochKey+"\"")
	b.feed.put(pod("c", "n1"))
	b.eventually("removed by hand", `"2" me`, b.epoch)
	b.eventually("what waited for it", "default_a default_c k8s-n1 stor-n1", b.portsOf("n1"))
	b.feed.drop(pod("c", "n1"))
	b.eventually("ports of n1", "default_a k8s-n1 stor-n1", b.portsOf("n1"))
	b.nbctl("lr-del", "ovn_cluster_router")
	b.eventually("the router deleted", "true", func() string {
		return fmt.Sprint(strings.Contains(b.nbctl("--columns=external_ids", "list", "logical_router"),
			`"k8s.ovn.org/leader-epoch"="3"`))
	})
	b.quiet("everything is repaired")
	b.nbctl("set", "logical_router", "ovn_cluster_router", "external_ids:\""+names.EpochKey+"\"=1",
		"external_ids:\""+names.LeaderKey+"\"=former") // as in an older copy of the database
	b.eventually("restored", `"4" me`, b.epoch)
	b.quiet("everything is compared")
	b.eventually("the content", want, func() string {
		return strings.Replace(b.content(), `""k8s.ovn.org/leader-epoch""=""4""`, `""k8s.ovn.org/leader-epoch""=""1""`, 1)
	})
	if n := testutil.ToFloat64(b.metrics.Differences); n != 0 {
		t.Errorf("%v differences", n)
	}
}

// A database that is recorded for another cluster is not touched, unless it is adopted. A master of the first cluster
// ends when its cluster's UID changes under it, and waits while there is none.
func TestAnotherCluster(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	system := func(uid string) *cluster.Namespace { return &cluster.Namespace{Name: "kube-system", UID: uid} }
	a := lead(t, remote, newFeed(append(someCluster(), system("one"))...), newCandidate("a"))
	a.inSync()
	a.stop()
	before := a.content()
	b := lead(t, remote, newFeed(system("two")), newCandidate("b"))
	b.refuses("one", "two")
	if got := a.content(); got != before {
		t.Errorf("the database of another cluster was changed:\n%s\nwas\n%s", got, before)
	}
	c := newBedWith(t, remote, newFeed(system("two")), Config{Leader: newCandidate("c"), Adopt: true,
		Log: slog.New(slog.NewTextHandler(testWriter{t}, nil))})
	c.inSync()
	c.eventually("switches", "join", c.names("Logical_Switch"))
	c.feed.drop(system("two"))
	c.feed.put(node("n1"))
	c.taken()
	if got := c.names("Logical_Switch")(); got != "join" {
		t.Errorf("switches %q, want none more while the cluster has no UID", got)
	}
	c.feed.put(system("two"))
	c.eventually("switches", "join n1", c.names("Logical_Switch"))
	c.feed.put(system("three"))
	c.refuses("two", "three")
}

// refuses waits until the loop has ended because the database belongs to another cluster.
func (b *bed) refuses(uids ...string) {
	b.t.Helper()
	select {
	case err := <-b.ended:
		b.ended <- nil // for stop
		for _, uid := range uids {
			if !errors.Is(err, ovsdb.ErrOtherCluster) || !strings.Contains(err.Error(), uid) {
				b.t.Errorf("the loop ended with %v, want that it names %s", err, uid)
			}
		}
	case <-time.After(deadline):
		b.t.Fatal("the loop still runs")
	}
}
