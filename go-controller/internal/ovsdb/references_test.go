package ovsdb_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// policies is random rows that refer to rows of other owners: ports in switches and port groups, rules in both.
type policies struct {
	r    *rand.Rand
	s    *nb.Schema
	want map[nb.Owner][]nb.Row
}

func (p *policies) some(percent int) bool { return p.r.IntN(100) < percent }

func (p *policies) ref(table string, o nb.Owner, role string) nb.Ref {
	return nb.Ref{Table: table, UUID: names.RowUUID(table, o.Kind, o.Name, role, "")}
}

func (p *policies) add(r nb.Ref, o nb.Owner, role string, m any, slots ...nb.Slot) {
	p.want[o] = append(p.want[o], p.s.NewRow(nb.Key{Table: r.Table, Owner: o, Role: role}, m, slots...))
}

// in is slots of a random part of these rows.
func (p *policies) in(column string, rows []nb.Ref) []nb.Slot {
	var out []nb.Slot
	for _, r := range rows {
		if p.some(50) {
			out = append(out, nb.Slot{In: r, Column: column})
		}
	}
	return out
}

func randomPolicies(r *rand.Rand, s *nb.Schema) map[nb.Owner][]nb.Row {
	p := &policies{r, s, map[nb.Owner][]nb.Row{}}
	var switches, groups []nb.Ref
	for i := range 2 {
		o := nb.Owner{Kind: names.KindNode, Name: fmt.Sprintf("n%d", i)}
		sw := p.ref(nbdb.LogicalSwitchTable, o, names.RoleSwitch)
		p.add(sw, o, names.RoleSwitch, &nbdb.LogicalSwitch{UUID: sw.UUID, Name: o.Name})
		switches = append(switches, sw)
	}
	for i := range 3 {
		o := nb.Owner{Kind: names.KindNamespace, Name: fmt.Sprintf("ns%d", i)}
		if group := p.ref(nbdb.PortGroupTable, o, "group"); p.some(75) {
			p.add(group, o, "group", &nbdb.PortGroup{UUID: group.UUID, Name: "sel_" + o.Name})
			groups = append(groups, group)
		}
	}
	for i := range 6 {
		o := nb.Owner{Kind: names.KindPod, Name: fmt.Sprintf("ns/p%d", i)}
		if port := p.ref(nbdb.LogicalSwitchPortTable, o, names.RolePort); p.some(75) {
			p.add(port, o, names.RolePort, &nbdb.LogicalSwitchPort{UUID: port.UUID, Name: fmt.Sprintf("ns_p%d", i)},
				append(p.in("ports", groups), nb.Slot{In: switches[r.IntN(2)], Column: "ports"})...)
		}
	}
	for i := range 4 {
		o := nb.Owner{Kind: names.KindService, Name: fmt.Sprintf("ns/rule%d", i)}
		slots := p.in("acls", slices.Concat(switches, groups))
		if len(slots) == 0 {
			continue // nothing would keep it
		}
		acl, severity := p.ref(nbdb.ACLTable, o, "ingress:0"), nbdb.ACLSeverityAlert
		m := &nbdb.ACL{UUID: acl.UUID, Match: "ip4", Direction: "to-lport", Action: "drop", Priority: r.IntN(3),
			Label: r.IntN(2), Tier: r.IntN(3), Log: p.some(50)}
		if m.Log {
			m.Name, m.Severity, m.Meter = &o.Name, &severity, &o.Name
		}
		p.add(acl, o, "ingress:0", m, slots...)
	}
	if o := (nb.Owner{Kind: names.KindCluster, Name: names.ClusterOwner}); p.some(75) {
		meter, band := p.ref(nbdb.MeterTable, o, names.RoleLogMeter), p.ref(nbdb.MeterBandTable, o, names.RoleLogBand)
		if p.some(30) {
			band = p.ref(nbdb.MeterBandTable, o, "other")
		}
		fair := true
		p.add(meter, o, names.RoleLogMeter, &nbdb.Meter{UUID: meter.UUID, Name: names.LogMeter, Fair: &fair,
			Unit: nbdb.MeterUnitPktps, Bands: []string{band.UUID}})
		p.add(band, o, names.RoleLogBand, &nbdb.MeterBand{UUID: band.UUID, Action: nbdb.MeterBandActionDrop,
			Rate: 1 + r.IntN(2)})
	}
	return p.want
}

// like is a database in memory that takes for used, and for lacking, what the server does.
type like struct {
	*nb.Database
	server nb.View
}

// Spent implements nb.View.
func (l like) Spent(r nb.Ref) bool { return l.server.Spent(r) }

// Lacks implements nb.View.
func (l like) Lacks(table, column string) bool { return l.server.Lacks(table, column) }

// byHand removes some rows with ovn-nbctl, and from memory.
func byHand(t *testing.T, r *rand.Rand, remote string, schema *nb.Schema, memory *nb.Database) {
	t.Helper()
	for table, remove := range map[string][]string{
		nbdb.LogicalSwitchTable: {"ls-del"}, nbdb.LogicalSwitchPortTable: {"lsp-del"},
		nbdb.PortGroupTable: {"destroy", nbdb.PortGroupTable}, nbdb.MeterTable: {"destroy", nbdb.MeterTable},
	} {
		for _, m := range memory.Rows(table) {
			ref := schema.Ref(m)
			if r.IntN(100) < 20 && memory.Row(ref) != nil {
				testkit.Run(t, "ovn-nbctl", slices.Concat([]string{"--db=" + remote}, remove, []string{ref.UUID})...)
				memory.Drop(ref)
			}
		}
	}
}

// Rows that refer to rows of other owners are on a server what they are in memory: ports in port groups, rules in
// groups and switches, whatever goes by plan or by hand, and comes back under other UUIDs.
func TestReferencesOnTheServer(t *testing.T) {
	for ovn, file := range testkit.NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 17))
			remote, schema := testkit.StartOVSDB(t, file), nb.NewSchema()
			session, memory := connected(t, remote, schema), nb.NewDatabase(schema)
			if lacks := session.View().Lacks(nbdb.ACLTable, "tier"); lacks != (ovn == "23.03") {
				t.Fatalf("the server lacks tiers: %v", lacks)
			}
			stood := 0
			for round := range 30 {
				byHand(t, r, remote, schema, memory)
				want := randomPolicies(r, schema)
				real, inMemory := settled(t, want, schema, session, memory)
				out, err := session.Transact(t.Context(), real)
				if err != nil || len(out.Lost) != 0 {
					t.Fatalf("round %d: %v, lost %v\n%s", round, err, out.Lost, text(real))
				}
				if err := memory.Apply(inMemory...); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				if again := planned(t, want, schema, session.View(), session.Owners()); len(again) != 0 {
					t.Fatalf("round %d: a plan after the transaction:\n%s", round, text(again))
				}
				if a, b := serverContent(t, remote, schema), memoryContent(t, schema, memory); a != b {
					t.Fatalf("round %d: the server holds\n%s\nmemory\n%s\nPLAN\n%s", round, a, b, text(real)+uuids(real))
				}
				for _, p := range real {
					for _, rc := range p.Rows {
						if rc.Verb == nb.Insert && rc.UUID != rc.Derived {
							stood++
						}
					}
				}
			}
			if stood == 0 {
				t.Error("no row came back under a stand-in")
			}
		})
	}
}

// settled is the plans from the server's content and from memory, which are the same as soon as the session has heard
// what was done by hand.
func settled(
	t *testing.T, want map[nb.Owner][]nb.Row, schema *nb.Schema, session *ovsdb.Session, memory *nb.Database,
) (real, inMemory []nb.Plan) {
	t.Helper()
	testkit.Eventually(t, "the same plans from the server's content and from memory", func() string {
		real = planned(t, want, schema, session.View(), session.Owners())
		inMemory = planned(t, want, schema, like{memory, session.View()}, memory.Owners())
		if a, b := text(real)+uuids(real), text(inMemory)+uuids(inMemory); a != b {
			return a + "from memory:\n" + b
		}
		return ""
	})
	return real, inMemory
}

// uuids is the UUIDs that plans insert.
func uuids(plans []nb.Plan) string {
	var b strings.Builder
	for _, p := range plans {
		for _, rc := range p.Rows {
			fmt.Fprintln(&b, rc.Verb, rc.Key, rc.UUID)
		}
	}
	return b.String()
}

// When a port group goes, so do rules that only it listed; everybody is dirty who has a row that it listed.
func TestWhoHearsOfAGroup(t *testing.T) {
	remote, schema := testkit.StartOVSDB(t, testkit.NBSchemas()["23.03"]), nb.NewSchema()
	session := connected(t, remote, schema)
	p := &policies{rand.New(rand.NewPCG(1, 1)), schema, map[nb.Owner][]nb.Row{}}
	owner := func(kind names.Kind, name string) nb.Owner { return nb.Owner{Kind: kind, Name: name} }
	node, ns, rule := owner(names.KindNode, "n"), owner(names.KindNamespace, "ns"), owner(names.KindService, "ns/rule")
	pod, other := owner(names.KindPod, "ns/a"), owner(names.KindPod, "ns/b")
	sw, group := p.ref(nbdb.LogicalSwitchTable, node, names.RoleSwitch), p.ref(nbdb.PortGroupTable, ns, "group")
	p.add(sw, node, names.RoleSwitch, &nbdb.LogicalSwitch{UUID: sw.UUID, Name: "n"})
	p.add(group, ns, "group", &nbdb.PortGroup{UUID: group.UUID, Name: "group"})
	for _, o := range []nb.Owner{pod, other} {
		port := p.ref(nbdb.LogicalSwitchPortTable, o, names.RolePort)
		p.add(port, o, names.RolePort, &nbdb.LogicalSwitchPort{UUID: port.UUID, Name: o.Name},
			nb.Slot{In: sw, Column: "ports"})
	}
	p.want[pod][0].ListIn = append(p.want[pod][0].ListIn, nb.Slot{In: group, Column: "ports"})
	acl := p.ref(nbdb.ACLTable, rule, "ingress:0")
	p.add(acl, rule, "ingress:0", &nbdb.ACL{UUID: acl.UUID, Match: "ip4", Direction: "to-lport", Action: "drop", Tier: 1},
		nb.Slot{In: group, Column: "acls"})
	settle := func(want string) {
		t.Helper()
		ps := planned(t, p.want, schema, session.View(), session.Owners())
		if got := text(ps); got != want && want != "" {
			t.Errorf("the plans are\n%s\nwant\n%s", got, want)
		}
		if _, err := session.Transact(t.Context(), ps); err != nil {
			t.Fatal(err)
		}
	}
	settle("")
	session.TakeDirty()
	testkit.Run(t, "ovn-nbctl", "--db="+remote, "pg-del", "group")
	dirty := map[nb.Owner]bool{}
	testkit.Eventually(t, "the owners of what the group listed are dirty", func() string {
		for _, o := range session.TakeDirty() {
			dirty[o] = true
		}
		if !dirty[ns] || !dirty[pod] || !dirty[rule] {
			return fmt.Sprint(dirty)
		}
		return ""
	})
	if dirty[other] || dirty[node] {
		t.Errorf("%v are dirty, want only those of whom the group listed a row, and its own", dirty)
	}
	settle(`+ Port_Group group  (Namespace ns, group)
      name  + "group"
      external_ids  + k8s.ovn.org/owner-name="ns"
      external_ids  + k8s.ovn.org/owner-type="Namespace"
      external_ids  + k8s.ovn.org/role="group"
~ Port_Group group  ports  + Logical_Switch_Port ns/a
+ ACL ip4  (Service ns/rule, ingress:0)
      direction  + "to-lport"
      match  + "ip4"
      action  + "drop"
      external_ids  + k8s.ovn.org/owner-name="ns/rule"
      external_ids  + k8s.ovn.org/owner-type="Service"
      external_ids  + k8s.ovn.org/role="ingress:0"
~ Port_Group group  acls  + ACL ip4
`)
	if at := schema.Find(session.View(), group); at.UUID != names.StandIn(group.UUID, 1) {
		t.Errorf("the group is at %s, want the first stand-in of %s", at.UUID, group.UUID)
	}
}
