package policyshape

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/scale/process"
)

// Append adds a result to a file, as a line of JSON.
func Append(path string, r Result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing a result: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("writing a result: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing a result: %w", err)
	}
	return nil
}

// Read reads the results that a file has: of several of one load, the last.
func Read(path string) ([]Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	defer f.Close()
	var out []Result
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("reading results from %s: %w", path, err)
		}
		out = slices.DeleteFunc(out, func(o Result) bool {
			return o.Version == r.Version && o.Shape == r.Shape && o.Size == r.Size
		})
		out = append(out, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading results from %s: %w", path, err)
	}
	slices.SortFunc(out, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Size.Policies, b.Size.Policies),
			cmp.Compare(a.Shape, b.Shape))
	})
	return out, nil
}

// median is the median of each figure. The engines count as having computed anew if they did so mostly.
func median(all []Sample) Sample {
	middle := func(figure func(Sample) time.Duration) time.Duration {
		return process.Median(all, figure)
	}
	yes := func(figure func(Sample) bool) time.Duration {
		return middle(func(s Sample) time.Duration {
			if figure(s) {
				return 1
			}
			return 0
		})
	}
	return Sample{
		Northd:         middle(func(s Sample) time.Duration { return s.Northd }),
		Controller:     middle(func(s Sample) time.Duration { return s.Controller }),
		OpenFlow:       middle(func(s Sample) time.Duration { return s.OpenFlow }),
		Computed:       middle(func(s Sample) time.Duration { return s.Computed }),
		Installed:      middle(func(s Sample) time.Duration { return s.Installed }),
		Flows:          int(middle(func(s Sample) time.Duration { return time.Duration(s.Flows) })),
		NorthdAnew:     yes(func(s Sample) bool { return s.NorthdAnew }) == 1,
		ControllerAnew: yes(func(s Sample) bool { return s.ControllerAnew }) == 1,
	}
}

// column is what a column of tables is about.
type column struct {
	version string
	shape   Shape
}

// grid arranges results: a column for each version and shape, and a figure in each cell for each number of policies.
type grid struct {
	columns []column
	sizes   []int
	results map[column]map[int]Result
}

func arrange(results []Result) grid {
	g := grid{results: map[column]map[int]Result{}}
	for _, r := range results {
		c := column{r.Version, r.Shape}
		if g.results[c] == nil {
			g.results[c] = map[int]Result{}
			g.columns = append(g.columns, c)
		}
		g.results[c][r.Size.Policies] = r
		g.sizes = append(g.sizes, r.Size.Policies)
	}
	slices.Sort(g.sizes)
	g.sizes = slices.Compact(g.sizes)
	slices.SortFunc(g.columns, func(a, b column) int {
		return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.shape, b.shape))
	})
	return g
}

// Table shows results as tables in Markdown, and what has kept a measurement from its end.
func Table(results []Result) string {
	g := arrange(results)
	var b strings.Builder
	fmt.Fprintf(&b, "Policies: %s\n\n", strings.Trim(strings.ReplaceAll(fmt.Sprint(g.sizes), " ", " / "), "[]"))
	g.state(&b)
	for _, t := range []struct {
		title string
		cell  func(Sample) string
	}{
		{"CPU time of ovn-northd, ms", func(s Sample) string { return milliseconds(s.Northd) + mark(s.NorthdAnew) }},
		{"CPU time of ovn-controller, ms", func(s Sample) string {
			return milliseconds(s.Controller) + mark(s.ControllerAnew)
		}},
		{"until the Southbound database has it, ms", func(s Sample) string { return milliseconds(s.Computed) }},
		{"until the flows are there, ms", func(s Sample) string { return milliseconds(s.Installed) }},
		{"flows more or less", func(s Sample) string { return fmt.Sprintf("%+d", s.Flows) }},
	} {
		g.head(&b, t.title)
		for _, name := range eventNames() {
			g.row(&b, name, func(r Result) string {
				if s, ok := r.Events[name]; ok {
					return t.cell(s)
				}
				return ""
			})
		}
	}
	for _, r := range results {
		if r.Failure != "" {
			fmt.Fprintf(&b, "\nOVN %s, %d %s, ended early: %s\n", r.Version, r.Size.Policies, r.Shape, r.Failure)
		}
	}
	return b.String()
}

// state has what was measured without events.
func (g grid) state(b *strings.Builder) {
	g.head(b, "state")
	g.row(b, "logical flows", func(r Result) string { return count(int64(r.LogicalFlows)) })
	g.row(b, "flows of the chassis", func(r Result) string { return count(int64(r.Flows)) })
	g.row(b, "RSS of ovn-northd, MB", func(r Result) string { return count(r.NorthdRSS >> 20) })
	g.row(b, "RSS of ovn-controller, MB", func(r Result) string { return count(r.ControllerRSS >> 20) })
	g.row(b, "RSS of ovs-vswitchd, MB", func(r Result) string { return count(r.OpenFlowRSS >> 20) })
	g.row(b, "CPU time of ovn-northd's start, ms", func(r Result) string { return some(r.NorthdStart.Northd) })
	g.row(b, "CPU time of ovn-controller's start, ms", func(r Result) string { return some(r.Start.Controller) })
	g.row(b, "until all flows are there, from that start, ms", func(r Result) string { return some(r.Start.Installed) })
	g.row(b, "CPU time of ovn-northd's recompute, ms", func(r Result) string { return some(r.NorthdAnew.Northd) })
	g.row(b, "CPU time of ovn-controller's recompute, ms", func(r Result) string {
		return some(r.ControllerAnew.Controller)
	})
	for _, s := range stopwatches() {
		g.row(b, "longest `"+s+"` then, ms", func(r Result) string { return count(int64(r.Stopwatches[s])) })
	}
	g.row(b, "complete rounds of events", func(r Result) string { return strconv.Itoa(r.Rounds) })
	g.row(b, "load average", func(r Result) string { return r.Loads })
}

func (g grid) head(b *strings.Builder, title string) {
	b.WriteString("\n| " + title + " |")
	for _, c := range g.columns {
		fmt.Fprintf(b, " %s %s |", c.version, c.shape)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(g.columns)) + "\n")
}

// row has a cell for each column, with a figure for each size. An empty figure was not measured.
func (g grid) row(b *strings.Builder, what string, figure func(Result) string) {
	b.WriteString("| " + what + " |")
	for _, c := range g.columns {
		var cell []string
		for _, n := range g.sizes {
			text := ""
			if r, ok := g.results[c][n]; ok {
				text = figure(r)
			}
			cell = append(cell, cmp.Or(text, "–"))
		}
		b.WriteString(" " + strings.Join(cell, " / ") + " |")
	}
	b.WriteString("\n")
}

func mark(anew bool) string {
	if anew {
		return "*"
	}
	return ""
}

// String is for progress messages: times of ovn-northd; of ovn-controller and ovs-vswitchd; and the change of flows.
func (s Sample) String() string {
	return fmt.Sprintf("%s%s (%s); %s%s + %s (%s); %+d", milliseconds(s.Northd), mark(s.NorthdAnew),
		milliseconds(s.Computed), milliseconds(s.Controller), mark(s.ControllerAnew), milliseconds(s.OpenFlow),
		milliseconds(s.Installed), s.Flows)
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.0f", float64(d)/float64(time.Millisecond))
}

// some is empty for a time that was not measured.
func some(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return milliseconds(d)
}

// count is empty for a number that was not measured.
func count(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
