package nb_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// policed is a cluster in which a pod's port is in two port groups, one of which has a rule of a third owner.
type policed struct {
	remembering
	want                 world
	sw, port, acl        nb.Ref // by derived UUID
	groups               [2]nb.Ref
	node, pod, rule, web nb.Owner
}

func newPoliced(t *testing.T) *policed {
	t.Helper()
	p := &policed{remembering: newRemembering(theSchema()), want: world{},
		node: nb.Owner{Kind: names.KindNode, Name: "n1"}, web: nb.Owner{Kind: names.KindNamespace, Name: "web"},
		pod: nb.Owner{Kind: names.KindPod, Name: "web/a"}, rule: nb.Owner{Kind: names.KindService, Name: "web/deny"}}
	ref := func(table string, o nb.Owner, role string) nb.Ref {
		return nb.Ref{Table: table, UUID: names.RowUUID(table, o.Kind, o.Name, role, "")}
	}
	of := func(r nb.Ref, o nb.Owner, role string) nb.Key { return nb.Key{Table: r.Table, Owner: o, Role: role} }
	p.sw = ref(nbdb.LogicalSwitchTable, p.node, names.RoleSwitch)
	p.want[p.node] = []nb.Row{p.s.NewRow(of(p.sw, p.node, names.RoleSwitch),
		&nbdb.LogicalSwitch{UUID: p.sw.UUID, Name: "n1"})}
	for i, role := range []string{"in", "out"} {
		p.groups[i] = ref(nbdb.PortGroupTable, p.web, role)
		p.want[p.web] = append(p.want[p.web], p.s.NewRow(of(p.groups[i], p.web, role),
			&nbdb.PortGroup{UUID: p.groups[i].UUID, Name: "sel_" + role}))
	}
	p.port = ref(nbdb.LogicalSwitchPortTable, p.pod, names.RolePort)
	in := func(r nb.Ref) nb.Slot { return nb.Slot{In: r, Column: "ports"} }
	p.want[p.pod] = []nb.Row{p.s.NewRow(of(p.port, p.pod, names.RolePort),
		&nbdb.LogicalSwitchPort{UUID: p.port.UUID, Name: "web_a"}, in(p.sw), in(p.groups[0]), in(p.groups[1]))}
	p.acl = ref(nbdb.ACLTable, p.rule, "ingress:0")
	p.want[p.rule] = []nb.Row{p.s.NewRow(of(p.acl, p.rule, "ingress:0"),
		&nbdb.ACL{UUID: p.acl.UUID, Match: "outport == @sel_in", Direction: "to-lport", Action: "drop", Tier: 2},
		nb.Slot{In: p.groups[0], Column: "acls"})}
	p.settle(t)
	return p
}

// settle carries out the plans of all owners as one transaction, looks whether things are as wanted, and tells the
// plans.
func (p *policed) settle(t *testing.T) string {
	t.Helper()
	ps := plans(t, p.s, p, p.want)
	p.do(func() { applyAll(t, p.Database, ps) })
	if again := plans(t, p.s, p, p.want); len(again) != 0 {
		t.Errorf("a plan after applying the plan:\n%s", text(again))
	}
	if got, want := shape(p.s, p.Database), shape(p.s, built(t, p.s, p.want)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	return text(ps)
}

// drop removes rows by hand.
func (p *policed) drop(refs ...nb.Ref) {
	for _, r := range refs {
		p.do(func() { p.Drop(p.s.Find(p, r)) })
	}
}

func (p *policed) group(i int) *nbdb.PortGroup {
	g, _ := p.Row(p.s.Find(p, p.groups[i])).(*nbdb.PortGroup)
	return g
}

// Rows that refer to each other across owners come back together, whichever of them go, and again and again.
func TestReferencesAcrossOwners(t *testing.T) {
	p := newPoliced(t)
	for what, refs := range map[string][]nb.Ref{
		"the port":                    {p.port},
		"a group":                     {p.groups[0]},
		"both groups":                 {p.groups[0], p.groups[1]},
		"the group and the port":      {p.groups[0], p.port},
		"the switch, and so the port": {p.sw},
		"the rule":                    {p.acl},
		"the rule, the port, a group": {p.acl, p.port, p.groups[1]},
		"everything":                  {p.sw, p.port, p.acl, p.groups[0], p.groups[1]},
	} {
		t.Run(what, func(t *testing.T) {
			p := newPoliced(t)
			for range 2 * names.StandIns {
				p.drop(refs...)
				p.settle(t)
			}
		})
	}
}

// A port that goes leaves its groups by itself: weak references to it go with it. It comes back into them, in the
// transaction in which it is made.
func TestPortLeavesItsGroups(t *testing.T) {
	p := newPoliced(t)
	p.drop(p.port)
	if a, b := p.group(0).Ports, p.group(1).Ports; len(a)+len(b) != 0 {
		t.Errorf("the groups list %v and %v, want nothing", a, b)
	}
	const back = `+ Logical_Switch_Port web_a  (Pod web/a, port)
      name  + "web_a"
      external_ids  + k8s.ovn.org/owner-name="web/a"
      external_ids  + k8s.ovn.org/owner-type="Pod"
      external_ids  + k8s.ovn.org/role="port"
~ Logical_Switch n1  ports  + Logical_Switch_Port web_a
~ Port_Group sel_in  ports  + Logical_Switch_Port web_a
~ Port_Group sel_out  ports  + Logical_Switch_Port web_a
`
	if got := sortedLines(p.settle(t)); got != sortedLines(back) {
		t.Errorf("the plan is\n%s\nwant\n%s", got, back)
	}
	port := p.want[p.pod]
	delete(p.want, p.pod)
	const gone = `- Logical_Switch_Port web_a  (Pod web/a, port)
~ Logical_Switch n1  ports  - Logical_Switch_Port web_a
`
	if got := p.settle(t); got != gone {
		t.Errorf("the plan is\n%s\nwant\n%s", got, gone)
	}
	port[0].ListIn = port[0].ListIn[:2] // its label changed
	p.want[p.pod] = port
	p.settle(t)
	if a, b := p.group(0).Ports, p.group(1).Ports; len(a) != 1 || len(b) != 0 {
		t.Errorf("the groups list %v and %v, want the port in the first alone", a, b)
	}
}

func sortedLines(s string) string {
	return strings.Join(slices.Sorted(strings.Lines(s)), "")
}

// A rule goes with the last row that lists it, and a port group that lists a port does not keep it.
func TestWhatKeepsRows(t *testing.T) {
	p := newPoliced(t)
	p.drop(p.groups[0])
	if m := p.Row(p.acl); m != nil {
		t.Errorf("the rule is still there: %v", m)
	}
	if p.Row(p.port) == nil {
		t.Error("the port went with a group that it was in")
	}
	p.drop(p.sw)
	if p.Row(p.port) != nil || len(p.group(1).Ports) != 0 {
		t.Errorf("the port outlives its switch: %v", p.group(1))
	}
}

// A row that is listed where no row of its table can be is an error, and nothing is planned.
func TestSlotsForOtherTables(t *testing.T) {
	p := newPoliced(t)
	for _, column := range []string{"acls", "name", "port"} {
		w := p.want[p.pod][0]
		w.ListIn = []nb.Slot{{In: p.groups[0], Column: column}}
		want := "Logical_Switch_Port of Pod web/a can't be listed in Port_Group." + column +
			": want a slot for rows of Logical_Switch_Port"
		if plan, err := p.s.Plan(p, p.pod, []nb.Row{w}, nil); err == nil || err.Error() != want || !plan.Empty() {
			t.Errorf("plan %v, error %v, want %q", plan, err, want)
		}
	}
	stranger := nb.Row{Key: nb.Key{Table: "Mirror", Owner: p.pod}, Model: &nbdb.Mirror{}}
	_, err := p.s.Plan(p, p.pod, []nb.Row{stranger}, nil)
	if err == nil || !strings.Contains(err.Error(), "no table of ours") {
		t.Errorf("a row of a table that is not ours: %v", err)
	}
}

// older is a database with a schema that has no tiers.
type older struct{ remembering }

// Lacks implements nb.View.
func (older) Lacks(table, column string) bool { return table == nbdb.ACLTable && column == "tier" }

// A column that the server lacks is not written, and makes no difference.
func TestLackingColumn(t *testing.T) {
	p := newPoliced(t)
	wanted := p.want[p.rule][0].Model.(*nbdb.ACL)
	p.drop(p.acl)
	v := older{p.remembering}
	ps := plans(t, p.s, v, p.want)
	if len(ps) != 1 || len(ps[0].Rows) != 1 || strings.Contains(text(ps), "tier") ||
		ps[0].Rows[0].Model.(*nbdb.ACL).Tier != 0 {
		t.Errorf("the plan writes a tier:\n%s", text(ps))
	}
	applyAll(t, p.Database, ps)
	if again := plans(t, p.s, v, p.want); len(again) != 0 {
		t.Errorf("the tier makes a difference:\n%s", text(again))
	}
	if wanted.Tier != 2 {
		t.Errorf("the translator's row has tier %d now", wanted.Tier)
	}
	if ps := plans(t, p.s, p, p.want); !strings.Contains(text(ps), "      tier  + 2\n") {
		t.Errorf("a server that has tiers gets\n%s", text(ps))
	}
}

// A load balancer group has no room for a mark. It is known by its name and UUID, also under a stand-in, and its owner
// is.
func TestLoadBalancerGroupUnderStandIn(t *testing.T) {
	g := newGenerator(1)
	v, w := newRemembering(g.s), world{}
	_, cluster := g.cluster(w)
	zone := g.zone(w, "a")
	g.service(w, "default/s", zone)
	applyAll(t, v.Database, plans(t, g.s, v, w))
	for _, r := range []nb.Ref{cluster, zone} {
		v.do(func() { v.Drop(r) })
	}
	applyAll(t, v.Database, plans(t, g.s, v, w))
	owner := nb.Owner{Kind: names.KindZone, Name: "a"}
	at := g.s.Find(v, zone)
	if want := names.StandIn(zone.UUID, 1); at.UUID != want {
		t.Fatalf("the group is at %s, want %s", at.UUID, want)
	}
	group := v.Row(at).(*nbdb.LoadBalancerGroup)
	service := nb.Owner{Kind: names.KindService, Name: "default/s"}
	if k, ok := g.s.Mark(group); !ok || k.Owner != owner || len(group.LoadBalancer) != len(w[service]) {
		t.Errorf("%+v is marked as of %v: %v; want %v with all load balancers", group, k, ok, owner)
	}
	group.Name = "stolen"
	v.Put(group)
	if ps := plans(t, g.s, v, w); len(ps) != 1 || !strings.Contains(text(ps), `name  ~ "stolen" -> "zoneLBGroup_a"`) {
		t.Errorf("a name that somebody changed is not put right:\n%s", text(ps))
	}
	group.Name = names.ZoneLBGroup("a")
	v.Put(group)
	delete(w, owner)
	delete(w, service)
	applyAll(t, v.Database, plans(t, g.s, v, w))
	if v.Row(at) != nil {
		t.Error("the group of a zone that is gone is still there")
	}
	other := &nbdb.LoadBalancerGroup{UUID: id(g), Name: names.ZoneLBGroup("a")}
	v.Put(other)
	g.zone(w, "a")
	applyAll(t, v.Database, plans(t, g.s, v, w))
	if got := g.s.Find(v, zone); got.UUID != other.UUID || v.Row(zone) != nil {
		t.Errorf("the group is at %s, want %s: no other can have its name", got.UUID, other.UUID)
	}
	delete(w, owner)
	applyAll(t, v.Database, plans(t, g.s, v, w))
	if v.Row(nb.Ref{Table: zone.Table, UUID: other.UUID}) != nil {
		t.Error("the group of a zone that is gone is still there, under the UUID that somebody gave it")
	}
}

// ovsdb-server may keep a weak reference to a row that went. When a row comes under that UUID, it is in the slot
// already: the plan that inserts it takes it out, unless it is to be there.
func TestRowThatIsListedBeforeItComes(t *testing.T) {
	s, v := theSchema(), newIndexed()
	want := newPoliced(t).want
	for _, rows := range want {
		for _, r := range rows {
			v.put(s, r)
		}
	}
	port := want[nb.Owner{Kind: names.KindPod, Name: "web/a"}][0]
	ref := s.Ref(port.Model)
	delete(v.rows, ref)
	v.owned[port.Key.Owner] = nil
	port.ListIn = port.ListIn[:2]
	p, err := s.Plan(v, port.Key.Owner, []nb.Row{port}, nil)
	if err != nil || len(p.Rows) != 1 || len(p.Members) != 1 || !p.Members[0].Remove || p.Members[0].In != "sel_out" {
		t.Errorf("plan %v\n%+v, error %v, want it taken out of sel_out", p, p.Members, err)
	}
}
