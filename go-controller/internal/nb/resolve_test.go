package nb

import (
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// spentView is a database in which some UUIDs were used not long ago.
type spentView struct {
	*Database
	spent map[string]bool
}

func (v spentView) Spent(r Ref) bool { return v.spent[r.UUID] }

// TestStandIn holds that a row that was just deleted comes back under another UUID, is known under it, and goes with
// it; and that it takes the derived one when that is free.
func TestStandIn(t *testing.T) {
	s := NewSchema()
	o := Owner{names.KindNamespace, "a"}
	row := func() []Row {
		return []Row{s.NewRow(Key{nbdb.AddressSetTable, o, "addresses-v4"}, &nbdb.AddressSet{
			UUID: names.RowUUID(nbdb.AddressSetTable, o.Kind, o.Name, "addresses-v4", ""), Name: "ns_a_v4"})}
	}
	derived := s.Ref(row()[0].Model)
	v := spentView{NewDatabase(s), map[string]bool{}}
	apply := func(want []Row) Plan {
		t.Helper()
		p, err := s.Plan(v, o, want, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Apply(p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i := range 2 * names.StandIns {
		apply(row())
		rows := v.Rows(nbdb.AddressSetTable)
		if len(rows) != 1 {
			t.Fatalf("round %d: %d rows, want 1", i, len(rows))
		}
		ref := s.Ref(rows[0])
		if want := derived.UUID; i == 0 && ref.UUID != want {
			t.Errorf("a row that was never deleted has UUID %s, want the derived one %s", ref.UUID, want)
		}
		if i > 0 && i <= names.StandIns && v.spent[ref.UUID] {
			t.Errorf("round %d: UUID %s was just deleted", i, ref.UUID)
		}
		if p := apply(row()); !p.Empty() {
			t.Errorf("round %d: the row is not known under its UUID: %s", i, p)
		}
		v.spent[ref.UUID] = true
		v.Drop(ref)
	}
	clear(v.spent)
	apply(row())
	if ref := s.Ref(v.Rows(nbdb.AddressSetTable)[0]); ref != derived {
		t.Errorf("later on the row has %v, want the derived %v", ref, derived)
	}
	apply(nil)
	if n := len(v.Rows(nbdb.AddressSetTable)); n != 0 {
		t.Errorf("%d rows are left of an owner that wants none", n)
	}
}

// TestStandInWithHealthCheck holds that a load balancer comes back under another UUID, too, and has its own health
// checks in it.
func TestStandInWithHealthCheck(t *testing.T) {
	s := NewSchema()
	o := Owner{names.KindService, "a/b"}
	uuid := func(table, role string) string { return names.RowUUID(table, o.Kind, o.Name, role, "") }
	lb := &nbdb.LoadBalancer{UUID: uuid(nbdb.LoadBalancerTable, "lb"), Name: "Service_a/b_TCP"}
	check := &nbdb.LoadBalancerHealthCheck{UUID: uuid(nbdb.LoadBalancerHealthCheckTable, "check"), Vip: "10.96.0.1:80"}
	want := []Row{
		s.NewRow(Key{nbdb.LoadBalancerTable, o, "lb"}, lb),
		s.NewRow(Key{nbdb.LoadBalancerHealthCheckTable, o, "check"}, check, Slot{s.Ref(lb), "health_check"}),
	}
	v := spentView{NewDatabase(s), map[string]bool{lb.UUID: true, check.UUID: true}}
	for round := range 2 {
		p, err := s.Plan(v, o, want, nil)
		if err != nil {
			t.Fatal(err)
		}
		if round > 0 && !p.Empty() {
			t.Errorf("the rows are not known under their UUIDs: %s", p)
		}
		if err := v.Apply(p); err != nil {
			t.Fatal(err)
		}
	}
	lbs, checks := v.Rows(nbdb.LoadBalancerTable), v.Rows(nbdb.LoadBalancerHealthCheckTable)
	if len(lbs) != 1 || len(checks) != 1 || s.Ref(lbs[0]).UUID == lb.UUID || s.Ref(checks[0]).UUID == check.UUID {
		t.Fatalf("%v and %v, want one of each under other UUIDs than %s and %s", lbs, checks, lb.UUID, check.UUID)
	}
	if !v.Lists(Slot{s.Ref(lbs[0]), "health_check"}, s.Ref(checks[0]).UUID) {
		t.Error("the load balancer does not list its health check")
	}
}
