package ovsdb

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// What our own transaction inserts comes back as nobody's news; what somebody does to it afterwards is the owner's.
func TestOurOwnRowsAreNoNews(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	s := session(t, open(t, remote))
	if _, err := s.Transact(t.Context(), []nb.Plan{plan(t, s, rows(s.schema, "a"))}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the rows come back", func() string {
		s.index.mu.Lock()
		defer s.index.mu.Unlock()
		for r, slots := range s.index.coming.listed {
			if len(slots) > 0 {
				return fmt.Sprintf("%v is not listed yet", r)
			}
		}
		if n := len(s.index.coming.rows); n > 0 {
			return fmt.Sprintf("%d rows did not come yet", n)
		}
		return ""
	})
	if dirty := s.TakeDirty(); len(dirty) != 0 {
		t.Errorf("our own rows make %v dirty, want nobody", dirty)
	}
	testkit.Run(t, "ovn-nbctl", "--db="+remote, "lsp-set-addresses", "k8s-n1", "unknown")
	testkit.Eventually(t, "somebody else's change", func() string {
		if dirty := s.TakeDirty(); !slices.Contains(dirty, owner()) {
			return fmt.Sprintf("%v are dirty, want %v", dirty, owner())
		}
		return ""
	})
}

// Anything but the very row that is expected, once and where it is expected, is news.
func TestWhatIsNotExpectedIsNews(t *testing.T) {
	schema := nb.NewSchema()
	want := rows(schema, "a")
	p, err := schema.Plan(nb.NewDatabase(schema), owner(), want, nil)
	if err != nil {
		t.Fatal(err)
	}
	port := want[1].Model
	other := model.Clone(port)
	other.(*nbdb.LogicalSwitchPort).Addresses = []string{"b"}
	unmarked := model.Clone(port)
	unmarked.(*nbdb.LogicalSwitchPort).ExternalIDs = nil
	holding := model.Clone(want[0].Model)
	holding.(*nbdb.LogicalSwitch).Ports = []string{schema.Ref(port).UUID}

	type event struct{ before, after model.Model }
	for what, c := range map[string]struct {
		expected []nb.Plan
		events   []event
		news     bool
	}{
		"the row":              {[]nb.Plan{p}, []event{{nil, port}}, false},
		"the row, listed":      {[]nb.Plan{p}, []event{{nil, port}, {want[0].Model, holding}}, false},
		"listed, the row":      {[]nb.Plan{p}, []event{{want[0].Model, holding}, {nil, port}}, false},
		"nothing was expected": {nil, []event{{nil, port}}, true},
		"listed, nothing was expected": {[]nb.Plan{{Owner: owner(), Rows: p.Rows}},
			[]event{{nil, port}, {want[0].Model, holding}}, true},
		"other content":               {[]nb.Plan{p}, []event{{nil, other}}, true},
		"the row, then other content": {[]nb.Plan{p}, []event{{nil, port}, {port, other}}, true},
		"the row, then it is gone":    {[]nb.Plan{p}, []event{{nil, port}, {port, nil}}, true},
		"the row, its mark is taken":  {[]nb.Plan{p}, []event{{nil, port}, {port, unmarked}}, true},
		"the row, listed, not any more": {[]nb.Plan{p},
			[]event{{nil, port}, {want[0].Model, holding}, {holding, want[0].Model}}, true},
	} {
		t.Run(what, func(t *testing.T) {
			woken := 0
			x := newIndex(schema, func() { woken++ })
			x.expect(c.expected)
			for _, e := range c.events {
				x.change(e.before, e.after)
			}
			if dirty := x.takeDirty(); slices.Contains(dirty, owner()) != c.news {
				t.Errorf("%v are dirty, want news for %v: %v", dirty, owner(), c.news)
			}
			if (woken > 0) != c.news {
				t.Errorf("woken %d times, want that when there is news only", woken)
			}
		})
	}
	t.Run("the row comes, goes and comes", func(t *testing.T) {
		x := newIndex(schema, func() {})
		x.expect([]nb.Plan{p})
		x.change(nil, port)
		x.change(port, nil)
		x.takeDirty()
		x.change(nil, port)
		if dirty := x.takeDirty(); !slices.Contains(dirty, owner()) {
			t.Errorf("%v are dirty, want %v: it was expected once", dirty, owner())
		}
	})
}

// A row that nobody owns may be in an owner's way until it goes or is another. An owner's row is not, nor is the
// master's own record.
func TestRowsThatWereInTheWay(t *testing.T) {
	schema := nb.NewSchema()
	ours := rows(schema, "a")[1].Model
	theirs := model.Clone(ours).(*nbdb.LogicalSwitchPort)
	theirs.UUID, theirs.ExternalIDs = "00000000-0000-4000-8000-000000000001", nil
	renamed := model.Clone(theirs).(*nbdb.LogicalSwitchPort)
	renamed.Name = "another"
	record := &nbdb.AddressSet{UUID: freedSet().UUID, Name: "northbound_freed"}
	longer := model.Clone(record).(*nbdb.AddressSet)
	longer.ExternalIDs = map[string]string{"10.128.1.7": "2026-01-02T15:04:05Z"}
	for what, c := range map[string]struct {
		before, after model.Model
		want          bool
	}{
		"theirs comes": {nil, theirs, false}, "theirs goes": {theirs, nil, true},
		"theirs is another": {theirs, renamed, true}, "ours goes": {ours, nil, false},
		"the record grows": {record, longer, false},
	} {
		x := newIndex(schema, func() {})
		x.change(c.before, c.after)
		if got := x.takeCleared(); got != c.want || x.takeCleared() {
			t.Errorf("%s: may have been in the way: %v, want %v, and that once", what, got, c.want)
		}
	}
}

// A row and the place that lists it go together, and are told of one after the other, in any order: whoever looks in
// between does not use the UUID again.
func TestUnlistedRowIsSpent(t *testing.T) {
	schema := nb.NewSchema()
	want := rows(schema, "a")
	empty, port := want[0].Model, want[1].Model
	uuid := schema.Ref(port).UUID
	holding := model.Clone(empty)
	holding.(*nbdb.LogicalSwitch).Ports = []string{uuid}
	for what, gone := range map[string][2]model.Model{"not listed any more": {holding, empty}, "gone": {port, nil}} {
		x := newIndex(schema, func() {})
		x.change(nil, port)
		x.change(empty, holding)
		if x.takeDirty(); x.spentNow(uuid) {
			t.Errorf("%s: its UUID is spent while it is there", what)
		}
		x.change(gone[0], gone[1])
		if dirty := x.takeDirty(); !slices.Contains(dirty, owner()) || !x.spentNow(uuid) {
			t.Errorf("%s: %v are dirty, want %v, and its UUID spent", what, dirty, owner())
		}
	}
}

// However many rows go at once, the last are remembered, and not all.
func TestManyRowsAreSpent(t *testing.T) {
	x := newIndex(nb.NewSchema(), func() {})
	const many = 3 * spentMax
	for i := range many {
		x.spend(strconv.Itoa(i))
	}
	for i := many - spentMax/2; i < many; i++ {
		if !x.spentNow(strconv.Itoa(i)) {
			t.Fatalf("of %d rows that went the %d. is forgotten", many, i)
		}
	}
	if n := len(x.spent) + len(x.earlier); n > spentMax || x.spentNow("0") {
		t.Errorf("%d are remembered, the first among them: %v", n, x.spentNow("0"))
	}
}
