package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// Rows is a Northbound database; nb.Database implements it.
type Rows interface {
	// Rows lists the rows of a table as pointers to nbdb's structs.
	Rows(table string) []model.Model
}

// Evaluator answers what the ACLs of a database do with packets. It is made from a database once and does not change.
type Evaluator struct {
	byName map[string]*logicalSwitch
	byPort map[string]*logicalSwitch // by the name of a logical switch port
}

// logicalSwitch is what the stages of a switch depend on.
type logicalSwitch struct {
	name   string
	router string // the port that leads to the switch's only router, "" when there is none or several
	names  names
	rules  map[Stage][]*rule // those of the lowest tier first, within a tier those of the highest priority first
}

// rule is an ACL with its match.
type rule struct {
	acl   *nbdb.ACL
	match *match
	err   error // why the match can't be read
}

// New reads a database. A match that can't be read is an error only of the packets that meet it.
func New(db Rows) *Evaluator {
	r := reader{acls: map[string]*rule{}, ports: map[string]*nbdb.LogicalSwitchPort{}, sets: map[string][]constant{}}
	for _, m := range db.Rows(nbdb.ACLTable) {
		acl := m.(*nbdb.ACL)
		parsed, err := parse(acl.Match)
		r.acls[acl.UUID] = &rule{acl, parsed, err}
	}
	for _, m := range db.Rows(nbdb.LogicalSwitchPortTable) {
		p := m.(*nbdb.LogicalSwitchPort)
		r.ports[p.UUID] = p
	}
	for _, m := range db.Rows(nbdb.AddressSetTable) {
		s := m.(*nbdb.AddressSet)
		r.sets[s.Name] = constants(s.Addresses)
	}
	for _, m := range db.Rows(nbdb.PortGroupTable) {
		r.groups = append(r.groups, m.(*nbdb.PortGroup))
	}
	e := &Evaluator{map[string]*logicalSwitch{}, map[string]*logicalSwitch{}}
	for _, m := range db.Rows(nbdb.LogicalSwitchTable) {
		row := m.(*nbdb.LogicalSwitch)
		s := r.logicalSwitch(row)
		e.byName[s.name] = s
		for _, uuid := range row.Ports {
			if p := r.ports[uuid]; p != nil {
				e.byPort[p.Name] = s
			}
		}
	}
	return e
}

// constants reads the addresses of a set. OVN skips those that it can't read.
func constants(addresses []string) []constant {
	var out []constant
	for _, a := range addresses {
		if c, err := parseConstant(a); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// reader has the rows of a database at hand.
type reader struct {
	acls   map[string]*rule // by UUID, as all the rest but the sets
	ports  map[string]*nbdb.LogicalSwitchPort
	groups []*nbdb.PortGroup
	sets   map[string][]constant // by name
}

func (r *reader) logicalSwitch(row *nbdb.LogicalSwitch) *logicalSwitch {
	s := &logicalSwitch{name: row.Name, names: names{r.sets, map[string][]string{}}, rules: map[Stage][]*rule{}}
	uuids := slices.Clone(row.ACLs)
	for _, g := range r.groups {
		if ports := r.portsOf(row, g); len(ports) > 0 { // ovn-northd then adds all ACLs of the group to the switch
			s.names.groups[g.Name] = ports
			uuids = append(uuids, g.ACLs...)
		}
	}
	slices.Sort(uuids)
	for _, uuid := range slices.Compact(uuids) {
		if rule := r.acls[uuid]; rule != nil {
			stage := stageOf(rule.acl)
			s.rules[stage] = append(s.rules[stage], rule)
		}
	}
	for _, list := range s.rules {
		slices.SortStableFunc(list, func(a, b *rule) int {
			return cmp.Or(cmp.Compare(a.acl.Tier, b.acl.Tier), -cmp.Compare(a.acl.Priority, b.acl.Priority))
		})
	}
	routers := 0
	for _, uuid := range row.Ports {
		if p := r.ports[uuid]; p != nil && p.Type == "router" {
			s.router = p.Name
			routers++
		}
	}
	if routers > 1 {
		s.router = ""
	}
	return s
}

// portsOf lists the names of a switch's ports that are in a group.
func (r *reader) portsOf(row *nbdb.LogicalSwitch, g *nbdb.PortGroup) []string {
	var out []string
	for _, uuid := range g.Ports {
		if p := r.ports[uuid]; p != nil && slices.Contains(row.Ports, uuid) {
			out = append(out, p.Name)
		}
	}
	return out
}

// applies tells whether a rule is in effect for a packet on the switch. A void rule is not.
func (s *logicalSwitch) applies(r *rule, p *Packet) (applies, void bool, err error) {
	if r.err != nil {
		return false, false, fmt.Errorf("evaluating ACL %s on switch %s: %w", r.acl.UUID, s.name, r.err)
	}
	if r.match.void(s.names) != "" {
		return false, true, nil
	}
	return r.match.matches(p, s.names), false, nil
}
