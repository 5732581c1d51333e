package hostplan

import (
	"fmt"
	"strings"
)

// Flow is an OpenFlow flow in the form in which ovs-ofctl(8) shows it
// ("dump-flows --no-stats --no-names"). Flows are comparable with ==.
type Flow struct {
	Table    int
	Priority int
	Match    string // fields of ovs-fields(7), in any order, separated by commas without blanks; "" matches all
	Actions  string // ovs-actions(7)
}

// Key tells flows apart as OpenFlow does: by what they match in which table
// with which priority.
func (f Flow) Key() string {
	return fmt.Sprintf("table=%d priority=%d %s", f.Table, f.Priority, f.Match)
}

// String is the flow as ovs-ofctl takes it, but for the cookie.
func (f Flow) String() string {
	s := fmt.Sprintf("table=%d,priority=%d,", f.Table, f.Priority)
	if f.Match != "" {
		s += f.Match + ","
	}
	return s + "actions=" + f.Actions
}

// Flows are all flows of a bridge that carry a cookie. The bridge's other
// flows are others' business.
type Flows struct {
	Bridge string
	Cookie uint64 // not 0, which is every other flow's
	List   []Flow // none removes those that are there
}

// String prints the flows, one a line.
func (f Flows) String() string {
	var b strings.Builder
	if len(f.List) == 0 {
		fmt.Fprintf(&b, "flow of %s cookie=%#x absent\n", f.Bridge, f.Cookie)
	}
	for _, l := range f.List {
		fmt.Fprintf(&b, "flow of %s cookie=%#x,%s\n", f.Bridge, f.Cookie, l)
	}
	return b.String()
}
