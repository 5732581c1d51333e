package serviceport

import (
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// Retain adds present entries of some kinds to a plan that was made without knowing
// what these depend on, such as endpoints. It adds only those at places of Local
// services that the plan serves.
func Retain(plan hostplan.Plan, have []hostplan.Item, kinds func(hostplan.ServiceEntryKind) bool) hostplan.Plan {
	i := slices.IndexFunc(have, func(i hostplan.Item) bool { _, is := i.(hostplan.ServicePorts); return is })
	if i < 0 {
		return plan
	}
	entries := have[i].(hostplan.ServicePorts).Entries
	plan.Host = slices.Clone(plan.Host)
	for i, item := range plan.Host {
		if p, is := item.(hostplan.ServicePorts); is {
			p.Entries = withRetained(p.Entries, entries, kinds)
			plan.Host[i] = p
		}
	}
	return plan
}

// withRetained is the lines of want, and those of have that are of these kinds and
// about its places.
func withRetained(want, have string, kinds func(hostplan.ServiceEntryKind) bool) string {
	lines := slices.Collect(strings.SplitSeq(want, "\n"))
	places := map[hostplan.ServiceEntry]bool{}
	for _, line := range lines {
		if e, err := hostplan.ParseServiceEntry(line); err == nil && e.Kind == hostplan.InsideEntry {
			places[e] = true
		}
	}
	for line := range strings.SplitSeq(have, "\n") {
		e, err := hostplan.ParseServiceEntry(line)
		if err != nil || !kinds(e.Kind) {
			continue
		}
		if places[hostplan.ServiceEntry{Kind: hostplan.InsideEntry, Protocol: e.Protocol, At: e.At}] {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}
