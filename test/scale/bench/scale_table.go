package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/scale/chart"
)

// Scaled is what phase scale measured.
type Scaled struct {
	Scale
	Machine string
	Sizes   []scaled
}

// The page has the table between these lines. The plot is a file beside the page.
const (
	scalePage  = "performance.md"
	scalePlot  = "scale.svg"
	tableBegin = "<!-- bin/bench --only scale --write writes from here -->\n"
	tableEnd   = "<!-- to here -->\n"
)

// around is what the page has before and after the table.
func (s Scale) around() (before, after string, err error) {
	page := filepath.Join(s.Write, scalePage)
	text, err := os.ReadFile(page)
	if err != nil {
		return "", "", fmt.Errorf("reading the page that the table is to be written into: %w", err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return "", "", fmt.Errorf("writing the table into %s: want the lines %q and %q in it", page, tableBegin, tableEnd)
	}
	return before, after, nil
}

// Write replaces the table in the page, and the plot.
func (s *Scaled) Write() error {
	before, after, err := s.around()
	if err != nil {
		return err
	}
	out := before + tableBegin + "\n" + s.Table() + "\n" + tableEnd + after
	if err := os.WriteFile(filepath.Join(s.Scale.Write, scalePage), []byte(out), 0o644); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	if err := os.WriteFile(filepath.Join(s.Scale.Write, scalePlot), []byte(s.plot()), 0o644); err != nil {
		return fmt.Errorf("writing the plot: %w", err)
	}
	return nil
}

// Table is the measurements as a table in Markdown.
func (s *Scaled) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes, %d services with 10 endpoints of each family;\n%s.\n\n", s.Nodes, s.Services,
		s.Machine)
	b.WriteString("| measured |")
	for _, n := range s.Sizes {
		fmt.Fprintf(&b, " %s pods |", grouped(n.pods))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(s.Sizes)) + "\n")
	row := func(what string, figure func(i int, n scaled) string) {
		b.WriteString("| " + what + " |")
		for i, n := range s.Sizes {
			b.WriteString(" " + figure(i, n) + " |")
		}
		b.WriteString("\n")
	}
	row("*growing up to here:* CPU time of the master a pod", func(_ int, n scaled) string { return perPod(n.growth, 1) })
	row("*into an empty database:* start until everything is written", func(_ int, n scaled) string {
		return seconds(n.fill.ready)
	})
	row("operations", func(_ int, n scaled) string { return grouped(n.fill.operations) })
	row("bytes allocated; CPU time", func(_ int, n scaled) string { return n.fill.spent() })
	row("*restart:* start until a pod that waited is annotated; in Northbound", func(_ int, n scaled) string {
		return seconds(n.again.annotated) + "; " + seconds(n.again.ported)
	})
	row("start until `/readyz` is ok", func(_ int, n scaled) string { return seconds(n.again.ready) })
	row("of it, translating every owner and comparing its rows", func(_ int, n scaled) string {
		return seconds(n.again.pass)
	})
	row("bytes allocated; CPU time", func(_ int, n scaled) string { return n.again.spent() })
	row("CPU time of the API server meanwhile, of ovsdb-server", func(_ int, n scaled) string {
		return seconds(n.again.apiServer) + ", " + seconds(n.again.ovsdb)
	})
	row("operations, patches without need", func(_ int, n scaled) string {
		return fmt.Sprintf("%d, %d", n.again.operations, n.again.patches)
	})
	row("*the same, watches answered from memory:* annotated; in Northbound; `/readyz`", func(_ int, n scaled) string {
		return seconds(n.replayed.annotated) + "; " + seconds(n.replayed.ported) + "; " + seconds(n.replayed.ready)
	})
	row("CPU time of the master, of the API server meanwhile; RSS at most", func(_ int, n scaled) string {
		return seconds(n.replayed.cpu) + ", " + seconds(n.replayed.apiServer) + "; " + megabytes(n.replayed.peak)
	})
	row("*memory:* live heap; of it for each pod more", func(i int, n scaled) string {
		if i == 0 {
			return megabytes(n.heap)
		}
		return fmt.Sprintf("%s; %d bytes", megabytes(n.heap), s.heapPerPod(i))
	})
	row("RSS; at most since the restart, since the empty database", func(_ int, n scaled) string {
		return megabytes(n.rss) + "; " + megabytes(n.peak) + ", " + megabytes(n.fill.peak)
	})
	for k, e := range s.Sizes[0].changes {
		row("*"+e.kind+":* operations; time, p50; CPU time", func(_ int, n scaled) string { return n.changes[k].String() })
	}
	return b.String()
}

// heapPerPod is the live bytes for each pod that the i-th size has more than the one before.
func (s *Scaled) heapPerPod(i int) int64 {
	n, smaller := s.Sizes[i], s.Sizes[i-1]
	return (n.heap - smaller.heap) / int64(n.pods-smaller.pods)
}

func (s start) spent() string { return megabytes(s.allocated) + "; " + seconds(s.cpu) }

func (e effect) String() string {
	took := "none"
	if e.took > 0 {
		took = milliseconds(e.took)
	}
	return fmt.Sprintf("%s; %s; %s", strconv.FormatFloat(e.operations, 'g', 3, 64), took, milliseconds(e.cpu))
}

// grouped prints a number with a comma before each group of three digits.
func grouped(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// plot draws what grows with the cluster and what does not.
func (s *Scaled) plot() string {
	c := chart.Chart{X: "pods in the cluster", Panels: []chart.Panel{
		{Y: "time from the master's start, seconds", Lines: []chart.Line{
			s.line("restart: a waiting pod in Northbound", func(n scaled) float64 { return n.again.ported.Seconds() }),
			s.line("restart: everything compared", func(n scaled) float64 { return n.again.ready.Seconds() }),
			s.line("empty database: everything written", func(n scaled) float64 { return n.fill.ready.Seconds() }),
		}},
		{Y: "memory of the master, MB", Lines: []chart.Line{
			s.line("live heap", func(n scaled) float64 { return float64(n.heap) / 1e6 }),
			s.line("RSS after a restart", func(n scaled) float64 { return float64(n.rss) / 1e6 }),
			s.line("the most since then", func(n scaled) float64 { return float64(n.peak) / 1e6 }),
		}},
		{Y: "one change, request to Northbound, milliseconds"},
	}}
	for _, n := range s.Sizes {
		c.At = append(c.At, float64(n.pods))
	}
	for k, e := range s.Sizes[0].changes {
		if e.took > 0 {
			last := &c.Panels[len(c.Panels)-1]
			last.Lines = append(last.Lines, s.line(e.kind, func(n scaled) float64 {
				return float64(n.changes[k].took) / float64(time.Millisecond)
			}))
		}
	}
	return c.SVG()
}

func (s *Scaled) line(name string, value func(scaled) float64) chart.Line {
	l := chart.Line{Name: name}
	for _, n := range s.Sizes {
		l.Values = append(l.Values, value(n))
	}
	return l
}
