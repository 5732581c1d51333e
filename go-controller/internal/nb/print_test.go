package nb_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// What `ovnkube plan` shows for a plan with every kind of change in it.
func TestPlanText(t *testing.T) {
	s := nb.NewSchema()
	owner := nb.Owner{Kind: names.KindNode, Name: "n1"}
	k := func(table, role string) nb.Key { return nb.Key{Table: table, Owner: owner, Role: role} }
	const sw1, sw2 = "11111111-1111-5111-8111-111111111111", "22222222-2222-5222-8222-222222222222"
	const p1, p2 = "33333333-3333-5333-8333-333333333333", "44444444-4444-5444-8444-444444444444"
	const lb, lb2 = "55555555-5555-5555-8555-555555555555", "66666666-6666-5666-8666-666666666666"
	const q = "77777777-7777-5777-8777-777777777777"
	tcp, udp := "tcp", "udp"
	limits := nb.Slot{In: nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: sw2}, Column: "qos_rules"}
	ports := func(sw string) nb.Slot {
		return nb.Slot{In: nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: sw}, Column: "ports"}
	}
	have := []nb.Row{
		s.NewRow(k(nbdb.LogicalSwitchTable, "switch"), &nbdb.LogicalSwitch{
			UUID: sw1, Name: "one", OtherConfig: map[string]string{"subnet": "10.0.0.0/24", "old": "x"}}),
		s.NewRow(k(nbdb.LogicalSwitchTable, "second"), &nbdb.LogicalSwitch{UUID: sw2, Name: "two"}),
		s.NewRow(k(nbdb.LogicalSwitchPortTable, "moves"), &nbdb.LogicalSwitchPort{
			UUID: p1, Name: "p1", Addresses: []string{"a", "b"}}, ports(sw1)),
		s.NewRow(k(nbdb.LogicalSwitchPortTable, "goes"), &nbdb.LogicalSwitchPort{UUID: p2, Name: "p2"}, ports(sw1)),
		s.NewRow(k(nbdb.LoadBalancerTable, "lb"), &nbdb.LoadBalancer{UUID: lb, Name: "lb", Protocol: &tcp}),
		s.NewRow(k(nbdb.QoSTable, "limit"), &nbdb.QoS{
			UUID: q, Match: "ip", Bandwidth: map[string]int{"rate": 100, "burst": 80}}, limits),
	}
	want := []nb.Row{
		s.NewRow(k(nbdb.LogicalSwitchTable, "switch"), &nbdb.LogicalSwitch{
			UUID: sw1, Name: "uno", OtherConfig: map[string]string{"subnet": "10.0.1.0/24", "new": "y"}}),
		s.NewRow(k(nbdb.LogicalSwitchTable, "second"), &nbdb.LogicalSwitch{UUID: sw2, Name: "two"}),
		s.NewRow(k(nbdb.LogicalSwitchPortTable, "moves"), &nbdb.LogicalSwitchPort{
			UUID: p1, Name: "p1", Addresses: []string{"b", "c"}, Type: "router"}, ports(sw2)),
		s.NewRow(k(nbdb.LoadBalancerTable, "lb"), &nbdb.LoadBalancer{UUID: lb, Name: "lb"}),
		s.NewRow(k(nbdb.QoSTable, "limit"), &nbdb.QoS{
			UUID: q, Match: "ip", Priority: 1, Bandwidth: map[string]int{"rate": 200}}, limits),
		s.NewRow(k(nbdb.LoadBalancerTable, "lb-udp"), &nbdb.LoadBalancer{UUID: lb2, Name: "lb2", Protocol: &udp}),
	}
	db := nb.NewDatabase(s)
	p, err := s.Plan(db, owner, have, nb.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	applyAll(t, db, []nb.Plan{p})
	if p, err = s.Plan(db, owner, want, nb.Scope{}); err != nil {
		t.Fatal(err)
	}
	const golden = `+ Load_Balancer lb2  (Node n1, lb-udp)
      name  + "lb2"
      protocol  + "udp"
      external_ids  + k8s.ovn.org/owner-name="n1"
      external_ids  + k8s.ovn.org/owner-type="Node"
      external_ids  + k8s.ovn.org/role="lb-udp"
~ Load_Balancer lb  (Node n1, lb)
      protocol  - "tcp"
~ Logical_Switch uno  (Node n1, switch)
      name  ~ "one" -> "uno"
      other_config  - old="x"
      other_config  + new="y"
      other_config  ~ subnet="10.0.0.0/24" -> "10.0.1.0/24"
~ Logical_Switch_Port p1  (Node n1, moves)
      type  + "router"
      addresses  - "a"
      addresses  + "c"
~ QoS ip  (Node n1, limit)
      priority  + 1
      bandwidth  - burst=80
      bandwidth  ~ rate=100 -> 200
- Logical_Switch_Port p2  (Node n1, goes)
~ Logical_Switch one  ports  - Logical_Switch_Port p2
~ Logical_Switch one  ports  - Logical_Switch_Port p1
~ Logical_Switch two  ports  + Logical_Switch_Port p1
`
	if got := p.String(); got != golden {
		t.Errorf("got:\n%s\nwant:\n%s", got, golden)
	}
	if p.Ops() != 9 || p.Empty() {
		t.Errorf("%d operations, empty %v; want 9, false", p.Ops(), p.Empty())
	}
}

// Plans that do not fit what is there are refused, as ovsdb-server would.
func TestApplyRefuses(t *testing.T) {
	g := newGenerator(3)
	w := g.world()
	db := built(t, g.s, w)
	fresh := nb.NewDatabase(g.s)
	var all []nb.Plan
	router := nb.Ref{Table: nbdb.LogicalRouterTable, UUID: names.ClusterRow(nbdb.LogicalRouterTable, names.RoleRouter)}
	for _, o := range w.owners() {
		p, err := g.s.Plan(fresh, o, w[o], nb.Scope{router: "r"})
		if err == nil {
			all = append(all, p)
		}
	}
	if err := db.Apply(all...); err == nil || !strings.Contains(err.Error(), "duplicate uuid") {
		t.Errorf("inserting rows that are there: %v, want a duplicate uuid", err)
	}
	update := plans(t, g.s, db, newGenerator(4).world())
	if err := nb.NewDatabase(g.s).Apply(update...); err == nil || !strings.Contains(err.Error(), "no such row") {
		t.Errorf("updating rows that are not there: %v, want no such row", err)
	}
	nowhere := nb.Slot{In: nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: "x"}, Column: "ports"}
	member := nb.Plan{Members: []nb.Membership{{Slot: nowhere, UUID: "y"}}}
	if err := db.Apply(member); err == nil || !strings.Contains(err.Error(), "no row Logical_Switch x") {
		t.Errorf("listing in a row that is not there: %v, want no row", err)
	}
}

func TestSchemaOfStrangers(t *testing.T) {
	s := nb.NewSchema()
	mirror := &nbdb.Mirror{UUID: "x"}
	if got := s.Ref(mirror); got != (nb.Ref{}) {
		t.Errorf("reference of a row of a table that is not ours: %v", got)
	}
	_, marked := s.Mark(mirror)
	if marked || s.Label(mirror) != "" || s.NewModel("Mirror") != nil || s.Marked("Mirror") ||
		s.SlotMembers(mirror) != nil {
		t.Error("a table that is not ours has a mark, label, model or slots")
	}
	if _, ok := s.Mark(nil); ok {
		t.Error("no row has a mark")
	}
	in := func(table string) nb.Slot { return nb.Slot{In: nb.Ref{Table: table}, Column: "ports"} }
	parents := []nb.Slot{in(nbdb.LogicalSwitchTable), in(nbdb.PortGroupTable)}
	if got := s.ParentTables(nbdb.LogicalSwitchPortTable); !slices.Equal(got, parents) {
		t.Errorf("parents of Logical_Switch_Port: %v, want %v", got, parents)
	}
	if s.Child(in("Mirror")) != "" || s.Keeps(in("Mirror")) {
		t.Error("a table that is not ours has a slot")
	}
}
