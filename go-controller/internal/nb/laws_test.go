package nb_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// rounds is how many random worlds each law is held against.
const rounds = 300

// Law: what is there needs no plan, and from anywhere a plan leads to what is wanted, whole.
func TestPlanLeadsToWant(t *testing.T) {
	for seed := range uint64(rounds) {
		g := newGenerator(seed)
		have, want := g.world(), g.world()
		db := built(t, g.s, have)
		if again := plans(t, g.s, db, have); len(again) != 0 {
			t.Fatalf("seed %d: a plan of what is there:\n%s", seed, text(again))
		}
		applyAll(t, db, plans(t, g.s, db, want))
		if again := plans(t, g.s, db, want); len(again) != 0 {
			t.Fatalf("seed %d: a plan after applying the plan:\n%s", seed, text(again))
		}
		if got, scratch := dump(g.s, db), dump(g.s, built(t, g.s, want)); got != scratch {
			t.Fatalf("seed %d: by plan:\n%s\nfrom nothing:\n%s", seed, got, scratch)
		}
		rows := 0
		for _, list := range want {
			rows += len(list)
		}
		if n := strings.Count(dump(g.s, db), "\n") + 1; n != rows {
			t.Fatalf("seed %d: %d rows in the database, %d wanted", seed, n, rows)
		}
	}
}

// Law: a plan is the same whatever the order of its inputs.
func TestPlanDoesNotDependOnOrder(t *testing.T) {
	for seed := range uint64(rounds) {
		g := newGenerator(seed)
		have, want := g.world(), g.world()
		first := text(plans(t, g.s, built(t, g.s, have), want))
		for range 3 {
			if again := text(plans(t, g.s, built(t, g.s, g.shuffled(have)), g.shuffled(want))); again != first {
				t.Fatalf("seed %d: two orders, two plans:\n%s\n%s", seed, first, again)
			}
		}
	}
}

// foreign puts rows of somebody else into db, among them some inside ours and ours inside them, and tells their UUIDs.
func foreign(g generator, db *nb.Database) map[string]bool {
	sw, port, lb, group, set, ports, acl := id(g), id(g), id(g), id(g), id(g), id(g), id(g)
	ids := map[string]bool{sw: true, port: true, lb: true, group: true, set: true, ports: true, acl: true}
	theirs := map[string]string{"neutron:id": "7"}
	db.Put(&nbdb.LogicalSwitchPort{UUID: port, Name: "foreign", Addresses: []string{"unknown"}, ExternalIDs: theirs})
	db.Put(&nbdb.LogicalSwitch{UUID: sw, Name: "foreign", Ports: []string{port}, ExternalIDs: theirs})
	db.Put(&nbdb.LoadBalancer{UUID: lb, Name: "foreign", Vips: map[string]string{"1.1.1.1:1": "2.2.2.2:2"}})
	db.Put(&nbdb.AddressSet{UUID: set, Name: "foreign"})
	ourLBs := db.Rows(nbdb.LoadBalancerTable)
	theirGroup := &nbdb.LoadBalancerGroup{UUID: group, Name: "foreign", LoadBalancer: []string{lb}}
	for _, m := range ourLBs {
		if u := m.(*nbdb.LoadBalancer).UUID; u != lb && g.chance(50) {
			theirGroup.LoadBalancer = append(theirGroup.LoadBalancer, u)
		}
	}
	db.Put(theirGroup)
	for _, m := range db.Rows(nbdb.LoadBalancerGroupTable) {
		if ours := m.(*nbdb.LoadBalancerGroup); ours.UUID != group {
			ours.LoadBalancer = append(ours.LoadBalancer, lb)
		}
	}
	db.Put(&nbdb.ACL{UUID: acl, Match: "foreign"})
	theirPorts := &nbdb.PortGroup{UUID: ports, Name: "foreign", Ports: []string{port}, ACLs: []string{acl}}
	for _, m := range db.Rows(nbdb.LogicalSwitchPortTable) {
		if u := m.(*nbdb.LogicalSwitchPort).UUID; u != port && g.chance(50) {
			theirPorts.Ports = append(theirPorts.Ports, u)
		}
	}
	for _, m := range db.Rows(nbdb.PortGroupTable) {
		ours := m.(*nbdb.PortGroup)
		ours.Ports, ours.ACLs = append(ours.Ports, port), append(ours.ACLs, acl)
	}
	db.Put(theirPorts)
	for _, m := range db.Rows(nbdb.LogicalSwitchTable) {
		if ours := m.(*nbdb.LogicalSwitch); ours.UUID != sw && g.chance(50) {
			p := id(g)
			ids[p] = true
			db.Put(&nbdb.LogicalSwitchPort{UUID: p, Name: p, ExternalIDs: theirs})
			ours.Ports = append(ours.Ports, p)
		}
	}
	return ids
}

// id is a random UUID, as ovsdb-server gives to rows of others.
func id(g generator) string {
	var b [16]byte
	for i := range b {
		b[i] = byte(g.r.Uint32())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return uuid.UUID(b).String()
}

// Law: rows of others are in no plan; they stay as they are, where they are.
func TestForeignRowsAreLeftAlone(t *testing.T) {
	for seed := range uint64(rounds) {
		g := newGenerator(seed)
		db := built(t, g.s, g.world())
		ids := foreign(g, db)
		before := foreignRows(g.s, db, ids)
		want := g.world()
		ps := plans(t, g.s, db, want)
		for _, p := range ps {
			for _, r := range p.Rows {
				if ids[r.UUID] {
					t.Fatalf("seed %d: a foreign row in a plan:\n%s", seed, p)
				}
			}
			for _, m := range p.Members {
				if ids[m.UUID] || ids[m.Slot.In.UUID] {
					t.Fatalf("seed %d: a membership of or in a foreign row in a plan:\n%s", seed, p)
				}
			}
		}
		applyAll(t, db, ps)
		after := foreignRows(g.s, db, ids)
		for u, m := range after {
			if before[u] != m {
				t.Fatalf("seed %d: foreign row changed:\n%s\n%s", seed, before[u], m)
			}
		}
		for u, m := range before {
			if _, there := after[u]; !there && !strings.HasPrefix(m, nbdb.LogicalSwitchPortTable) {
				t.Fatalf("seed %d: foreign row gone: %s", seed, m)
			}
		}
	}
}

// foreignRows is the rows of others as text. Load balancers and ports of ours that have gone since leave their groups
// by themselves, so a group is shown without them.
func foreignRows(s *nb.Schema, db *nb.Database, ids map[string]bool) map[string]string {
	out := map[string]string{}
	for _, table := range s.Tables() {
		for _, m := range db.Rows(table) {
			u := s.Ref(m).UUID
			if !ids[u] {
				continue
			}
			theirs := func(members []string) []string {
				return slices.DeleteFunc(slices.Clone(members), func(u string) bool { return !ids[u] })
			}
			switch g := m.(type) {
			case *nbdb.LoadBalancerGroup:
				c := *g
				c.LoadBalancer = theirs(g.LoadBalancer)
				m = &c
			case *nbdb.PortGroup:
				c := *g
				c.Ports, c.ACLs = theirs(g.Ports), theirs(g.ACLs)
				m = &c
			}
			out[u] = table + " " + row(m)
		}
	}
	return out
}

// Law: on our own rows, what others write stays: external_ids keys of theirs, columns that we never name, members of
// slots.
func TestForeignParts(t *testing.T) {
	for seed := range uint64(rounds) {
		g := newGenerator(seed)
		have := g.world()
		db := built(t, g.s, have)
		parent := "theirs"
		for _, m := range db.Rows(nbdb.LogicalSwitchPortTable) {
			p := m.(*nbdb.LogicalSwitchPort)
			p.ExternalIDs["foreign"] = "kept"
			p.ExternalIDs[names.KeyPrefix+"stale"] = "ours, so it goes"
			p.ParentName = &parent
		}
		want := g.world()
		applyAll(t, db, plans(t, g.s, db, want))
		for _, m := range db.Rows(nbdb.LogicalSwitchPortTable) {
			p := m.(*nbdb.LogicalSwitchPort)
			wasThere := wants(g.s, have, p.UUID)
			if kept := p.ExternalIDs["foreign"] == "kept" && p.ParentName != nil; kept != wasThere {
				t.Fatalf("seed %d: there before: %v, foreign parts kept: %v: %+v", seed, wasThere, kept, p)
			}
			if _, stale := p.ExternalIDs[names.KeyPrefix+"stale"]; stale {
				t.Fatalf("seed %d: a key of ours that nobody wants is still there: %v", seed, p.ExternalIDs)
			}
		}
	}
}

func wants(s *nb.Schema, w world, uuid string) bool {
	for _, rows := range w {
		for _, r := range rows {
			if s.Ref(r.Model).UUID == uuid {
				return true
			}
		}
	}
	return false
}

// A port whose switch is not there is no reason to insert it: nothing would list it. The plan says which row it waits
// for, and works once that is there or comes in the same batch.
func TestMissingParent(t *testing.T) {
	g := newGenerator(1)
	w := world{}
	router, group := g.cluster(w)
	sw := g.node(w, "n1", router, group)
	g.pod(w, "default/p", sw)
	pod, node := nb.Owner{Kind: names.KindPod, Name: "default/p"}, nb.Owner{Kind: names.KindNode, Name: "n1"}
	db := nb.NewDatabase(g.s)
	p, err := g.s.Plan(db, pod, w[pod], nb.Scope{})
	var missing *nb.MissingParentError
	if !errors.As(err, &missing) || missing.Slot.In != sw || missing.Key.Owner != pod {
		t.Fatalf("error %v, want a MissingParentError for %s", err, sw)
	}
	if !p.Empty() || p.Owner != pod {
		t.Errorf("a plan besides the error: %s", p)
	}
	want := "Logical_Switch_Port of Pod default/p must be listed in Logical_Switch.ports of row " + sw.UUID +
		", which does not exist yet"
	if err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	scope := nb.Scope{}
	failed := maps.Clone(scope)
	if _, err := g.s.Plan(db, pod, w[pod], scope); err == nil || !maps.Equal(scope, failed) {
		t.Errorf("a plan that failed left %v in the scope", scope)
	}
	cluster := nb.Owner{Kind: names.KindCluster, Name: names.ClusterOwner}
	var batch []nb.Plan
	for _, o := range []nb.Owner{cluster, node, pod} {
		p, err := g.s.Plan(db, o, w[o], scope)
		if err != nil {
			t.Fatalf("plan of %s in one batch: %v", o, err)
		}
		batch = append(batch, p)
	}
	applyAll(t, db, batch)
	if n := len(db.Rows(nbdb.LogicalSwitchPortTable)); n != 1 {
		t.Errorf("%d ports, want 1", n)
	}
}
