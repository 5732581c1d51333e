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
	rules  map[Stage][]local // those of the lowest tier first, within a tier those of the highest priority first
}

// local is a rule on one switch.
type local struct {
	*rule
	void bool
}

// rule is an ACL with its match.
type rule struct {
	acl   *nbdb.ACL
	match *match
	err   error // why the match can't be read
}

// New reads a database. A match that can't be read is an error only of the packets that meet it.
func New(db Rows) *Evaluator {
	r := reader{
		rules: map[string]*rule{}, sets: map[string][]constant{}, ports: map[string]*nbdb.LogicalSwitchPort{},
		of: map[string]*logicalSwitch{}, acls: map[*logicalSwitch][]string{},
		made: &Evaluator{map[string]*logicalSwitch{}, map[string]*logicalSwitch{}},
	}
	for _, m := range db.Rows(nbdb.ACLTable) {
		acl := m.(*nbdb.ACL)
		parsed, err := parse(acl.Match)
		r.rules[acl.UUID] = &rule{acl, parsed, err}
	}
	for _, m := range db.Rows(nbdb.AddressSetTable) {
		s := m.(*nbdb.AddressSet)
		r.sets[s.Name] = constants(s.Addresses)
	}
	for _, m := range db.Rows(nbdb.LogicalSwitchPortTable) {
		p := m.(*nbdb.LogicalSwitchPort)
		r.ports[p.UUID] = p
	}
	for _, m := range db.Rows(nbdb.LogicalSwitchTable) {
		r.logicalSwitch(m.(*nbdb.LogicalSwitch))
	}
	for _, m := range db.Rows(nbdb.PortGroupTable) {
		r.group(m.(*nbdb.PortGroup))
	}
	for s, uuids := range r.acls {
		r.sortRules(s, uuids)
	}
	return r.made
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

// reader makes an Evaluator, row by row.
type reader struct {
	rules map[string]*rule // by UUID
	sets  map[string][]constant
	ports map[string]*nbdb.LogicalSwitchPort // by UUID
	of    map[string]*logicalSwitch          // by the UUID of a port
	acls  map[*logicalSwitch][]string        // UUIDs, some of them twice
	made  *Evaluator
}

func (r *reader) logicalSwitch(row *nbdb.LogicalSwitch) {
	s := &logicalSwitch{name: row.Name, names: names{r.sets, map[string][]string{}}, rules: map[Stage][]local{}}
	r.made.byName[s.name] = s
	r.acls[s] = slices.Clone(row.ACLs)
	var routers []string
	for _, uuid := range row.Ports {
		if p := r.ports[uuid]; p != nil {
			r.of[uuid], r.made.byPort[p.Name] = s, s
			if p.Type == "router" {
				routers = append(routers, p.Name)
			}
		}
	}
	if len(routers) == 1 {
		s.router = routers[0]
	}
}

// group adds a port group to the switches of its ports. As ovn-northd does, it adds all ACLs of the group to them.
func (r *reader) group(g *nbdb.PortGroup) {
	for _, uuid := range g.Ports {
		if s := r.of[uuid]; s != nil {
			if s.names.groups[g.Name] == nil {
				r.acls[s] = append(r.acls[s], g.ACLs...)
			}
			s.names.groups[g.Name] = append(s.names.groups[g.Name], r.ports[uuid].Name)
		}
	}
}

// sortRules gives a switch its rules.
func (r *reader) sortRules(s *logicalSwitch, uuids []string) {
	slices.Sort(uuids)
	for _, uuid := range slices.Compact(uuids) {
		if rule := r.rules[uuid]; rule != nil {
			stage := stageOf(rule.acl)
			s.rules[stage] = append(s.rules[stage], local{rule, rule.err == nil && rule.match.void(s.names) != ""})
		}
	}
	for _, list := range s.rules {
		slices.SortStableFunc(list, func(a, b local) int {
			return cmp.Or(cmp.Compare(a.acl.Tier, b.acl.Tier), -cmp.Compare(a.acl.Priority, b.acl.Priority))
		})
	}
}

// applies tells whether a rule is in effect for a packet on the switch. A void rule is not.
func (s *logicalSwitch) applies(r local, p *Packet) (applies, void bool, err error) {
	if r.err != nil {
		return false, false, fmt.Errorf("evaluating ACL %s on switch %s: %w", r.acl.UUID, s.name, r.err)
	}
	if r.void {
		return false, true, nil
	}
	return r.match.matches(p, s.names), false, nil
}
