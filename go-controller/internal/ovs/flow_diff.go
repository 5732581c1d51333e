package ovs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// defaultPriority is the priority of a flow that is shown without one (ovs-ofctl(8),
// "Flow Syntax").
const defaultPriority = 32768

// diffFlows lists the changes that turn have into want, removals first, and the input
// for ovs-ofctl that makes them ("add-flows", ovs-ofctl(8)).
func diffFlows(want hostplan.Flows, have []hostplan.Flow) ([]Change, string) {
	now, wanted := map[string]hostplan.Flow{}, map[string]bool{}
	for _, h := range have {
		h.Match = sortedFields(h.Match)
		now[h.Key()] = h
	}
	for _, w := range want.List {
		w.Match = sortedFields(w.Match)
		wanted[w.Key()] = true
	}
	var changes []Change
	var script strings.Builder
	for _, h := range have {
		h.Match = sortedFields(h.Match)
		if !wanted[h.Key()] {
			fmt.Fprintf(&script, "delete_strict cookie=%#x/-1,table=%d,priority=%d,%s\n", want.Cookie, h.Table, h.Priority,
				h.Match)
			changes = append(changes, Change{Kind: "flow", Text: fmt.Sprintf("- flow of %s %s", want.Bridge, h)})
		}
	}
	for _, w := range want.List {
		w.Match = sortedFields(w.Match)
		h, there := now[w.Key()]
		if there && h == w {
			continue
		}
		fmt.Fprintf(&script, "add cookie=%#x,%s\n", want.Cookie, w)
		text := fmt.Sprintf("+ flow of %s %s", want.Bridge, w)
		if there {
			text = fmt.Sprintf("~ flow of %s %s (was: actions=%s)", want.Bridge, w, h.Actions)
		}
		changes = append(changes, Change{Kind: "flow", Text: text})
	}
	return changes, script.String()
}

// sortedFields is a match with its fields sorted: the order that ovs-ofctl prints
// differs between versions.
func sortedFields(match string) string {
	fields := strings.Split(match, ",")
	slices.Sort(fields)
	return strings.Join(slices.DeleteFunc(fields, func(s string) bool { return s == "" }), ",")
}

// parseFlows reads what `ovs-ofctl --no-stats dump-flows` prints, where a cookie
// of 0 is left out.
func parseFlows(dump string) ([]hostplan.Flow, error) {
	var out []hostplan.Flow
	for line := range strings.Lines(dump) {
		line = strings.TrimSpace(line)
		head, actions, ok := strings.Cut(line, "actions=")
		if !ok {
			continue // the header
		}
		f, err := parseFlow(head, actions)
		if err != nil {
			return nil, fmt.Errorf("parsing flow %q: %w", line, err)
		}
		out = append(out, f)
	}
	return out, nil
}

func parseFlow(head, actions string) (hostplan.Flow, error) {
	f := hostplan.Flow{Priority: defaultPriority, Actions: actions}
	var match []string
	for _, field := range strings.FieldsFunc(head, func(r rune) bool { return r == ',' || r == ' ' }) {
		key, value, _ := strings.Cut(field, "=")
		var err error
		switch key {
		case "cookie":
		case "table":
			f.Table, err = strconv.Atoi(value)
		case "priority":
			f.Priority, err = strconv.Atoi(value)
		case "idle_timeout", "hard_timeout", "importance", "send_flow_rem", "no_packet_counts", "no_byte_counts",
			"reset_counts", "check_overlap":
			// These are not part of the match, and our flows have none of them: such
			// a flow is another one, and is replaced.
			f.Actions += " " + field
		default:
			match = append(match, field)
		}
		if err != nil {
			return f, fmt.Errorf("%s: %w", field, err)
		}
	}
	f.Match = strings.Join(match, ",")
	return f, nil
}
