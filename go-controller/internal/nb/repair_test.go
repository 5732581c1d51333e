package nb_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// Law: whatever a person does by hand to our rows, the next plan undoes it.
func TestHandEditsAreRepaired(t *testing.T) {
	var db *nb.Database
	edits := map[string]func(g generator, m model.Model){
		"the mark removed": func(_ generator, m model.Model) {
			clear(marks(m))
		},
		"one key of the mark removed": func(g generator, m model.Model) {
			delete(marks(m), g.pick(names.OwnerTypeKey, names.OwnerNameKey, names.RoleKey))
		},
		"the role changed":      func(_ generator, m model.Model) { marks(m)[names.RoleKey] = "other" },
		"a classic key changed": func(_ generator, m model.Model) { marks(m)[names.KeyPod] = "no" },
		"addresses changed": func(_ generator, m model.Model) {
			if p, ok := m.(*nbdb.LogicalSwitchPort); ok {
				p.Addresses, p.PortSecurity = []string{"unknown"}, nil
			}
		},
		"ports emptied": func(_ generator, m model.Model) {
			if s, ok := m.(*nbdb.LogicalSwitch); ok {
				s.Ports, s.Name = nil, "renamed"
			}
		},
		"bandwidth changed": func(_ generator, m model.Model) {
			if q, ok := m.(*nbdb.QoS); ok {
				q.Bandwidth, q.Priority = map[string]int{"rate": 9}, 9
			}
		},
		"groups emptied": func(g generator, m model.Model) {
			if p, ok := m.(*nbdb.PortGroup); ok {
				p.Ports, p.ACLs, p.Name = nil, nil, g.pick(p.Name, "renamed")
			}
		},
		"ports in other groups": func(_ generator, m model.Model) {
			if p, ok := m.(*nbdb.PortGroup); ok {
				for _, port := range db.Rows(nbdb.LogicalSwitchPortTable) {
					p.Ports = append(p.Ports, port.(*nbdb.LogicalSwitchPort).UUID)
				}
				slices.Sort(p.Ports)
				p.Ports = slices.Compact(p.Ports)
			}
		},
		"rules changed": func(_ generator, m model.Model) {
			if a, ok := m.(*nbdb.ACL); ok {
				a.Log, a.Severity, a.Meter, a.Label, a.Tier = !a.Log, nil, &a.Match, 7, 3
			}
		},
		"meters changed": func(_ generator, m model.Model) {
			switch m := m.(type) {
			case *nbdb.Meter:
				m.Fair, m.Unit = nil, nbdb.MeterUnitKbps
			case *nbdb.MeterBand:
				m.Rate, m.BurstSize = 9, 9
			}
		},
		"vips and protocol changed": func(_ generator, m model.Model) {
			if lb, ok := m.(*nbdb.LoadBalancer); ok {
				lb.Protocol, lb.Vips = nil, map[string]string{"a": "x"}
			}
		},
	}
	for what, edit := range edits {
		t.Run(what, func(t *testing.T) {
			for seed := range uint64(rounds / 5) {
				g := newGenerator(seed)
				w := g.world()
				db = built(t, g.s, w)
				good := dump(g.s, db)
				for _, table := range g.s.Tables() {
					for _, m := range db.Rows(table) {
						if g.s.Marked(table) && g.chance(50) {
							edit(g, m)
						}
					}
				}
				db.Drop(nb.Ref{}) // what the edits left unlisted goes
				applyAll(t, db, plans(t, g.s, db, w))
				if got := dump(g.s, db); got != good {
					t.Fatalf("seed %d:\n%s\nwant\n%s", seed, got, good)
				}
			}
		})
	}
}

// Law: a row that was given the mark of another owner gets its own back, and is not deleted on behalf of that other
// one.
func TestMarkOfAnother(t *testing.T) {
	for seed := range uint64(rounds / 5) {
		g := newGenerator(seed)
		w := g.world()
		db := built(t, g.s, w)
		good := dump(g.s, db)
		for _, m := range db.Rows(nbdb.LogicalSwitchPortTable) {
			if g.chance(50) {
				marks(m)[names.OwnerNameKey] = g.pick("default/p0", "default/p7", "default/none", "a/first")
			}
		}
		raw := plans(t, g.s, db, w)
		ps, done := nb.Settled(raw)
		if len(ps)+len(done) != len(raw) {
			t.Fatalf("seed %d: %d plans settle to %d and %d owners with nothing to do", seed, len(raw), len(ps), len(done))
		}
		for _, p := range ps {
			for _, r := range p.Rows {
				if r.Verb != nb.Update {
					t.Fatalf("seed %d: more than a mark is written:\n%s", seed, p)
				}
			}
		}
		applyAll(t, db, ps)
		if got := dump(g.s, db); got != good {
			t.Fatalf("seed %d:\n%s\nwant\n%s", seed, got, good)
		}
	}
}

// marks is the external_ids of a row of a table that has them.
func marks(m model.Model) map[string]string {
	switch m := m.(type) {
	case *nbdb.LogicalRouter:
		return m.ExternalIDs
	case *nbdb.LogicalSwitch:
		return m.ExternalIDs
	case *nbdb.LogicalRouterPort:
		return m.ExternalIDs
	case *nbdb.LogicalRouterStaticRoute:
		return m.ExternalIDs
	case *nbdb.LogicalRouterPolicy:
		return m.ExternalIDs
	case *nbdb.LogicalSwitchPort:
		return m.ExternalIDs
	case *nbdb.QoS:
		return m.ExternalIDs
	case *nbdb.ACL:
		return m.ExternalIDs
	case *nbdb.PortGroup:
		return m.ExternalIDs
	case *nbdb.LoadBalancer:
		return m.ExternalIDs
	case *nbdb.AddressSet:
		return m.ExternalIDs
	}
	return map[string]string{}
}

// Law: rows that go missing, at random, come back as they were.
func TestDeletedRowsComeBack(t *testing.T) {
	for seed := range uint64(rounds) {
		g := newGenerator(seed)
		w := g.world()
		db := built(t, g.s, w)
		good := dump(g.s, db)
		for _, table := range g.s.Tables() {
			for _, m := range db.Rows(table) {
				if ref := g.s.Ref(m); table != nbdb.LoadBalancerGroupTable && g.chance(20) {
					db.Drop(ref)
				}
			}
		}
		applyAll(t, db, plans(t, g.s, db, w))
		if got := dump(g.s, db); got != good {
			t.Fatalf("seed %d:\n%s\nwant\n%s", seed, got, good)
		}
	}
}

// Law: a second row with a mark of ours, which a retried insert of an older version or a copy by hand may leave, goes;
// the derived one stays.
func TestDuplicateMarks(t *testing.T) {
	for seed := range uint64(rounds) {
		g := newGenerator(seed)
		w := g.world()
		db := built(t, g.s, w)
		good := dump(g.s, db)
		copies := 0
		for _, m := range db.Rows(nbdb.LogicalSwitchPortTable) {
			c := model.Clone(m).(*nbdb.LogicalSwitchPort)
			c.UUID = id(g)
			c.Name = "copy-of-" + c.Name
			db.Put(c)
			parent := db.Row(db.Parents(g.s.Ref(m))[0].In).(*nbdb.LogicalSwitch)
			parent.Ports = append(parent.Ports, c.UUID)
			db.Put(parent)
			copies++
		}
		ps := plans(t, g.s, db, w)
		deletes := 0
		for _, p := range ps {
			for _, r := range p.Rows {
				if r.Verb != nb.Delete || !strings.HasPrefix(r.Label, "copy-of-") {
					t.Fatalf("seed %d: plan does more than delete the copies:\n%s", seed, p)
				}
				deletes++
			}
		}
		if deletes != copies {
			t.Fatalf("seed %d: %d deletes of %d copies", seed, deletes, copies)
		}
		applyAll(t, db, ps)
		if got := dump(g.s, db); got != good {
			t.Fatalf("seed %d:\n%s\nwant\n%s", seed, got, good)
		}
	}
}
