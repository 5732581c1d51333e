package nb_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// remembering is a database in memory that remembers, as the live one does, which UUIDs were used.
type remembering struct {
	*nb.Database
	s     *nb.Schema
	spent map[string]bool
}

func newRemembering(s *nb.Schema) remembering {
	return remembering{nb.NewDatabase(s), s, map[string]bool{}}
}

// Spent implements nb.View.
func (v remembering) Spent(r nb.Ref) bool { return v.spent[r.UUID] }

// rows lists what is there.
func (v remembering) rows() []nb.Ref {
	var out []nb.Ref
	for _, table := range v.s.Tables() {
		for _, m := range v.Rows(table) {
			out = append(out, v.s.Ref(m))
		}
	}
	return out
}

// do changes the database and remembers what went.
func (v remembering) do(change func()) {
	before := v.rows()
	change()
	for _, r := range before {
		if v.Row(r) == nil {
			v.spent[r.UUID] = true
		}
	}
}

// copied is a database of its own with the same content.
func (v remembering) copied() remembering {
	out := remembering{nb.NewDatabase(v.s), v.s, maps.Clone(v.spent)}
	for _, r := range v.rows() {
		out.Put(v.Row(r))
	}
	return out
}

// shape is a database as text, with what rows are for in place of their UUIDs.
func shape(s *nb.Schema, db *nb.Database) string {
	var labels []string
	for _, table := range s.Tables() {
		for _, m := range db.Rows(table) {
			k, _ := s.Mark(m)
			labels = append(labels, s.Ref(m).UUID, table+" "+k.Owner.String()+" "+k.Role)
		}
	}
	lines := strings.Split(strings.NewReplacer(labels...).Replace(dump(s, db)), "\n")
	for i, l := range lines {
		words := strings.FieldsFunc(l, func(r rune) bool { return strings.ContainsRune("[] ", r) })
		slices.Sort(words) // sets of references were in the order of UUIDs
		lines[i] = strings.Join(words, " ")
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Law: whatever went before, by plan or by hand, rows are as wanted, each under a UUID that was not used before as long
// as it has one, and what refers to them finds them.
func TestEveryPathLeadsToWant(t *testing.T) {
	stood := map[string]int{}
	for seed := range uint64(rounds / 10) {
		g := newGenerator(seed)
		v := newRemembering(g.s)
		for step := range 8 {
			w := g.world()
			for _, r := range v.rows() {
				if g.chance(10) {
					v.do(func() { v.Drop(r) })
				}
			}
			ps := plans(t, g.s, v, w)
			checkInserts(t, v, ps, stood)
			v.do(func() { applyAll(t, v.Database, ps) })
			if again := plans(t, g.s, v, w); len(again) != 0 {
				t.Fatalf("seed %d, step %d: a plan after applying the plan:\n%s", seed, step, text(again))
			}
			if got, want := shape(g.s, v.Database), shape(g.s, built(t, g.s, w)); got != want {
				t.Fatalf("seed %d, step %d: the path leads to\n%s\nfrom nothing:\n%s", seed, step, got, want)
			}
		}
	}
	for _, table := range newGenerator(0).s.Tables() {
		if stood[table] == 0 && table != nbdb.NATTable && table != nbdb.LoadBalancerHealthCheckTable {
			t.Errorf("no row of %s ever came back under a stand-in", table)
		}
	}
}

// checkInserts holds that no plan uses a UUID again while the row has others, and counts the stand-ins.
func checkInserts(t *testing.T, v remembering, ps []nb.Plan, stood map[string]int) {
	t.Helper()
	for _, p := range ps {
		for _, r := range p.Rows {
			if r.Verb == nb.Insert && r.UUID != r.Derived {
				stood[r.Key.Table]++
			}
			if r.Verb != nb.Insert || !v.spent[r.UUID] {
				continue
			}
			for n := 1; n <= names.StandIns; n++ {
				if !v.spent[names.StandIn(r.Derived, n)] {
					t.Fatalf("UUID %s is used again, stand-in %d is free:\n%s", r.UUID, n, p)
				}
			}
		}
	}
}

// Law: owners may be planned in any order, each in a transaction of its own, when those that fail are tried again: for
// want of a row to be listed in or to refer to, or because the server refuses to delete what others still refer to.
func TestAnyOrderLeadsToWant(t *testing.T) {
	missed := 0
	for seed := range uint64(rounds / 10) {
		g := newGenerator(seed)
		v := newRemembering(g.s)
		for step := range 3 {
			w := g.world()
			waiting := append(w.owners(), v.Owners()...)
			slices.SortFunc(waiting, nb.Owner.Compare)
			waiting = slices.Compact(waiting)
			for round := 0; len(waiting) > 0; round++ {
				if round > 5 {
					t.Fatalf("seed %d, step %d: %v still fail", seed, step, waiting)
				}
				g.r.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
				waiting = slices.DeleteFunc(waiting, func(o nb.Owner) bool {
					p, err := g.s.Plan(v, o, w[o], nil)
					if missing := (*nb.MissingParentError)(nil); errors.As(err, &missing) {
						missed++
						return false
					} else if err != nil {
						t.Fatal(err)
					}
					next := v.copied()
					next.do(func() { err = next.Apply(p) })
					if err == nil {
						v = next
					}
					return err == nil
				})
			}
			// What an owner added may have gone with a row that another one deleted later on.
			v.do(func() { applyAll(t, v.Database, plans(t, g.s, v, w)) })
			if got, want := shape(g.s, v.Database), shape(g.s, built(t, g.s, w)); got != want {
				t.Fatalf("seed %d, step %d: in this order\n%s\nfrom nothing:\n%s", seed, step, got, want)
			}
		}
	}
	if missed == 0 {
		t.Error("nobody ever had to wait")
	}
}

// half is a database of which some UUIDs, there or not, count as used.
type half struct{ *nb.Database }

// Spent implements nb.View.
func (half) Spent(r nb.Ref) bool { return r.UUID[0] < '8' }

// Law: a plan is the same whatever the order of its inputs, also where rows get stand-ins.
func TestStandInsDoNotDependOnOrder(t *testing.T) {
	for seed := range uint64(rounds / 3) {
		g := newGenerator(seed)
		have, want := g.world(), g.world()
		first := text(plans(t, g.s, half{built(t, g.s, have)}, want))
		for range 3 {
			if again := text(plans(t, g.s, half{built(t, g.s, g.shuffled(have))}, g.shuffled(want))); again != first {
				t.Fatalf("seed %d: two orders, two plans:\n%s\n%s", seed, first, again)
			}
		}
	}
}
