package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// cell is one question: may this client reach this port of this server in this way?
type cell struct {
	table, row, column string
	asks               machines.Asker
	protocol           string
	to                 netip.AddrPort
	port               int  // of the server, behind the address
	want               bool // by the words of the API
	wrong              string
}

func (c *cell) question() string { return c.protocol + " " + c.to.String() }

func (c *cell) String() string {
	return fmt.Sprintf("%s, %s, %s: %s asks %s (port %d)", c.table, c.column, c.row, c.asks.Name, c.question(), c.port)
}

// take compares an answer with what is wanted. Policies drop: a connection that is refused is wrong, too.
func (c *cell) take(answer string) {
	reason, failed := strings.CutPrefix(answer, "error: ")
	dropped := failed && machines.Dropped(reason)
	c.wrong = ""
	if c.want && failed || !c.want && !dropped {
		c.wrong = fmt.Sprintf("%q, want an answer: %v", answer, c.want)
	}
}

// tables are Markdown tables of what is wanted, which a test has found to be so for every protocol and family.
func tables(cells []*cell) (out []string) {
	type place struct{ table, row, column string }
	ports := map[place]map[int]bool{}
	var names []string
	rows, columns := map[string][]string{}, map[string][]string{}
	for _, c := range cells {
		at := place{c.table, c.row, c.column}
		if ports[at] == nil {
			ports[at] = map[int]bool{}
			names = add(names, c.table)
			rows[c.table], columns[c.table] = add(rows[c.table], c.row), add(columns[c.table], c.column)
		}
		if c.want {
			ports[at][c.port] = true
		}
	}
	for _, name := range names {
		var s strings.Builder
		s.WriteString("| " + name + " | " + strings.Join(columns[name], " | ") + " |\n")
		s.WriteString("|" + strings.Repeat("---|", len(columns[name])+1) + "\n")
		for _, row := range rows[name] {
			s.WriteString("| " + row + " |")
			for _, column := range columns[name] {
				s.WriteString(" " + reached(ports[place{name, row, column}]) + " |")
			}
			s.WriteString("\n")
		}
		out = append(out, s.String())
	}
	return out
}

func reached(ports map[int]bool) string {
	switch {
	case ports[lowPort] && ports[highPort]:
		return "yes"
	case ports[lowPort]:
		return fmt.Sprint(lowPort)
	case ports[highPort]:
		return fmt.Sprint(highPort)
	}
	return "–"
}

// add appends an element unless it is there.
func add(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}
