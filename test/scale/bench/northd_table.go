package bench

import (
	"fmt"
	"time"

	"github.com/northbound-net/northbound/test/scale/central"
)

// Northds is what phase northd measured.
type Northds struct {
	Machine string
	Results []northdResult
}

// northdResult is what was measured of one release at one size.
type northdResult struct {
	Version               string
	Nodes, Pods, Services int
	LogicalFlows          int
	Start, StartCPU       time.Duration // until ovn-northd had filled the Southbound database
	NorthdRSS             int64
	SBRSS, NBRSS          int64
	Changes               map[string]northdSample // medians, by their names
}

// northdSample is what one change has cost.
type northdSample struct {
	Northbound       time.Duration // from the request to the Northbound database
	Southbound       time.Duration // from there to the Southbound one
	NorthdCPU, SBCPU time.Duration
	Anew             bool // whether ovn-northd computed all logical flows anew
}

// Table is the results in Markdown: a column for each release, with a figure for each size in each cell.
func (n *Northds) Table() string {
	var lines []central.Line[northdResult]
	line := func(what string, figure func(r northdResult) string) {
		lines = append(lines, central.Line[northdResult]{What: what, Figure: figure})
	}
	line("logical flows", func(r northdResult) string { return fmt.Sprint(r.LogicalFlows) })
	line("ovn-northd fills an empty Southbound database: time, s", func(r northdResult) string {
		return fmt.Sprintf("%.1f", r.Start.Seconds())
	})
	line("CPU time of ovn-northd for it, s", func(r northdResult) string {
		return fmt.Sprintf("%.1f", r.StartCPU.Seconds())
	})
	for _, m := range []struct {
		name string
		of   func(r northdResult) int64
	}{{"ovn-northd", func(r northdResult) int64 { return r.NorthdRSS }},
		{"the Southbound server", func(r northdResult) int64 { return r.SBRSS }},
		{"the Northbound server", func(r northdResult) int64 { return r.NBRSS }}} {
		line("RSS of "+m.name+", MB", func(r northdResult) string { return fmt.Sprintf("%.0f", float64(m.of(r))/1e6) })
	}
	for _, c := range northdChanges() {
		of := func(figure func(northdSample) time.Duration) func(northdResult) string {
			return func(r northdResult) string {
				return fmt.Sprintf("%.0f", float64(figure(r.Changes[c.name]))/float64(time.Millisecond))
			}
		}
		line("*"+c.name+":* request to Northbound, ms", of(func(s northdSample) time.Duration { return s.Northbound }))
		line("from Northbound to Southbound, ms", of(func(s northdSample) time.Duration { return s.Southbound }))
		line("CPU time of ovn-northd, ms", func(r northdResult) string {
			text := of(func(s northdSample) time.Duration { return s.NorthdCPU })(r)
			if r.Changes[c.name].Anew {
				text += "*"
			}
			return text
		})
		line("CPU time of the Southbound server, ms", of(func(s northdSample) time.Duration { return s.SBCPU }))
	}
	return fmt.Sprintf("%s nodes; %d pods and %d services for each;\n%s.\n\n%s",
		central.Sizes(n.Results, func(r northdResult) string { return fmt.Sprint(r.Nodes) }), northdPods, northdServices,
		n.Machine, central.Table(n.Results, func(r northdResult) string { return r.Version }, lines))
}
