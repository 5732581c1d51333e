package show

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// script writes ovn-nbctl commands (ovn-nbctl(8)): one line, and so one transaction, per row. It uses the usual
// commands, such as ls-add; create, set and add serve for the rest.
type script struct {
	*view
	parents map[nb.Ref][]nb.Slot
	out     bytes.Buffer
}

const scriptHead = `#!/bin/sh
# Makes the content of a Northbound database, row by row, in an empty one.
# ovn-nbctl reads the database's address from OVN_NB_DB.
set -e
`

// nbctl prints a script that creates the database's content in an empty database.
func (v *view) nbctl() ([]byte, error) {
	s := &script{view: v, parents: map[nb.Ref][]nb.Slot{}}
	s.out.WriteString(scriptHead)
	for _, table := range v.schema.Tables() {
		if err := s.index(table); err != nil {
			return nil, err
		}
	}
	for _, table := range s.order() {
		for _, m := range v.db.Rows(table) {
			s.row(table, m)
		}
	}
	return s.out.Bytes(), nil
}

// order returns the tables in an order in which rows exist before others refer to them.
func (s *script) order() []string {
	const first = nbdb.LoadBalancerGroupTable
	tables := slices.DeleteFunc(slices.Clone(s.schema.Tables()), func(t string) bool { return t == first })
	return append([]string{first}, tables...)
}

// index records the parents of rows: the slots of a table's rows that list them. The script refers to a parent by its
// name, which must therefore be unique.
func (s *script) index(table string) error {
	named := map[string]bool{}
	for _, m := range s.db.Rows(table) {
		slots := s.schema.SlotMembers(m)
		if label := s.schema.Label(m); slots != nil {
			if named[label] {
				return fmt.Errorf("two rows of %s are named %q: a script can't tell them apart", table, label)
			}
			named[label] = true
		}
		for sl, uuids := range slots {
			for _, u := range uuids {
				ref := nb.Ref{Table: s.schema.Child(sl), UUID: u}
				s.parents[ref] = append(s.parents[ref], sl)
			}
		}
	}
	return nil
}

// row writes the line that creates a row.
func (s *script) row(table string, m model.Model) {
	switch m := m.(type) {
	case *nbdb.LogicalRouter:
		s.line(append([][]string{{"lr-add", m.Name}}, s.set(table, m.Name, m, "name")...))
	case *nbdb.LogicalSwitch:
		s.line(append([][]string{{"ls-add", m.Name}}, s.set(table, m.Name, m, "name")...))
	case *nbdb.LogicalRouterPort:
		add := append([]string{"lrp-add", s.parent(m), m.Name, m.MAC}, slices.Sorted(slices.Values(m.Networks))...)
		s.line(append([][]string{add}, s.set(table, m.Name, m, "name", "mac", "networks")...))
	case *nbdb.LogicalSwitchPort:
		commands := [][]string{{"lsp-add", s.parent(m), m.Name}}
		if m.Type != "" {
			commands = append(commands, []string{"lsp-set-type", m.Name, m.Type})
		}
		setAll := func(command string, values []string) {
			if len(values) > 0 {
				args := append([]string{command, m.Name}, slices.Sorted(slices.Values(values))...)
				commands = append(commands, args)
			}
		}
		setAll("lsp-set-addresses", m.Addresses)
		setAll("lsp-set-port-security", m.PortSecurity)
		commands = append(commands, s.set(table, m.Name, m, "name", "type", "addresses", "port_security")...)
		s.line(append(commands, s.alsoIn(table, m.Name, m)...))
	case *nbdb.Meter:
		s.meter(m)
	case *nbdb.MeterBand: // made with its Meter
	default:
		s.create(table, m)
	}
}

// alsoIn is the commands that have further rows list a port than the one that it was made in.
func (s *script) alsoIn(table, name string, m model.Model) [][]string {
	var commands [][]string
	for i, sl := range s.parents[s.schema.Ref(m)] {
		if i == 0 {
			commands = append(commands, []string{"--id=@port", "get", table, name})
			continue
		}
		commands = append(commands, []string{"add", sl.In.Table, s.schema.Label(s.db.Row(sl.In)), sl.Column, "@port"})
	}
	if len(commands) < 2 {
		return nil
	}
	return commands
}

// parent is the name of the first row that lists a port: its switch or router.
func (s *script) parent(m model.Model) string {
	for _, sl := range s.parents[s.schema.Ref(m)] {
		return s.schema.Label(s.db.Row(sl.In))
	}
	return ""
}

// set returns the commands that set an existing row's columns other than done.
func (s *script) set(table, name string, m model.Model, done ...string) [][]string {
	var commands [][]string
	args := []string{"set", table, name}
	for _, c := range s.plain(table, m, done...) {
		args = append(args, assignments(c)...)
	}
	if len(args) > 3 {
		commands = append(commands, args)
	}
	for _, c := range cells(m) {
		refs := s.refs(table, c.column)
		if refs == "" || s.isSlot(m, c.column) {
			continue
		}
		uuids, _ := c.value.([]string)
		for i, u := range uuids {
			id := fmt.Sprintf("@%s%d", c.column, i)
			commands = append(commands,
				[]string{"--id=" + id, "get", refs, s.schema.Label(s.db.Row(nb.Ref{Table: refs, UUID: u}))},
				[]string{"add", table, name, c.column, id})
		}
	}
	return commands
}

// creation is the command that creates a row, without its references to other rows.
func (s *script) creation(id, table string, m model.Model) []string {
	args := []string{"--id=" + id, "create", table}
	for _, c := range s.plain(table, m) {
		args = append(args, assignments(c)...)
	}
	return args
}

// create writes the line that creates a row and adds it to its parents.
func (s *script) create(table string, m model.Model) {
	commands := [][]string{s.creation("@row", table, m)}
	for _, sl := range s.parents[s.schema.Ref(m)] {
		commands = append(commands, []string{"add", sl.In.Table, s.schema.Label(s.db.Row(sl.In)), sl.Column, "@row"})
	}
	s.line(commands)
}

// meter writes the line that creates a meter with its bands: the server refuses one without.
func (s *script) meter(m *nbdb.Meter) {
	var commands [][]string
	var ids []string
	for i, u := range m.Bands {
		id := fmt.Sprintf("@band%d", i)
		band := s.db.Row(nb.Ref{Table: nbdb.MeterBandTable, UUID: u})
		commands = append(commands, s.creation(id, nbdb.MeterBandTable, band))
		ids = append(ids, id)
	}
	s.line(append(commands, append(s.creation("@row", nbdb.MeterTable, m), "bands="+strings.Join(ids, ","))))
}

// plain returns the cells without references to other rows, except done.
func (s *script) plain(table string, m model.Model, done ...string) []cell {
	return slices.DeleteFunc(cells(m), func(c cell) bool {
		return s.refs(table, c.column) != "" || slices.Contains(done, c.column)
	})
}

func (s *script) isSlot(m model.Model, column string) bool {
	for sl := range s.schema.SlotMembers(m) {
		if sl.Column == column {
			return true
		}
	}
	return false
}

func (s *script) line(commands [][]string) {
	var parts []string
	for _, c := range commands {
		for i, arg := range c {
			c[i] = shellQuote(arg)
		}
		parts = append(parts, strings.Join(c, " "))
	}
	fmt.Fprintf(&s.out, "ovn-nbctl %s\n", strings.Join(parts, " \\\n    -- "))
}

// assignments returns a cell as arguments of set and create. A map whose keys need no quotes becomes an argument per
// key. The keys of a map of integers never need quotes, since the schema lists them.
func assignments(c cell) []string {
	switch x := c.value.(type) {
	case map[string]string:
		keys := slices.Sorted(maps.Keys(x))
		if !slices.ContainsFunc(keys, func(k string) bool { return atom(k) != k }) {
			for i, k := range keys {
				keys[i] = c.column + ":" + k + "=" + atom(x[k])
			}
			return keys
		}
		for i, k := range keys {
			keys[i] = atom(k) + "=" + atom(x[k])
		}
		return []string{c.column + "={" + strings.Join(keys, ", ") + "}"}
	case map[string]int:
		keys := slices.Sorted(maps.Keys(x))
		for i, k := range keys {
			keys[i] = fmt.Sprintf("%s:%s=%d", c.column, k, x[k])
		}
		return keys
	case []string:
		atoms := make([]string, len(x))
		for i, s := range x {
			atoms[i] = atom(s)
		}
		return []string{c.column + "=[" + strings.Join(atoms, ", ") + "]"}
	case string:
		return []string{c.column + "=" + atom(x)}
	default:
		return []string{fmt.Sprintf("%s=%v", c.column, x)}
	}
}

// atom quotes a string for ovn-nbctl unless it is a plain word (ovs-vsctl(8), "Database Values").
func atom(s string) string {
	if digit := s != "" && s[0] >= '0' && s[0] <= '9'; !digit && wordOf(s, "_./-") {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// shellQuote quotes an argument for a POSIX shell if need be.
func shellQuote(s string) string {
	if wordOf(s, "_@%+=:,./-") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// wordOf reports whether s is not empty and has only ASCII letters, digits and the characters in also.
func wordOf(s, also string) bool {
	other := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(also, r)
	}
	return s != "" && strings.IndexFunc(s, other) < 0
}
