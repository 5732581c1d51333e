package reach

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Diff is what policies change between two clusters.
type Diff struct {
	Classes  []*Class `json:"classes"` // that neither the old policies nor the new ones tell apart
	Gained   []Cell   `json:"gained"`
	Lost     []Cell   `json:"lost"`
	Notes    []string `json:"notes"`    // what becomes of established connections
	Warnings []string `json:"warnings"` // about policies that are new or changed
}

// Any is true when any connection is gained or lost.
func (d *Diff) Any() bool { return len(d.Gained)+len(d.Lost) > 0 }

// DiffFrom compares with an older cluster. Pods that are in one of the two only are left out. With namespaces, only
// connections from and to their pods are compared.
func (c *Cluster) DiffFrom(old *Cluster, namespaces []string) (*Diff, error) {
	now, before := newClassifier(c, namespaces), newClassifier(old, namespaces)
	blocks := slices.Concat(now.blocks, before.blocks)
	now.blocks, before.blocks = blocks, blocks
	for k := range before.keys {
		now.keys[k] = true
	}
	out := &Diff{Gained: []Cell{}, Lost: []Cell{}, Notes: []string{}, Warnings: []string{}}
	udp := false
	out.Classes = now.classes(before)
	for _, from := range out.Classes {
		for _, to := range out.Classes {
			if !from.listed && !to.listed {
				continue
			}
			is, err := c.between(from, to)
			if err != nil {
				return nil, err
			}
			was, err := old.between(from, to)
			if err != nil {
				return nil, err
			}
			gained, lost := less(is, was), less(was, is)
			if len(gained) > 0 {
				out.Gained = append(out.Gained, Cell{from.Name, to.Name, text(gained)})
			}
			if len(lost) > 0 {
				out.Lost = append(out.Lost, Cell{from.Name, to.Name, text(lost)})
			}
			for _, set := range lost {
				udp = udp || slices.ContainsFunc(set.spans, func(s span) bool { return s.protocol == cluster.UDP })
			}
		}
	}
	if len(out.Lost) > 0 {
		out.Notes = append(out.Notes, "Established connections that are lost are cut at the client's next packet.")
	}
	if udp {
		out.Notes = append(out.Notes, "A UDP server that keeps sending to a client that never answers goes on.")
	}
	out.Warnings = append(out.Warnings, c.warnings(old)...)
	return out, nil
}

// less is the ports of each family that others do not have; nil when there are none.
func less(sets, others map[family]PortSet) map[family]PortSet {
	out, any := map[family]PortSet{}, false
	for f, set := range sets {
		if out[f] = (PortSet{}); slices.Equal(set.spans, others[f].spans) {
			continue
		}
		out[f] = set.without(others[f])
		any = any || out[f].size() > 0
	}
	if !any {
		return nil
	}
	return out
}

// WriteJSON prints the difference as one JSON object.
func (d *Diff) WriteJSON(w io.Writer) error { return writeJSON(w, d) }

// WriteText prints a line for each pair of classes that gains or loses connections.
func (d *Diff) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	var lines []signed
	for _, c := range d.Lost {
		lines = append(lines, signed{"-", c})
	}
	for _, c := range d.Gained {
		lines = append(lines, signed{"+", c})
	}
	if err := writeSigned(b, lines); err != nil {
		return err
	}
	if !d.Any() {
		fmt.Fprintln(b, "No connection is gained or lost.")
	}
	if len(d.Notes) > 0 {
		fmt.Fprintf(b, "\n%s\n", strings.Join(d.Notes, "\n"))
	}
	if len(d.Warnings) > 0 {
		fmt.Fprintf(b, "\nWarnings\n  %s\n", strings.Join(d.Warnings, "\n  "))
	}
	return b.Flush()
}
