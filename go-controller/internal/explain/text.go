package explain

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteJSON prints the explanation as one JSON object.
func (e *Service) WriteJSON(w io.Writer) error {
	return writeJSON(w, e)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// WriteText prints the explanation for people.
func (e *Service) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "Service %s, %s\n", e.Name, e.Type)
	for _, p := range e.Ports {
		if err := p.write(b); err != nil {
			return err
		}
	}
	list(b, "Notes", e.Notes)
	list(b, "Problems", e.Problems)
	list(b, "Rows", e.Rows.lines())
	return b.Flush()
}

func list(w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	for _, l := range lines {
		fmt.Fprintf(w, "  %s\n", l)
	}
}

// write prints a port as a table.
func (p Port) write(w io.Writer) error {
	name := fmt.Sprintf("%d/%s", p.Port, p.Protocol)
	if p.Name != "" {
		name = p.Name + " " + name
	}
	fmt.Fprintf(w, "\nPort %s over %s", name, p.Family)
	if p.Local {
		fmt.Fprint(w, ", for clients on the same node as an endpoint")
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range p.VIPs {
		if v.Served {
			fmt.Fprintf(t, "  VIP\t%s\t%s\n", v.Address, v.From)
		} else {
			fmt.Fprintf(t, "  no VIP\t%s\t%s: %s\n", v.Address, v.From, v.Why)
		}
	}
	for _, e := range p.Endpoints {
		sign := "out"
		if e.In {
			sign = "in"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s%s  (%s)\n", sign, e.Address, e.Why, p.servedClients(e), e.where())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, h := range p.Hints {
		fmt.Fprintf(w, "  %s\n", h)
	}
	for _, c := range p.Clients {
		if c.Dropped {
			fmt.Fprintf(w, "  clients %s have no endpoint: their packets are dropped\n", c.Who)
		}
	}
	if len(p.Backends)+len(p.Clients) == 0 {
		fmt.Fprintln(w, "  no backend: connections are rejected")
	}
	return nil
}

// servedClients lists the groups of clients that an endpoint serves, and says why it does not serve the others.
func (p Port) servedClients(e Endpoint) string {
	if !e.In || len(p.Clients) == 0 {
		return ""
	}
	text := ", for clients " + strings.Join(e.Serves, " and ")
	if len(e.Serves) < len(p.Clients) && !p.Local {
		text += "; hints give other clients nearer endpoints"
	}
	return text
}

// where describes an endpoint: its pod, node, zone, hints and slice.
func (e Endpoint) where() string {
	var out []string
	for _, x := range []struct{ what, value string }{
		{"pod", e.Pod}, {"node", e.Node}, {"zone", e.Zone}, {"for zones", e.ForZones}, {"for nodes", e.ForNodes},
		{"slice", e.Slice}, {"checked from", e.Checked},
	} {
		if x.value != "" {
			out = append(out, x.what+" "+x.value)
		}
	}
	return strings.Join(out, ", ")
}
