package core_test

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// tenantOf is the events by which the i-th namespace with a primary network comes, with a pod on each of two nodes.
func tenantOf(i int) (out []cluster.Event) {
	ns := fmt.Sprintf("tenant-%04d", i)
	put := func(o cluster.Object) { out = append(out, cluster.Event{Ref: o.Ref(), New: o}) }
	network := &cluster.Network{Name: names.Defined(ns, "own"), Topology: cluster.Layer2, Primary: true,
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/22")}}}
	if err := network.SetJoin([]netip.Prefix{netip.MustParsePrefix("100.66.0.0/24")}); err != nil {
		panic(err)
	}
	put(&cluster.Namespace{Name: ns, UID: ns, Labels: cluster.NewLabels(map[string]string{names.PrimaryLabel: ""})})
	put(&cluster.NetworkDefinition{Name: cluster.Name{Namespace: ns, Name: "own"}, Network: network})
	for j := range 2 {
		put(&cluster.Pod{Name: cluster.Name{Namespace: ns, Name: fmt.Sprint("p", j)}, UID: fmt.Sprint(ns, j),
			Node: fmt.Sprint("n", j), Created: int64(j)})
	}
	return out
}

// networkCluster is the settings of the cluster in which many networks are.
func networkCluster() config.Cluster {
	c := config.DefaultCluster()
	c.Subnets = []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.128.0.0/14"), NodeLength: 20}}
	return c
}

// manyNetworks has 300 primary networks come, one event at a time, and computes the rows of every owner that each event
// concerns. It returns what the API server has then.
func manyNetworks(b *testing.B) map[cluster.Ref]cluster.Object {
	const networks = 300
	schema := nb.NewSchema()
	x := core.New(networkCluster(), schema, all.Translators(schema))
	x.Start()
	objects, annotations := map[cluster.Ref]cluster.Object{}, map[cluster.Ref]map[string]string{}
	step := func(e cluster.Event) {
		out := x.Step([]cluster.Event{e})
		objects[e.Ref] = e.New
		for _, p := range out.Patches {
			if annotations[p.Ref] == nil {
				annotations[p.Ref] = map[string]string{}
			}
			maps.Copy(annotations[p.Ref], p.Annotations)
		}
		for _, o := range out.Dirty {
			if _, err := x.Rows(o); err != nil {
				b.Fatal(err)
			}
		}
	}
	for i := range 2 {
		n := &cluster.Node{Name: fmt.Sprint("n", i), UID: fmt.Sprint("n", i), ChassisID: fmt.Sprint("c", i)}
		step(cluster.Event{Ref: n.Ref(), New: n})
	}
	for i := range networks {
		for _, e := range tenantOf(i) {
			step(e)
		}
	}
	for ref, found := range annotations {
		switch o := objects[ref].(type) {
		case *cluster.Node:
			o.ReadAnnotations(found)
		case *cluster.Pod:
			o.Annotated = found[annotation.PodNetworks]
		}
	}
	return objects
}

// BenchmarkNetworks has many primary networks come.
func BenchmarkNetworks(b *testing.B) {
	for b.Loop() {
		manyNetworks(b)
	}
}

// BenchmarkNetworksAgain starts where many primary networks are: it computes all rows.
func BenchmarkNetworksAgain(b *testing.B) {
	var events []cluster.Event
	for ref, o := range manyNetworks(b) {
		events = append(events, cluster.Event{Ref: ref, New: o})
	}
	for b.Loop() {
		schema := nb.NewSchema()
		x := core.New(networkCluster(), schema, all.Translators(schema))
		x.Step(events)
		for _, p := range x.Start().Problems {
			b.Fatal(p)
		}
		for _, o := range x.Owners() {
			if _, err := x.Rows(o); err != nil {
				b.Fatal(err)
			}
		}
	}
}
