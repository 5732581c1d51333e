package reconcile

import (
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A master gives no address or subnet that an earlier one freed a moment ago, or that became free while none ran. What
// must wait is recorded in the database, which a restart does not otherwise change.
func TestFreedBeforeARestart(t *testing.T) {
	for ovn, schema := range testkit.NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			remote := testkit.StartOVSDB(t, schema)
			f := newFeed(append(someCluster(), pod("c", "n1"), pod("d", "n1"))...)
			b := startBed(t, remote, f)
			addresses := func(pods ...string) (out []string) {
				for _, p := range pods {
					b.eventually("port of "+p, "true", func() string {
						if b.nbctl("--if-exists", "get", "logical_switch_port", "default_"+p, "addresses") == "" {
							return "false"
						}
						return "true"
					})
					out = append(out, strings.Fields(b.nbctl("lsp-get-addresses", "default_"+p))[1])
				}
				return out
			}
			had := addresses("a", "c", "d")
			b.feed.drop(pod("a", "n1"))
			b.eventually("ports of n1", "default_c default_d k8s-n1 stor-n1", b.portsOf("n1"))
			b.feed.drop(node("n2"), pod("b", "n2"))
			b.eventually("switches", "join n1", b.names("Logical_Switch"))
			record := b.nbctl("--bare", "--columns=external_ids", "find", "address_set", "name="+names.FreedAddressSet)
			for _, want := range []string{had[0] + "=", "fd01::3=", "10.244.1.0/24=", "fd01:0:0:1::/64="} {
				if !strings.Contains(record, want) {
					t.Errorf("the record %q lacks %s", record, want)
				}
			}
			b.stop()
			f.drop(pod("c", "n1"))
			f.put(node("n3"), pod("e", "n1"), pod("f", "n1"))
			b = startBed(t, remote, newFeed(slices.Collect(maps.Values(f.objects))...))
			for _, now := range addresses("e", "f") {
				for _, before := range had {
					if now == before {
						t.Errorf("%s is given again at once; earlier pods had %v", now, had)
					}
				}
			}
			if got := b.nbctl("get", "logical_switch", "n3", "other_config:subnet"); got != `"10.244.2.0/24"` {
				t.Errorf("n3 has %s, want the next subnet that no Node had a moment ago", got)
			}
		})
	}
}

// So many owners that several processors look for what became free while no master ran.
func TestFreedOfManyOwners(t *testing.T) {
	const nodes, pods, gone = 10, 2000, 200
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	f := newFeed(someCluster()...)
	for i := range nodes {
		f.put(node(fmt.Sprint("m", i)))
	}
	name := func(i int) *cluster.Pod { return pod(fmt.Sprint("many", i), fmt.Sprint("m", i%nodes)) }
	for i := range pods {
		f.put(name(i))
	}
	startBed(t, remote, f).stop()
	for i := range gone {
		f.drop(name(i))
	}
	b := startBed(t, remote, newFeed(slices.Collect(maps.Values(f.objects))...))
	b.eventually("addresses that are recorded as freed", fmt.Sprint(2*gone), func() string {
		return fmt.Sprint(strings.Count(b.nbctl("--bare", "--columns=external_ids", "find", "address_set",
			"name="+names.FreedAddressSet), "="))
	})
}

// A restart does not record once more what is recorded.
func TestFreedIsRecordedOnce(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	f := newFeed(append(someCluster(), pod("c", "n1"))...)
	b := startBed(t, remote, f)
	written := func() float64 { return testutil.ToFloat64(b.metrics.Operations) }
	before := written()
	f.put(pod("d", "n1"))
	b.eventually("operations for d", "true", func() string { return fmt.Sprint(written() > before) })
	ofAPod := written() - before
	f.drop(pod("c", "n1"))
	b.eventually("ports of n1", "default_a default_d k8s-n1 stor-n1", b.portsOf("n1"))
	b.stop()
	f = newFeed(slices.Collect(maps.Values(f.objects))...)
	b = startBed(t, remote, f)
	f.put(pod("e", "n1"))
	b.eventually("operations for e", "true", func() string { return fmt.Sprint(written() > 0) })
	if got := written(); got != ofAPod {
		t.Errorf("a restart and a pod after it: %v operations, want the %v of a pod", got, ofAPod)
	}
}

// The same for what a primary network freed: while a master ran, and while none did.
func TestFreedInANetworkBeforeARestart(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	network := &cluster.Network{Name: names.Defined("red", "own"), Topology: cluster.Layer2, Primary: true,
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/24")},
			{CIDR: netip.MustParsePrefix("fd77::/64")}}}
	if err := network.SetJoin([]netip.Prefix{netip.MustParsePrefix("100.66.0.0/24"),
		netip.MustParsePrefix("fd66::/64")}); err != nil {
		t.Fatal(err)
	}
	tenant := func(name string) *cluster.Pod {
		p := pod(name, "n1")
		p.Name.Namespace = "red"
		return p
	}
	f := newFeed(append(someCluster(), tenant("c"), tenant("d"),
		&cluster.NetworkDefinition{Name: cluster.Name{Namespace: "red", Name: "own"}, Network: network},
		&cluster.Namespace{Name: "red", UID: "uid-red",
			Labels: cluster.NewLabels(map[string]string{names.PrimaryLabel: ""})})...)
	b := startBed(t, remote, f)
	address := func(name string) string {
		port := network.Name.LogicalPort("red", name, names.PrimaryInterface)
		b.eventually("port of "+name, "true", func() string {
			return fmt.Sprint(b.nbctl("--if-exists", "get", "logical_switch_port", port, "addresses") != "")
		})
		return strings.Fields(b.nbctl("lsp-get-addresses", port))[1]
	}
	had := []string{address("c"), address("d")}
	f.drop(tenant("c"))
	b.eventually("record", "true", func() string {
		record := b.nbctl("--bare", "--columns=external_ids", "find", "address_set", "name="+names.FreedAddressSet)
		return fmt.Sprint(strings.Contains(record, had[0]+"@red.own="))
	})
	b.stop()
	f.drop(tenant("d"))
	f.put(tenant("e"), tenant("f"))
	f = newFeed(slices.Collect(maps.Values(f.objects))...)
	b = startBed(t, remote, f)
	for _, name := range []string{"e", "f"} {
		if now := address(name); slices.Contains(had, now) {
			t.Errorf("pod %s has %s at once; earlier pods had %v", name, now, had)
		}
	}
	// The Node of running pods is deleted while no master runs.
	had = append(had, address("e"), address("f"))
	b.stop()
	f.drop(node("n1"))
	late := tenant("g")
	late.Node = "n2"
	f.put(late)
	b = startBed(t, remote, newFeed(slices.Collect(maps.Values(f.objects))...))
	if now := address("g"); slices.Contains(had, now) {
		t.Errorf("pod g has %s at once; pods of a Node that is gone have %v", now, had)
	}
}
