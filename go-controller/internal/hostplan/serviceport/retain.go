package serviceport

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
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

// Present is the plan while nothing is known of the services: present entries stay, and what the node itself uses is
// exempt from them. There is nothing to do where nothing is, or what another version made.
func Present(have []hostplan.Item, uses []netip.AddrPort) hostplan.Plan {
	i := slices.IndexFunc(have, func(i hostplan.Item) bool {
		p, is := i.(hostplan.ServicePorts)
		return is && p.Link != ""
	})
	if i < 0 {
		return hostplan.Plan{}
	}
	want := have[i].(hostplan.ServicePorts)
	var lines []string
	for line := range strings.SplitSeq(want.Entries, "\n") {
		if line != "" && !strings.HasPrefix(line, string(hostplan.ExemptEntry)+" ") {
			lines = append(lines, line)
		}
	}
	for _, e := range exempt(uses) {
		lines = append(lines, e.String())
	}
	slices.Sort(lines)
	want.Entries = strings.Join(slices.Compact(lines), "\n")
	return hostplan.Plan{Host: []hostplan.Item{want}}
}

// exempt is entries for what the node itself uses.
func exempt(uses []netip.AddrPort) (out []hostplan.ServiceEntry) {
	for _, at := range uses {
		out = append(out, hostplan.ServiceEntry{Kind: hostplan.ExemptEntry, Protocol: string(cluster.TCP), At: at})
	}
	return out
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
		if e.Kind == hostplan.ExemptEntry || places[hostplan.ServiceEntry{Kind: hostplan.InsideEntry, Protocol: e.Protocol, At: e.At}] {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}
