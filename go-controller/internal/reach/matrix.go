package reach

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
)

// Matrix is who may connect to whom.
type Matrix struct {
	Classes []*Class `json:"classes"`
	Cells   []Cell   `json:"cells"`
}

// Cell is the ports of one class that another one may connect to.
type Cell struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Ports string `json:"ports"` // "all", "none", or such as "tcp/80,443 udp"
}

// Matrix asks one pod of each class about one of each other. With namespaces, it asks about connections from and to
// their pods only.
func (c *Cluster) Matrix(namespaces []string) (*Matrix, error) {
	x := newClassifier(c, namespaces)
	out := &Matrix{Classes: x.classes(nil), Cells: []Cell{}}
	for _, from := range out.Classes {
		for _, to := range out.Classes {
			if !from.listed && !to.listed {
				continue
			}
			sets, err := c.between(from, to)
			if err != nil {
				return nil, err
			}
			if len(sets) > 0 {
				out.Cells = append(out.Cells, Cell{from.Name, to.Name, text(sets)})
			}
		}
	}
	return out, nil
}

// clientEnds lists the addresses of the first member of a class.
func (c *Cluster) clientEnds(of *Class) []End {
	if of.outside.IsValid() {
		return []End{c.at(of.outside)}
	}
	out, err := c.podEnds(of.members[0].Name)
	if err != nil {
		return nil // classes have no pods without an address
	}
	return out
}

// serverEnds lists the addresses to which clients connect, of a member of a class: of the first, or the second if the
// clients are the first.
func (c *Cluster) serverEnds(from []End, of *Class, second bool) []End {
	switch {
	case of.outside.IsValid():
		return []End{c.at(of.outside)}
	case len(from) == 0 || second && len(of.members) == 1:
		return nil
	}
	member := of.members[0]
	if second {
		member = of.members[1]
	}
	out, _, err := c.servers(from, Side{Kind: Pod, Name: member.Name})
	if err != nil {
		return nil // classes have no pods without an address
	}
	return out
}

// family is an address family: true for IPv4.
type family bool

// between is the ports that one class may connect to of another, in each family that both have. There are none to ask
// about when both are outside, or both are one pod.
func (c *Cluster) between(from, to *Class) (map[family]PortSet, error) {
	out := map[family]PortSet{}
	if from.outside.IsValid() && to.outside.IsValid() {
		return out, nil
	}
	everything, err := portsOf(Asked{}, End{})
	if err != nil {
		return nil, err
	}
	clients := c.clientEnds(from)
	for _, a := range clients {
		for _, b := range c.serverEnds(clients, to, from == to) {
			if a.Addr.Is4() != b.Addr.Is4() {
				continue
			}
			set, err := c.allowed(connection{from: a, to: b, asked: everything, refused: c.apart(a, b)})
			if err != nil {
				return nil, fmt.Errorf("asking about %s to %s: %w", a, b, err)
			}
			out[family(a.Addr.Is4())] = set
		}
	}
	return out, nil
}

// text is ports of each family; they are named once when they are the same.
func text(sets map[family]PortSet) string {
	v4, has4 := sets[true]
	v6, has6 := sets[false]
	switch {
	case has4 && has6 && v4.String() != v6.String():
		return fmt.Sprintf("IPv4 %s; IPv6 %s", v4, v6)
	case has4:
		return v4.String()
	}
	return v6.String()
}

// allowed is the ports to which a way to connect is allowed.
func (c *Cluster) allowed(w connection) (PortSet, error) {
	var out PortSet
	switch {
	case w.refused != "":
		return out, nil
	case w.relay != nil:
		for _, s := range w.asked {
			a, err := c.relayed(c.wanted, w, s)
			if err != nil {
				return out, err
			}
			if a.Allowed {
				out.add(s)
			}
		}
		return out, nil
	}
	for _, asked := range w.asked {
		rows, err := c.wanted.ForAnyPort(w.packet(asked), w.service)
		if err != nil {
			return out, err
		}
		parts, err := spans(rows, w.packet(asked), asked)
		if err != nil {
			return out, err
		}
		for _, s := range parts {
			v, err := rows.Connection(w.packet(s), w.service)
			if err != nil {
				return out, err
			}
			if v.Allowed {
				out.add(s)
			}
		}
	}
	return out, nil
}

// Difference is what one matrix has otherwise than another.
type Difference struct {
	From string `json:"from"`
	To   string `json:"to"`
	Was  string `json:"was,omitempty"` // empty when the classes are new
	Is   string `json:"is,omitempty"`  // empty when the classes are gone
}

// Since lists what is otherwise than in an older matrix.
func (m *Matrix) Since(old *Matrix) Differences {
	type pair struct{ from, to string }
	was, is := map[pair]string{}, map[pair]string{}
	for _, c := range old.Cells {
		was[pair{c.From, c.To}] = c.Ports
	}
	for _, c := range m.Cells {
		is[pair{c.From, c.To}] = c.Ports
	}
	var out Differences
	for _, c := range slices.Concat(old.Cells, m.Cells) {
		p := pair{c.From, c.To}
		d := Difference{c.From, c.To, was[p], is[p]}
		if d.Was != d.Is && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return out
}

// ReadMatrix reads what WriteJSON wrote.
func ReadMatrix(b []byte) (*Matrix, error) {
	var out Matrix
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, fmt.Errorf("reading a matrix: %w", err)
	}
	if len(out.Cells) == 0 {
		return nil, errors.New("reading a matrix: it has no cells: want what `ovnkube policy matrix -o json` prints")
	}
	return &out, nil
}

// WriteJSON prints the matrix as one JSON object.
func (m *Matrix) WriteJSON(w io.Writer) error { return writeJSON(w, m) }

// heading is the first line of what is printed of cells.
const heading = "FROM\tTO\tPORTS"

// WriteText prints a line for each cell.
func (m *Matrix) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, heading)
	for _, c := range m.Cells {
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.From, c.To, c.Ports)
	}
	return t.Flush()
}

// WriteDot prints a graph for graphviz. Connections of which no port is allowed have no edge.
func (m *Matrix) WriteDot(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "digraph policies {\n  rankdir=LR\n  node [shape=box]")
	for _, c := range m.Classes {
		fmt.Fprintf(b, "  %s\n", strconv.Quote(c.Name))
	}
	for _, c := range m.Cells {
		if c.Ports != "none" {
			fmt.Fprintf(b, "  %s -> %s [label=%s]\n", strconv.Quote(c.From), strconv.Quote(c.To), strconv.Quote(c.Ports))
		}
	}
	fmt.Fprintln(b, "}")
	return b.Flush()
}

// Differences are those of two matrices.
type Differences []Difference

// WriteJSON prints a list.
func (d Differences) WriteJSON(w io.Writer) error { return writeJSON(w, append([]Difference{}, d...)) }

// WriteText prints a heading, and a line for each side of each difference; nothing if there is none.
func (d Differences) WriteText(w io.Writer) error {
	var lines []signed
	for _, x := range d {
		if x.Was != "" {
			lines = append(lines, signed{"-", Cell{x.From, x.To, x.Was}})
		}
		if x.Is != "" {
			lines = append(lines, signed{"+", Cell{x.From, x.To, x.Is}})
		}
	}
	return writeSigned(w, lines)
}

// signed is a cell that is there no more, "-", or is new, "+".
type signed struct {
	sign string
	Cell
}

// writeSigned prints a heading, and a line for each cell; nothing if there is none.
func writeSigned(w io.Writer, lines []signed) error {
	if len(lines) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  "+heading)
	for _, x := range lines {
		fmt.Fprintf(t, "%s %s\t%s\t%s\n", x.sign, x.From, x.To, x.Ports)
	}
	return t.Flush()
}
