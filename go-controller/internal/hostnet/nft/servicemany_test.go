package nft

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// Ten thousand services, of which a tenth has endpoints for clients from outside
// here, some of them two, and a tenth has them on two other nodes alone; and one more, of
// which the endpoints change. How long each step takes is in the test's log.
func TestServicePortsMany(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := NewTables()
	var lines []string
	for i := range 10000 {
		lines = append(lines, fmt.Sprintf("serve TCP 0.0.0.0:%d to 10.96.%d.%d:80", 20000+i, i/250, i%250),
			fmt.Sprintf("serve UDP [::]:%d to [fd02::%x]:80", 20000+i, i+1))
		at := fmt.Sprintf("0.0.0.0:%d", 20000+i)
		switch {
		case i%100 == 0:
			lines = append(append(lines, "inside TCP "+at), buckets(at, "10.1.0.3", "10.1.0.4")...)
		case i%10 == 0:
			lines = append(lines, "inside TCP "+at, fmt.Sprintf("local TCP %s to 10.1.0.%d:8080", at, 3+i%200))
		case i%10 == 5:
			lines = append(append(lines, "inside TCP "+at), awayBuckets(20000+i, 8, 9)...)
		}
	}
	all := servicePorts(t, lines...)
	timed := func(what string, do func()) {
		start := time.Now()
		do()
		t.Logf("%s: %v", what, time.Since(start).Round(100*time.Microsecond))
	}
	apply := func(want hostplan.ServicePorts) (line string) {
		changes, err := item.Converge(t.Context(), k, []hostplan.Item{want})
		if err != nil || len(changes) != 1 {
			t.Fatalf("changes %v, %v", changes, err)
		}
		return changes[0].String()
	}
	look := func() {
		if have, err := k.Read([]hostplan.Item{all}); err != nil || len(have) != 1 || have[0] != hostplan.Item(all) {
			t.Errorf("read back: %v %v", have, err)
		}
	}
	timed(fmt.Sprintf("%d elements from nothing", len(lines)), func() { apply(all) })
	look()
	timed("a look when nothing has changed", look)
	testkit.Run(t, "nft", "add table ip another")
	timed("a look after somebody's change", look)
	const at = "192.0.2.7:80"
	for _, step := range []struct {
		lines    []string
		change   string
		elements int // that come or go
	}{
		{[]string{"serve TCP 192.0.2.7:80 to 10.96.0.10:80"}, "+ serve TCP 192.0.2.7:80 to 10.96.0.10:80", 1},
		{[]string{"local TCP 192.0.2.7:80 to 10.1.0.3:8080"}, "+ local TCP 192.0.2.7:80 to 10.1.0.3:8080, " +
			"- serve TCP 192.0.2.7:80 to 10.96.0.10:80", 2},
		{buckets(at, "10.1.0.3", "10.1.0.4"), "+ share TCP 192.0.2.7:80 to 10.1.0.3:8080 (60 buckets), " +
			"+ share TCP 192.0.2.7:80 to 10.1.0.4:8080 (60 buckets), - local TCP 192.0.2.7:80 to 10.1.0.3:8080", 121},
		{buckets(at, "10.1.0.3", "10.1.0.9"), "~ share TCP 192.0.2.7:80 to 10.1.0.9:8080 (was: " +
			"share TCP 192.0.2.7:80 to 10.1.0.4:8080) (60 buckets)", 120},
		{append(buckets(at, "10.1.0.3", "10.1.0.9"), awayBuckets(19999, 8, 9)...),
			"+ away-share TCP 0.0.0.0:19999 from 198.51.100.1/32 to 203.0.113.8:19999 (6 buckets), " +
				"+ away-share TCP 0.0.0.0:19999 from 198.51.100.1/32 to 203.0.113.9:19999 (6 buckets)", 12},
		{append(buckets(at, "10.1.0.3", "10.1.0.9"), awayBuckets(19999, 8, 10)...),
			"~ away-share TCP 0.0.0.0:19999 from 198.51.100.1/32 to 203.0.113.10:19999 (was: " +
				"away-share TCP 0.0.0.0:19999 from 198.51.100.1/32 to 203.0.113.9:19999) (6 buckets)", 12},
	} {
		want := servicePorts(t, append(slices.Clone(lines), step.lines...)...)
		if n := changedElements(t, func() {
			timed(fmt.Sprintf("%d elements more or less", step.elements), func() {
				if got := apply(want); got != "service-ports "+step.change {
					t.Errorf("change %s, want %s", got, step.change)
				}
			})
			timed("a look after it", func() { converged(t, k, want) })
		}); n != step.elements {
			t.Errorf("%s: %d elements, want %d", step.change, n, step.elements)
		}
		converge(t, k, want)
	}
}

// Sources of which a wide range becomes many narrow ones, more than a transaction takes: only they change. The kernel
// takes no range that overlaps one that is there.
func TestNarrowedSources(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := NewTables()
	wide := []string{"serve TCP 0.0.0.0:30080 to 10.96.0.10:80"}
	narrow := slices.Clone(wide)
	for port := range 2 {
		at := fmt.Sprintf("192.0.2.7:%d", 80+port)
		wide = append(wide, "limit TCP "+at, fmt.Sprintf("allow TCP %s from 10.0.0.0/8", at))
		narrow = append(narrow, "limit TCP "+at)
		for i := range 300 {
			narrow = append(narrow, fmt.Sprintf("allow TCP %s from 10.%d.%d.0/24", at, i/100, 2*(i%100)))
		}
	}
	converge(t, k, servicePorts(t, wide...))
	for _, lines := range [][]string{narrow, wide} {
		n := changedElements(t, func() { converge(t, k, servicePorts(t, lines...)) })
		if want := 2 * (300 + 1); n != want {
			t.Errorf("%d elements changed, want those of the sources", n)
		}
		converged(t, k, servicePorts(t, lines...))
	}
}

// buckets is the entries of endpoints that share a place.
func buckets(at string, endpoints ...string) (out []string) {
	for i := range hostplan.ServiceBuckets {
		out = append(out, fmt.Sprintf("share TCP %s bucket %d to %s:8080", at, i, endpoints[i%len(endpoints)]))
	}
	return out
}

// awayBuckets is the entries of a node port that 198.51.100.1 is led from to these
// of 203.0.113.0/24.
func awayBuckets(port int, nodes ...int) (out []string) {
	for i := range hostplan.RemoteBuckets {
		out = append(out, fmt.Sprintf("away-share TCP 0.0.0.0:%d from 198.51.100.1/32 bucket %d to 203.0.113.%d:%d", port, i,
			nodes[i%len(nodes)], port))
	}
	return out
}
