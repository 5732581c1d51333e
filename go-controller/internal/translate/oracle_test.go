package translate_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// master is the master's core with a database in memory.
type master struct {
	*core.Core
	db     *nb.Database
	rows   map[nb.Owner][]nb.Row // what following Affected led to
	parked map[nb.Owner]bool     // owners whose rows wait for a parent
	clock  int64
}

func newMaster(networks ...*cluster.Network) *master { return newMasterOf(smallCluster(), networks...) }

func newMasterOf(c config.Cluster, networks ...*cluster.Network) *master {
	m := unstarted(c, networks...)
	m.Start()
	return m
}

// someTenants is the configuration of a small cluster that has tenants for every third seed.
func someTenants(seed uint64) config.Cluster {
	c := smallCluster()
	c.Multitenant = seed%3 == 0
	return c
}

// unstarted is a master that does not grant anything yet.
func unstarted(c config.Cluster, networks ...*cluster.Network) *master {
	s := nb.NewSchema()
	return &master{Core: core.New(c, s, all.Translators(s), networks...), db: nb.NewDatabase(s),
		rows: map[nb.Owner][]nb.Row{}, parked: map[nb.Owner]bool{}}
}

// batch applies events, lets so much time pass that what they freed is given again, brings the database up to date, and
// returns the patches for the API server.
func (m *master) batch(events []cluster.Event) ([]allocate.Patch, error) {
	res := m.Step(events)
	m.clock += 100
	later := m.Advance(m.clock)
	dirty := maps.Clone(m.parked)
	for _, o := range append(res.Dirty, later.Dirty...) {
		dirty[o] = true
	}
	return append(res.Patches, later.Patches...), m.update(dirty)
}

// update plans and applies the dirty owners as one transaction, and then the owners whose rows that deleted.
func (m *master) update(dirty map[nb.Owner]bool) error {
	for len(dirty) > 0 {
		before := m.owned()
		if err := m.transact(dirty); err != nil {
			return err
		}
		after := m.owned()
		next := map[nb.Owner]bool{}
		for o, n := range before {
			if after[o] < n && !dirty[o] {
				next[o] = true
			}
		}
		dirty = next
	}
	return nil
}

func (m *master) transact(dirty map[nb.Owner]bool) error {
	for o := range dirty {
		want, err := m.Rows(o)
		if err != nil {
			return fmt.Errorf("rows of %s: %w", o, err)
		}
		if m.rows[o] = want.Rows; len(want.Rows) == 0 {
			delete(m.rows, o)
		}
		delete(m.parked, o)
	}
	b := m.Plan(m.db, slices.Collect(maps.Keys(dirty)), nil)
	for _, f := range b.Failed {
		if _, waits := f.MissingParent(); !waits {
			return f.Err
		}
		m.parked[f.Owner] = true
	}
	return m.db.Apply(b.Plans...)
}

// owned counts the rows of each owner in the database.
func (m *master) owned() map[nb.Owner]int {
	out := map[nb.Owner]int{}
	for _, o := range m.db.Owners() {
		out[o] = len(m.db.Owned(o))
	}
	return out
}

// full is the translation of a cluster from nothing.
func full(t *testing.T, c *core.Core) map[nb.Owner][]nb.Row {
	t.Helper()
	out := map[nb.Owner][]nb.Row{}
	for _, o := range c.Owners() {
		want, err := c.Rows(o)
		if err != nil {
			t.Fatalf("rows of %s: %v", o, err)
		}
		if len(want.Rows) > 0 {
			out[o] = want.Rows
		}
	}
	return out
}

// check checks the oracle's laws for the state that m is in.
func (m *master) check(t *testing.T) {
	t.Helper()
	want := full(t, m.Core)
	for o := range maps.Keys(want) {
		if !reflect.DeepEqual(m.rows[o], want[o]) {
			t.Fatalf("%s: incremental rows\n%swant\n%s", o, describe(m.rows[o]), describe(want[o]))
		}
	}
	for o := range m.rows {
		if _, there := want[o]; !there {
			t.Fatalf("%s has incremental rows, but wants none:\n%s", o, describe(m.rows[o]))
		}
	}
	if len(m.parked) != 0 {
		t.Fatalf("owners that wait for a parent that never comes: %v", slices.Collect(maps.Keys(m.parked)))
	}
	owners := append(slices.Collect(maps.Keys(want)), m.db.Owners()...)
	slices.SortFunc(owners, nb.Owner.Compare)
	scratch, scope := nb.NewDatabase(m.Schema), nb.Scope{}
	for _, o := range slices.Compact(owners) {
		p, err := m.Schema.Plan(m.db, o, want[o], nb.Scope{})
		if err != nil || !p.Empty() {
			t.Fatalf("plan of the fixed point for %s: %v\n%s", o, err, p)
		}
		p, err = m.Schema.Plan(scratch, o, want[o], scope)
		if err != nil {
			t.Fatalf("plan from nothing for %s: %v", o, err)
		}
		if err := scratch.Apply(p); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := dump(m.Schema, m.db), dump(m.Schema, scratch); got != want {
		t.Fatalf("the incremental database:\n%s\nfrom nothing:\n%s", got, want)
	}
}

func describe(rows []nb.Row) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "  %v %+v %v\n", r.Key, r.Model, r.ListIn)
	}
	return b.String()
}

// dump is a database as text.
func dump(s *nb.Schema, db *nb.Database) string {
	var b strings.Builder
	for _, table := range s.Tables() {
		for _, m := range db.Rows(table) {
			v := reflect.ValueOf(m).Elem()
			fmt.Fprintf(&b, "%s", table)
			for i := range v.NumField() {
				f := v.Field(i)
				if f.Kind() == reflect.Pointer && !f.IsNil() {
					f = f.Elem()
				}
				if l, ok := f.Interface().([]string); ok {
					f = reflect.ValueOf(slices.Sorted(slices.Values(l)))
				}
				fmt.Fprintf(&b, " %v", f.Interface())
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// run applies random batches to m. The patches of earlier batches come back later, or not at all when the object
// changed meanwhile.
func run(t *testing.T, p *path, m *master, batches int, each func()) {
	t.Helper()
	var patches []allocate.Patch
	step := func(events []cluster.Event) {
		more, err := m.batch(events)
		if err != nil {
			t.Fatal(err)
		}
		patches = append(patches, more...)
		each()
	}
	m.begin(t)
	for range batches {
		var events []cluster.Event
		for range 1 + p.r.IntN(5) {
			events = append(events, p.step())
		}
		for len(patches) > 0 && p.chance(60) {
			if e, ok := p.patched(patches[0]); ok {
				events = append(events, e)
			}
			patches = patches[1:]
		}
		step(events)
	}
	for len(patches) > 0 {
		var events []cluster.Event
		for _, patch := range patches {
			if e, ok := p.patched(patch); ok {
				events = append(events, e)
			}
		}
		patches = nil
		step(events)
	}
}

// The contract of every translator. After any path of changes, following Affected leads to the rows of a full
// translation of the final state. Then no plan has anything left to do, and the database is the one that a start from
// nothing makes.
func TestIncrementalEqualsFull(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := newMasterOf(someTenants(seed), blue(smallCluster().Subnets...))
			n := 0
			p := newPath(seed)
			p.primary = seed%4 == 1
			run(t, p, m, 150, func() {
				if n++; n%30 == 0 || p.primary && n > 30 && n%5 == 0 {
					m.check(t)
				}
			})
			m.check(t)
		})
	}
}

// A restart on an unchanged cluster, with the record of what was freed lately, grants the same, patches nothing and
// writes no row.
func TestRestart(t *testing.T) {
	seeds := []uint64{203} // a node loses its subnet while a pod on it waits for an address
	for seed := range uint64(40) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			p, m := newPath(seed), newMasterOf(someTenants(seed), blue(smallCluster().Subnets...))
			run(t, p, m, 150, func() {})
			again := unstarted(someTenants(seed), blue(smallCluster().Subnets...))
			again.db = m.db
			for r, o := range p.objects {
				again.Step([]cluster.Event{{Ref: r, New: o}})
			}
			again.Advance(m.clock)
			again.Ledger().Keep(again.State, m.Ledger().Freed())
			for _, patch := range again.Start().Patches {
				t.Errorf("patch of %s after a restart: %v", patch.Ref, patch.Annotations)
			}
			for n := range m.State.Networks {
				got, want := again.State.In(n), m.State.In(n)
				if !maps.EqualFunc(got.NodeSubnets, want.NodeSubnets, slices.Equal) {
					t.Errorf("%s: node subnets %v after a restart, before %v", n, got.NodeSubnets, want.NodeSubnets)
				}
				if !maps.EqualFunc(got.PodNetworks, want.PodNetworks, cluster.SamePodNetwork) {
					t.Errorf("%s: pod addresses %v after a restart, before %v", n, got.PodNetworks, want.PodNetworks)
				}
			}
			for o, rows := range full(t, again.Core) {
				if plan, err := again.Schema.Plan(again.db, o, rows, nb.Scope{}); err != nil || !plan.Empty() {
					t.Errorf("plan of %s after a restart: %v\n%s", o, err, plan)
				}
			}
		})
	}
}
