package core_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// Owners that vanish are planned last and in reverse order, also over two batches. After the first batch, the rows that
// others referred to still exist. After the second, only the cluster's own rows are left.
func TestVanishedOwnersOverTwoBatches(t *testing.T) {
	c := config.DefaultCluster()
	c.Subnets = []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.244.0.0/16"), NodeLength: 24}}
	schema := nb.NewSchema()
	w := &world{Core: core.New(c, schema, all.Translators(schema)), t: t, db: nb.NewDatabase(schema)}
	w.Start()
	w.carryOut(w.Owners())
	pod := &cluster.Pod{Name: cluster.Name{Namespace: "default", Name: "p"}, UID: "uid-p", Node: "n"}
	objects := []cluster.Object{
		&cluster.Node{Name: "n", UID: "uid-n", Zone: "z"}, &cluster.Namespace{Name: "default", UID: "uid-d"}, pod,
		serviceOf("s", 1),
	}
	w.put(objects...)
	own := w.db.Owned(w.Owners()[0])

	var events []cluster.Event
	for _, o := range objects {
		events = append(events, cluster.Event{Ref: o.Ref()})
	}
	dirty := w.Step(events).Dirty
	slices.SortFunc(dirty, nb.Owner.Compare)
	dirty = slices.Compact(dirty)
	want := []names.Kind{names.KindZone, names.KindNode, names.KindNamespace, names.KindPod, names.KindService}
	if !slices.EqualFunc(dirty, want, func(o nb.Owner, k names.Kind) bool { return o.Kind == k }) {
		t.Fatalf("dirty %v, want one each of %v", dirty, want)
	}
	slices.Reverse(dirty)
	for i, part := range [][]nb.Owner{dirty[:2], dirty[2:]} {
		b := w.NewBatch(w.db, nil)
		for _, o := range part {
			if !b.Add(o) || len(b.Plans) != 0 {
				t.Fatalf("%s is planned before the others", o)
			}
		}
		for _, o := range part {
			b.AddVanished(o)
		}
		b.Settle()
		if err := b.Err(); err != nil || len(b.Plans) != len(part) {
			t.Fatalf("batch %d: %d plans, error %v; want %d", i+1, len(b.Plans), err, len(part))
		}
		for j, p := range b.Plans {
			if p.Owner != part[j] {
				t.Errorf("batch %d: plan %d is of %s, want %s", i+1, j, p.Owner, part[j])
			}
		}
		if err := w.db.Apply(b.Plans...); err != nil {
			t.Fatalf("batch %d: %v", i+1, err)
		}
		left := 1 - i
		if n := len(w.db.Rows(nbdb.LogicalSwitchTable)); n != 1+left {
			t.Errorf("batch %d: %d switches are left, want the join switch and %d of nodes", i+1, n, left)
		}
		if lb, ports := len(w.db.Rows(nbdb.LoadBalancerTable)),
			w.db.Owned(nb.Owner{Kind: names.KindPod, Name: pod.Name.String()}); lb != 0 || len(ports) != 0 {
			t.Errorf("batch %d: %d load balancers and rows %v of the pod are left, want none", i+1, lb, ports)
		}
	}
	if got := w.db.Owners(); len(got) != 1 || len(w.db.Owned(got[0])) != len(own) {
		t.Errorf("rows of %v are left, want the cluster's %d", got, len(own))
	}
}
