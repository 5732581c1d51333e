package nb

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// What is ours fits the database's schema, and what the schema says about it is what ovn-nb(5) says.
func TestTablesFitTheDatabase(t *testing.T) {
	s, err := describe(nbdb.Schema(), nbdb.SchemaFile(), tables())
	if err != nil {
		t.Fatal(err)
	}
	var roots, references, newer []string
	for _, name := range s.Tables() {
		if s.tables[name].root {
			roots = append(roots, name)
		}
		for _, c := range s.tables[name].references {
			how := " -> "
			if c.weak {
				how = " weakly -> "
			}
			references = append(references, name+"."+c.name+how+c.table)
		}
		for _, c := range s.Newer(name) {
			newer = append(newer, name+"."+c)
		}
	}
	for what, c := range map[string]struct{ got, want []string }{
		"roots": {roots, []string{"Logical_Router", "Logical_Switch", "Port_Group", "Meter", "Load_Balancer_Group",
			"Load_Balancer", "Address_Set"}},
		"references": {references, []string{
			"Logical_Router.load_balancer_group -> Load_Balancer_Group",
			"Logical_Router.ports -> Logical_Router_Port",
			"Logical_Router.static_routes -> Logical_Router_Static_Route",
			"Logical_Router.nat -> NAT",
			"Logical_Router.policies -> Logical_Router_Policy",
			"Logical_Switch.load_balancer_group -> Load_Balancer_Group",
			"Logical_Switch.ports -> Logical_Switch_Port",
			"Logical_Switch.qos_rules -> QoS",
			"Logical_Switch.load_balancer weakly -> Load_Balancer",
			"Logical_Switch.acls -> ACL",
			"Port_Group.ports weakly -> Logical_Switch_Port",
			"Port_Group.acls -> ACL",
			"Meter.bands -> Meter_Band",
			"Load_Balancer_Group.load_balancer weakly -> Load_Balancer",
			"Load_Balancer.health_check -> Load_Balancer_Health_Check",
		}},
		"columns that a server may lack": {newer, []string{"ACL.tier"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(c.got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// What is named as ours and does not fit the database's schema is an error that names it.
func TestTablesThatDoNotFit(t *testing.T) {
	group := func(columns, slots []string) written {
		return written{nbdb.PortGroupTable, &nbdb.PortGroup{}, columns, slots}
	}
	ids := []string{"external_ids"}
	for want, w := range map[string]written{
		"table Mirror_Rule: the schema has no such table": {
			"Mirror_Rule", &nbdb.Mirror{}, nil, nil},
		"column Port_Group.port: the schema or the model has no such column":             group([]string{"port"}, nil),
		"column Port_Group.rules: the schema or the model has no such column":            group(nil, []string{"rules"}),
		"column Port_Group.name is a slot: want a set of references":                     group(nil, []string{"name"}),
		"column Port_Group.external_ids is a slot: want a set":                           group(nil, ids),
		"column Port_Group.ports refers to table Logical_Switch_Port, which is not ours": group(nil, []string{"ports"}),
		"column NAT.gateway_port is a slot: want a set of references": {
			nbdb.NATTable, &nbdb.NAT{}, nil, []string{"gateway_port"}},
		"column ACL.tier is a slot: want a set of references to rows that every server has": {
			nbdb.ACLTable, &nbdb.ACL{}, nil, []string{"tier"}},
	} {
		_, err := describe(nbdb.Schema(), nbdb.SchemaFile(), []written{w})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", w, err, want)
		}
	}
	const unreadable = "parsing the oldest schema"
	if _, err := describe(nbdb.Schema(), "no schema", nil); err == nil || !strings.Contains(err.Error(), unreadable) {
		t.Errorf("a schema that is none: %v", err)
	}
}

// A reference to a single row follows the row as those in a set do, strong or weak.
func TestSingleReferences(t *testing.T) {
	ours := append(tables(), written{nbdb.DHCPOptionsTable, &nbdb.DHCPOptions{}, []string{"cidr", "external_ids"}, nil},
		written{nbdb.HAChassisGroupTable, &nbdb.HAChassisGroup{}, []string{"name", "external_ids"}, nil})
	i := slices.IndexFunc(ours, func(w written) bool { return w.table == nbdb.LogicalSwitchPortTable })
	ours[i].columns = append(ours[i].columns, "dhcpv4_options", "ha_chassis_group")
	s, err := describe(nbdb.Schema(), nbdb.SchemaFile(), ours)
	if err != nil {
		t.Fatal(err)
	}
	node, pod := Owner{names.KindNode, "n"}, Owner{names.KindPod, "p"}
	uuid := func(table string, o Owner) string { return names.RowUUID(table, o.Kind, o.Name, "", "") }
	dhcp, group := uuid(nbdb.DHCPOptionsTable, node), uuid(nbdb.HAChassisGroupTable, node)
	sw := Ref{nbdb.LogicalSwitchTable, uuid(nbdb.LogicalSwitchTable, node)}
	of := func(table string, o Owner) Key { return Key{Table: table, Owner: o, Role: table} }
	wants := map[Owner][]Row{
		node: {
			s.NewRow(of(sw.Table, node), &nbdb.LogicalSwitch{UUID: sw.UUID, Name: "n"}),
			s.NewRow(of(nbdb.DHCPOptionsTable, node), &nbdb.DHCPOptions{UUID: dhcp, Cidr: "10.0.0.0/24"}),
			s.NewRow(of(nbdb.HAChassisGroupTable, node), &nbdb.HAChassisGroup{UUID: group, Name: "g"}),
		},
		pod: {s.NewRow(of(nbdb.LogicalSwitchPortTable, pod), &nbdb.LogicalSwitchPort{
			UUID: uuid(nbdb.LogicalSwitchPortTable, pod), Name: "p", Dhcpv4Options: &dhcp, HaChassisGroup: &group,
		}, Slot{sw, "ports"})},
	}
	v := spentView{NewDatabase(s), map[string]bool{}}
	port := func() *nbdb.LogicalSwitchPort {
		return v.Rows(nbdb.LogicalSwitchPortTable)[0].(*nbdb.LogicalSwitchPort)
	}
	settle := func() *nbdb.LogicalSwitchPort {
		t.Helper()
		for round := range 2 {
			scope := Scope{}
			var plans []Plan
			for _, o := range []Owner{node, pod} {
				p, err := s.Plan(v, o, wants[o], scope)
				if err != nil {
					t.Fatal(err)
				}
				if round > 0 && !p.Empty() {
					t.Errorf("a plan of what is there:\n%s", p)
				}
				plans = append(plans, p)
			}
			if err := v.Apply(plans...); err != nil {
				t.Fatal(err)
			}
		}
		return port()
	}
	if p := settle(); *p.Dhcpv4Options != dhcp || *p.HaChassisGroup != group {
		t.Errorf("the port refers to %s and %s, want %s and %s", *p.Dhcpv4Options, *p.HaChassisGroup, dhcp, group)
	}
	v.spent[dhcp], v.spent[group] = true, true
	v.Drop(Ref{nbdb.DHCPOptionsTable, dhcp})
	v.Drop(Ref{nbdb.HAChassisGroupTable, group})
	if p := port(); p.Dhcpv4Options != nil || p.HaChassisGroup != nil {
		t.Errorf("the port refers to rows that are gone: %+v", p)
	}
	if p := settle(); *p.Dhcpv4Options != names.StandIn(dhcp, 1) || *p.HaChassisGroup != names.StandIn(group, 1) {
		t.Errorf("the port refers to %s and %s, want the stand-ins of %s and %s",
			*p.Dhcpv4Options, *p.HaChassisGroup, dhcp, group)
	}
	p, err := s.Plan(v, node, wants[node][:1], nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Apply(p); err == nil || !strings.Contains(err.Error(), "Logical_Switch_Port.ha_chassis_group") {
		t.Errorf("deleting a row to which a strong reference leads: %v, want an error that names it", err)
	}
	var missing *MissingParentError
	message := "Logical_Switch_Port of Pod p refers in dhcpv4_options to row " + dhcp +
		" of DHCP_Options, which does not exist yet"
	_, err = s.Plan(NewDatabase(s), pod, wants[pod], Scope{sw: "n"})
	if !errors.As(err, &missing) || missing.Reference != "dhcpv4_options" ||
		missing.Slot.In != (Ref{nbdb.DHCPOptionsTable, dhcp}) || err.Error() != message {
		t.Errorf("a reference to a row that is not there: %v", err)
	}
}
