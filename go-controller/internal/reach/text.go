package reach

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteJSON prints the answer as one JSON object.
func (c *Check) WriteJSON(w io.Writer) error { return writeJSON(w, c) }

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// String is the answer in a line.
func (a Answer) String() string {
	return fmt.Sprintf("%s; egress: %s; ingress: %s", a.word(), a.Egress.Reason, a.Ingress.Reason)
}

func (a Answer) word() Result { return word(a.Allowed) }

func (d Decision) word() Result { return word(d.Allowed) }

func word(allowed bool) Result {
	if allowed {
		return Allowed
	}
	return Denied
}

// WriteText prints the answer for people.
func (c *Check) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s -> %s: %s\n", c.From, c.To, c.Result)
	for _, n := range c.Notes {
		fmt.Fprintf(b, "  %s\n", n)
	}
	for _, x := range c.Connections {
		if err := x.write(b); err != nil {
			return err
		}
	}
	return b.Flush()
}

// write prints a connection as a table.
func (c Connection) write(w io.Writer) error {
	fmt.Fprintf(w, "\n%s -> ", cmp.Or(c.Client, c.From.String()))
	if c.Service != "" {
		fmt.Fprintf(w, "%s -> ", c.Service)
	}
	fmt.Fprintln(w, c.To)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, a := range c.Answers {
		ports := a.Ports.String()
		if i > 0 && i == len(c.Answers)-1 { // what is left is the largest
			ports = "all else"
		}
		if a.Egress.says(a.Ingress) { // nothing is asked about each direction
			fmt.Fprintf(t, "  %s\t%s\t%s\n", ports, a.word(), a.Egress.text())
		} else {
			fmt.Fprintf(t, "  %s\t%s\tegress\t%s\t%s\n", ports, a.word(), a.Egress.word(), a.Egress.text())
			fmt.Fprintf(t, "  \t\tingress\t%s\t%s\n", a.Ingress.word(), a.Ingress.text())
		}
		if a.Database != "" {
			fmt.Fprintf(t, "  \t\t%s\n", a.Database)
		}
	}
	return t.Flush()
}

// text is the reason, and how the deciding rows are in the database.
func (d Decision) text() string {
	out := d.Reason
	for _, r := range d.Rows {
		if r.State != "" {
			out += fmt.Sprintf("  (ACL %s %s)", r.Role, r.State)
		}
	}
	return out
}
