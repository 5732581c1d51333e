package reconcile

import (
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// BenchmarkPods adds pods, 500 a second, and reports the CPU time of each from its event to its row in a real
// ovsdb-server: the master without Kubernetes. The number of nodes should make no difference. The default of one second
// is too short to say much:
//
//	go test -run '^$' -bench Pods -benchtime 2000x -benchmem ./go-controller/internal/reconcile
func BenchmarkPods(b *testing.B) {
	for _, nodes := range []int{100, 1000} {
		b.Run(fmt.Sprintf("%d nodes", nodes), func(b *testing.B) { benchmarkPods(b, nodes) })
	}
}

func benchmarkPods(b *testing.B, nodes int) {
	f := newFeed(&cluster.Namespace{Name: "ns", UID: "u"})
	for i := range nodes {
		f.put(&cluster.Node{Name: fmt.Sprintf("n%d", i), UID: fmt.Sprintf("n%d", i),
			ChassisID: fmt.Sprintf("c0ffee00-0000-4000-8000-%012d", i)})
	}
	bed := newBedOf(b, testkit.StartOVSDB(b, testkit.NBSchemas()["25.03"]), f, scaleConfig(),
		Config{Log: slog.New(slog.DiscardHandler)})
	bed.inSync()
	bed.patched(nodes)
	before := cpu(b)
	b.ResetTimer()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := range b.N {
		<-tick.C
		f.put(&cluster.Pod{Name: cluster.Name{Namespace: "ns", Name: fmt.Sprintf("web-6f8d7c9b54-%05d", i)},
			UID: fmt.Sprintf("5c4e9a52-0000-4000-8000-%012d", i), Node: fmt.Sprintf("n%d", i%nodes)})
	}
	bed.patched(nodes + b.N)
	bed.written(b.N)
	b.StopTimer()
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// patched waits until n objects have their annotations.
func (b *bed) patched(n int) {
	b.t.Helper()
	testkit.Eventually(b.t, "the patches", func() string {
		b.feed.mu.Lock()
		defer b.feed.mu.Unlock()
		if b.feed.patches < n {
			return fmt.Sprintf("%d so far, want %d", b.feed.patches, n)
		}
		return ""
	})
}

// written waits until n ports are written and no owner is dirty.
func (b *bed) written(n int) {
	b.t.Helper()
	testkit.Eventually(b.t, "the ports", func() string {
		rows, dirty := testutil.ToFloat64(b.metrics.Rows.WithLabelValues("insert")), testutil.ToFloat64(b.metrics.Dirty)
		if rows < float64(n) || dirty != 0 {
			return fmt.Sprintf("%v rows so far, want %d; %v owners are dirty", rows, n, dirty)
		}
		return ""
	})
}

// cpu is the CPU time that this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
