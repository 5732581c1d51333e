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

// script writes ovn-nbctl commands (ovn-nbctl(8)), one line, and so one
// transaction, per row. It uses the commands that a person would, and create,
// set and add for what these don't cover.
type script struct {
	*view
	types   map[string]map[string]column
	parents map[nb.Ref][]nb.Slot
	out     bytes.Buffer
}

const scriptHead = `#!/bin/sh
# Makes the content of a Northbound database, row by row, in an empty one.
# ovn-nbctl reads the database's address from OVN_NB_DB.
set -e
`

// nbctl is a script that makes the content of the database in an empty one.
func (v *view) nbctl() ([]byte, error) {
	types, err := columnTypes()
	if err != nil {
		return nil, err
	}
	s := &script{view: v, types: types, parents: map[nb.Ref][]nb.Slot{}}
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

// order is the tables so that what a row names is there before it.
func (s *script) order() []string {
	tables := slices.DeleteFunc(slices.Clone(s.schema.Tables()), func(t string) bool { return t == nbdb.LoadBalancerGroupTable })
	return append([]string{nbdb.LoadBalancerGroupTable}, tables...)
}

// index notes what the rows of a table list. A row that lists others is known
// to the script by its name, which must tell it apart.
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

// row writes the line that makes a row.
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
		if len(m.Addresses) > 0 {
			commands = append(commands, append([]string{"lsp-set-addresses", m.Name}, slices.Sorted(slices.Values(m.Addresses))...))
		}
		if len(m.PortSecurity) > 0 {
			commands = append(commands, append([]string{"lsp-set-port-security", m.Name}, slices.Sorted(slices.Values(m.PortSecurity))...))
		}
		commands = append(commands, s.set(table, m.Name, m, "name", "type", "addresses", "port_security")...)
		s.line(append(commands, s.alsoIn(table, m.Name, m)...))
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

// set is the commands that give an existing row its other columns.
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
		refs := s.types[table][c.column].refs
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

// create is the line that makes a row and has its parents list it.
func (s *script) create(table string, m model.Model) {
	args := []string{"--id=@row", "create", table}
	for _, c := range s.plain(table, m) {
		args = append(args, assignments(c)...)
	}
	commands := [][]string{args}
	for _, sl := range s.parents[s.schema.Ref(m)] {
		commands = append(commands, []string{"add", sl.In.Table, s.schema.Label(s.db.Row(sl.In)), sl.Column, "@row"})
	}
	s.line(commands)
}

// plain is the cells that refer to no other row, but for those already done.
func (s *script) plain(table string, m model.Model, done ...string) []cell {
	return slices.DeleteFunc(cells(m), func(c cell) bool {
		return s.types[table][c.column].refs != "" || slices.Contains(done, c.column)
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

// assignments is a cell as arguments of set and create: one per key of a map
// whose keys need no quotes, as those of a map of integers never do: the
// schema lists them.
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

// atom is a string as ovn-nbctl reads it: in quotes unless it is a plain word
// (ovs-vsctl(8), "Database Values").
func atom(s string) string {
	if digit := s != "" && s[0] >= '0' && s[0] <= '9'; !digit && wordOf(s, "_./-") {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// shellQuote is an argument as a POSIX shell reads it.
func shellQuote(s string) string {
	if wordOf(s, "_@%+=:,./-") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// wordOf tells whether s is made of ASCII letters, digits and the characters
// in also.
func wordOf(s, also string) bool {
	other := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(also, r)
	}
	return s != "" && strings.IndexFunc(s, other) < 0
}
