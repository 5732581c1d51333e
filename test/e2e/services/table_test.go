package services

import (
	"maps"
	"os"
	"strings"
	"testing"
)

// page has the tables.
const page = "../../../docs/reference/service-clients.md"

// heading is the place of an outcome in the tables. Protocols, families, affinities and the policy that does not matter
// there share a place.
type heading struct{ table, row, column string }

func (c *cell) heading() heading {
	if c.way.name == clusterIP {
		return heading{"cluster IP; client", c.client.Name, c.service.backend.name + ", `" + c.service.internal + "`"}
	}
	return heading{c.service.backend.name + ", `externalTrafficPolicy: " + c.service.external + "`; client", c.client.Name,
		c.way.name}
}

// outcome has the backends that answer, and the client that they see.
type outcome struct{ who, seen map[string]bool }

func (o outcome) String() string {
	if len(o.who) == 0 {
		return "dropped"
	}
	return strings.Join(sorted(o.who), ", ") + " ← " + strings.Join(sorted(o.seen), ", ")
}

// tables are Markdown tables in the order of the cells.
func tables(cells []*cell) (all []string) {
	outcomes := map[heading]outcome{}
	var names []string
	rows, columns := map[string][]string{}, map[string][]string{}
	for _, c := range cells {
		h := c.heading()
		if _, there := outcomes[h]; !there {
			outcomes[h] = outcome{map[string]bool{}, map[string]bool{}}
			names = add(names, h.table)
			rows[h.table], columns[h.table] = add(rows[h.table], h.row), add(columns[h.table], h.column)
		}
		maps.Copy(outcomes[h].who, c.who)
		maps.Copy(outcomes[h].seen, c.seen)
	}
	for _, name := range names {
		var s strings.Builder
		s.WriteString("| " + name + " | " + strings.Join(columns[name], " | ") + " |\n")
		s.WriteString("|" + strings.Repeat("---|", len(columns[name])+1) + "\n")
		for _, row := range rows[name] {
			s.WriteString("| " + row + " |")
			for _, column := range columns[name] {
				s.WriteString(" " + outcomes[heading{name, row, column}].String() + " |")
			}
			s.WriteString("\n")
		}
		all = append(all, s.String())
	}
	return all
}

// add appends an element unless it exists.
func add(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}

// print prints the tables and compares them with the documentation.
func printTables(t *testing.T, cells []*cell) {
	t.Helper()
	all := tables(cells)
	t.Log("\n" + strings.Join(all, "\n"))
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range all {
		if !strings.Contains(string(text), table) {
			title, _, _ := strings.Cut(table, "\n")
			t.Errorf("docs/reference/service-clients.md has another table: %s", title)
		}
	}
}
