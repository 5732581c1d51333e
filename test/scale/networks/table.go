package networks

import (
	"fmt"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/scale/central"
	"github.com/northbound-net/northbound/test/scale/process"
)

// Results is what was measured.
type Results struct {
	Machine string
	Results []Result
	Churned []Churned
}

// Result is what was measured of one release with some networks.
type Result struct {
	Version                             string
	Networks                            int
	Grown                               int           // of these, those that were made at once to reach the number
	Made                                time.Duration // until the API server had accepted them and their pods
	Granted                             time.Duration // until all pods had addresses
	Computed                            time.Duration // until the Southbound database had everything
	Installed                           time.Duration // from the nodes' plugging of all pods to the chassis' flows
	Transactions                        int           // of the Northbound database
	MasterCPU, NorthdCPU, ControllerCPU time.Duration
	Each                                Each
	Memory                              Memory
	Pods, Came                          []Change
	Restart                             Restart
}

// Each is what a network has: rows of the Northbound database, logical flows and datapaths of the Southbound one, flows
// of a node on which it has pods.
type Each struct{ Rows, LogicalFlows, Datapaths, Flows float64 }

// Memory is the RSS of processes, in bytes.
type Memory struct{ Master, Northd, Southbound, Controller, OpenFlow int64 }

// Change is what one pod, or one network with a pod, took: times since the first request.
type Change struct {
	Granted, Computed, Installed time.Duration
	NorthdCPU, ControllerCPU     time.Duration
}

// Restart is what a master did that started.
type Restart struct {
	Ready                 time.Duration
	Transactions, Patches int // without the transaction that raises the leader epoch
}

// Churned is what networks left that came and went.
type Churned struct {
	Version       string
	Networks      int
	Each          time.Duration // of one network, with its pod
	Before, After Left          // after the first and after the last of them
}

// Left is what there is.
type Left struct {
	Rows, LogicalFlows, Datapaths, Flows, Northd int // Northd is the id of the process of ovn-northd
	Memory                                       Memory
}

// Violations names counts that are wrong.
func (r *Results) Violations() (out []string) {
	for _, x := range r.Results {
		if x.Restart.Transactions != 0 || x.Restart.Patches != 0 {
			out = append(out, fmt.Sprintf("networks: OVN %s, %d networks: a restart of the master made %d transactions and "+
				"%d patches, want none", x.Version, x.Networks, x.Restart.Transactions, x.Restart.Patches))
		}
	}
	for _, c := range r.Churned {
		before, after := c.Before, c.After
		before.Memory, after.Memory = Memory{}, Memory{}
		if before != after {
			out = append(out, fmt.Sprintf("networks: OVN %s: %d networks came and went: %+v before, %+v after", c.Version,
				c.Networks, before, after))
		}
	}
	return out
}

// Table is the results in Markdown: a column for each release, with a figure for each size in each cell.
func (r *Results) Table() string {
	var all []central.Line[Result]
	for _, l := range lines() {
		all = append(all, central.Line[Result](l))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s networks, with a pod on each of %d nodes;\n%s.\n\n%s",
		central.Sizes(r.Results, func(x Result) string { return fmt.Sprint(x.Networks) }), nodes, r.Machine,
		central.Table(r.Results, func(x Result) string { return x.Version }, all))
	for _, c := range r.Churned {
		fmt.Fprintf(&b, "\nOVN %s: %d networks came and went, %s each. The Northbound database has %d rows before and %d "+
			"after,\nthe Southbound one %d and %d logical flows, the node %d and %d flows. ovn-northd takes %s MB before and "+
			"%s MB after,\novn-controller %s and %s, the master %s and %s.\n", c.Version, c.Networks,
			c.Each.Round(time.Millisecond), c.Before.Rows, c.After.Rows, c.Before.LogicalFlows, c.After.LogicalFlows,
			c.Before.Flows, c.After.Flows, mb(c.Before.Memory.Northd), mb(c.After.Memory.Northd),
			mb(c.Before.Memory.Controller), mb(c.After.Memory.Controller), mb(c.Before.Memory.Master),
			mb(c.After.Memory.Master))
	}
	return b.String()
}

// line is a line of the table.
type line struct {
	What   string
	Figure func(Result) string
}

func lines() []line {
	out := []line{
		{"rows of a network in the Northbound database", func(r Result) string { return one(r.Each.Rows) }},
		{"its datapaths in the Southbound database", func(r Result) string { return one(r.Each.Datapaths) }},
		{"its logical flows", func(r Result) string { return one(r.Each.LogicalFlows) }},
		{"its flows on a node", func(r Result) string { return one(r.Each.Flows) }},
		{"*networks come at once:* how many", func(r Result) string { return fmt.Sprint(r.Grown) }},
		{"until the API server has them and their pods, s", func(r Result) string { return sec(r.Made) }},
		{"until all pods have addresses, s", func(r Result) string { return sec(r.Granted) }},
		{"until the Southbound database has everything, s", func(r Result) string { return sec(r.Computed) }},
		{"all pods are plugged: until the node has their flows, s", func(r Result) string { return sec(r.Installed) }},
		{"transactions of the Northbound database", func(r Result) string { return fmt.Sprint(r.Transactions) }},
		{"CPU time of the master, s", func(r Result) string { return sec(r.MasterCPU) }},
		{"CPU time of ovn-northd, s", func(r Result) string { return sec(r.NorthdCPU) }},
		{"CPU time of ovn-controller, s", func(r Result) string { return sec(r.ControllerCPU) }},
		{"RSS of the master, MB", func(r Result) string { return mb(r.Memory.Master) }},
		{"RSS of ovn-northd, MB", func(r Result) string { return mb(r.Memory.Northd) }},
		{"RSS of the Southbound server, MB", func(r Result) string { return mb(r.Memory.Southbound) }},
		{"RSS of ovn-controller, MB", func(r Result) string { return mb(r.Memory.Controller) }},
		{"RSS of ovs-vswitchd, MB", func(r Result) string { return mb(r.Memory.OpenFlow) }},
	}
	out = append(out, changes("a pod comes", func(r Result) []Change { return r.Pods })...)
	out = append(out, changes("a network comes, with a pod", func(r Result) []Change { return r.Came })...)
	return append(out,
		line{"*the master starts again:* until it is ready, s", func(r Result) string { return sec(r.Restart.Ready) }},
		line{"its transactions, without the leader epoch's, and patches", func(r Result) string {
			return fmt.Sprintf("%d, %d", r.Restart.Transactions, r.Restart.Patches)
		}})
}

// changes are the lines about a change, with medians.
func changes(what string, of func(Result) []Change) []line {
	ms := func(figure func(Change) time.Duration) func(Result) string {
		return func(r Result) string {
			return fmt.Sprintf("%.0f", float64(process.Median(of(r), figure))/float64(time.Millisecond))
		}
	}
	return []line{
		{"*" + what + ":* until it has addresses, ms", ms(func(c Change) time.Duration { return c.Granted })},
		{"until the Southbound database has it, ms", ms(func(c Change) time.Duration { return c.Computed })},
		{"until the node has its flows, ms", ms(func(c Change) time.Duration { return c.Installed })},
		{"CPU time of ovn-northd, ms", ms(func(c Change) time.Duration { return c.NorthdCPU })},
		{"CPU time of ovn-controller, ms", ms(func(c Change) time.Duration { return c.ControllerCPU })},
	}
}

func one(f float64) string       { return fmt.Sprintf("%.0f", f) }
func sec(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }
func mb(bytes int64) string      { return fmt.Sprintf("%.0f", float64(bytes)/1e6) }
