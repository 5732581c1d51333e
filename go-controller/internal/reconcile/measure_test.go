package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// lag reads how many transactions carried an event, and their delays in minutes, all added up.
func (b *bed) lag() string {
	b.t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(b.metrics.Lag)
	families, err := r.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	h := families[0].GetMetric()[0].GetHistogram()
	minutes := time.Duration(h.GetSampleSum() * float64(time.Second)).Round(time.Minute).Minutes()
	return fmt.Sprint(h.GetSampleCount(), " ", minutes)
}

// The delay from an event to its commit counts from when the event came. The first pass carries no event. Nor does a
// repair.
func TestLag(t *testing.T) {
	b := startBed(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]), newFeed(someCluster()...))
	if have, want := b.lag(), "0 0"; have != want {
		t.Errorf("after the first pass: %s, want %s", have, want)
	}
	b.feed.receivedAt(time.Now().Add(-10 * time.Minute))
	b.feed.put(pod("late", "n1"))
	b.eventually("a pod that came 10 minutes ago", "1 10", b.lag)
	b.nbctl("lsp-del", "default_late")
	repairs := b.metrics.Repairs.WithLabelValues("Pod")
	b.eventually("repairs", "1", func() string { return fmt.Sprint(testutil.ToFloat64(repairs)) })
	if have, want := b.lag(), "1 10"; have != want {
		t.Errorf("after a repair: %s, want %s", have, want)
	}
}

// The delay also counts the time in which the server refused a transaction.
func TestLagOfARefusedTransaction(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	testkit.Run(t, "ovn-nbctl", "--db="+remote, "ls-add", "theirs", "--", "lsp-add", "theirs", "default_late")
	b := startBed(t, remote, newFeed(someCluster()...))
	b.feed.receivedAt(time.Now().Add(-10 * time.Minute))
	b.feed.put(pod("late", "n1"))
	b.eventually("owners that fail", "1", func() string { return fmt.Sprint(testutil.ToFloat64(b.metrics.Failing)) })
	if have, want := b.lag(), "1 10"; have != want {
		t.Errorf("when only the pod's namespace is in the database: %s, want %s", have, want)
	}
	b.nbctl("lsp-del", "default_late")
	b.eventually("the namespace and the pod", "2 20", b.lag)
}

// The gauges of addresses follow the pods and the nodes.
func TestMeasure(t *testing.T) {
	b := startBed(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]), newFeed(someCluster()...))
	used := func(node string) func() string {
		return func() string {
			return fmt.Sprint(testutil.ToFloat64(b.metrics.PodAddresses.WithLabelValues(node, "ipv4", "used")))
		}
	}
	b.eventually("used addresses of n1", "1", used("n1"))
	count := testutil.CollectAndCount(b.metrics.PodAddresses)
	b.feed.put(pod("more", "n1"))
	b.eventually("used addresses of n1", "2", used("n1"))
	b.feed.drop(node("n2"))
	b.eventually("series less than with n2", "true", func() string {
		return fmt.Sprint(testutil.CollectAndCount(b.metrics.PodAddresses) < count)
	})
	b.eventually("node subnets in use", "1", func() string {
		return fmt.Sprint(testutil.ToFloat64(b.metrics.Subnets.WithLabelValues("10.244.0.0/16", "ipv4", "used")))
	})
}
