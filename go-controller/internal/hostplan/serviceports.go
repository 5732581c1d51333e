package hostplan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ServicePorts is the way in to services: connections to what the entries name
// are sent to ClusterIPs, through the management port and with its address as
// their source, or to endpoints of this node, with the source that they have.
// Equal contents have equal values: Entries is canonical.
type ServicePorts struct {
	Link    string // the management port's interface
	Ranges  string // those of ClusterIPs as CIDRs, sorted, with commas
	Own     string // the subnets of this node's pods, likewise
	Pods    string // those of all pods, likewise: the ones of other nodes come from outside
	Entries string // ServiceEntry values as text, one a line, sorted, each once
}

// ServiceEntryKind says what an entry does.
type ServiceEntryKind string

// The kinds.
const (
	ServeEntry  ServiceEntryKind = "serve"  // connections to At go to To
	LocalEntry  ServiceEntryKind = "local"  // connections to At from outside go to To, the one endpoint on this node
	ShareEntry  ServiceEntryKind = "share"  // those that chance puts into Bucket go to To, one of several endpoints
	StickEntry  ServiceEntryKind = "stick"  // those that the client's address puts into Bucket go to To
	InsideEntry ServiceEntryKind = "inside" // At is served to this node and to its pods; others are dropped, but for those of the three kinds above
	LimitEntry  ServiceEntryKind = "limit"  // At is for the sources of AllowEntries; others are dropped
	AllowEntry  ServiceEntryKind = "allow"  // From may connect to At
)

// ServiceBuckets is how many buckets there are, from 0. The number divides by 1
// to 6, 8, 10 and 12: so many endpoints get equally many connections each, and
// of others the difference is one bucket.
const ServiceBuckets = 120

// ServiceEntry is one line of ServicePorts.
type ServiceEntry struct {
	Kind     ServiceEntryKind
	Protocol string         // TCP, UDP or SCTP
	At       netip.AddrPort // the unspecified address stands for every address of the node, of that family
	Bucket   int            // of a ShareEntry and a StickEntry
	To       netip.AddrPort // where connections go, of the same family: of a ServeEntry ClusterIP and port, else an endpoint's
	From     netip.Prefix   // of an AllowEntry, of the same family
}

// Leads tells whether entries of the kind have a To.
func (k ServiceEntryKind) Leads() bool { return k == ServeEntry || k == LocalEntry || k.HasBuckets() }

// HasBuckets tells whether entries of the kind have a Bucket.
func (k ServiceEntryKind) HasBuckets() bool { return k == ShareEntry || k == StickEntry }

// String is "serve TCP 0.0.0.0:30080 to 10.96.0.10:80", "local TCP 0.0.0.0:30080
// to 10.244.1.5:8080", "share TCP 0.0.0.0:30080 bucket 7 to 10.244.1.5:8080",
// "inside TCP 0.0.0.0:30080", "limit TCP 192.0.2.7:80" or "allow TCP
// 192.0.2.7:80 from 198.51.100.0/24".
func (e ServiceEntry) String() string {
	s := string(e.Kind) + " " + e.Protocol + " " + e.At.String()
	switch {
	case e.Kind.HasBuckets():
		s += " bucket " + strconv.Itoa(e.Bucket) + " to " + e.To.String()
	case e.Kind.Leads():
		s += " to " + e.To.String()
	case e.Kind == AllowEntry:
		s += " from " + e.From.String()
	}
	return s
}

// Place is the entry without To: two entries of one place can't be there
// together.
func (e ServiceEntry) Place() ServiceEntry {
	e.To = netip.AddrPort{}
	return e
}

// ParseServiceEntry reads what String writes.
func ParseServiceEntry(line string) (e ServiceEntry, err error) {
	words := strings.Fields(line)
	if len(words) < 3 {
		return e, fmt.Errorf("service entry %q: want at least 3 words", line)
	}
	e.Kind, e.Protocol = ServiceEntryKind(words[0]), words[1]
	e.At, err = netip.ParseAddrPort(words[2])
	rest := words[3:]
	if err == nil && e.Kind.HasBuckets() && len(rest) == 4 && rest[0] == "bucket" {
		e.Bucket, err = strconv.Atoi(rest[1])
		rest = rest[2:]
	}
	switch {
	case err != nil:
	case len(rest) == 0 && (e.Kind == InsideEntry || e.Kind == LimitEntry):
	case len(rest) == 2 && e.Kind.Leads() && rest[0] == "to" && e.Kind.HasBuckets() == (len(words) == 7):
		e.To, err = netip.ParseAddrPort(rest[1])
	case len(rest) == 2 && e.Kind == AllowEntry && rest[0] == "from":
		e.From, err = netip.ParsePrefix(rest[1])
	default:
		return e, fmt.Errorf("service entry %q: want serve or local ... to, share or stick ... bucket ... to, allow ... from, inside or limit", line)
	}
	if err != nil {
		return e, fmt.Errorf("service entry %q: %w", line, err)
	}
	return e, nil
}

// ServiceNode is what ServicePorts has besides Entries, in any order.
type ServiceNode struct {
	Link              string
	Ranges, Own, Pods []netip.Prefix
}

// NewServicePorts is the item with these entries, in any order. Of a family of
// which the node has no pods, no others can be told apart.
func NewServicePorts(n ServiceNode, entries []ServiceEntry) ServicePorts {
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = e.String()
	}
	slices.Sort(lines)
	alone := func(other []netip.Prefix) func(netip.Prefix) bool {
		return func(p netip.Prefix) bool {
			return !slices.ContainsFunc(other, func(o netip.Prefix) bool { return o.Addr().Is4() == p.Addr().Is4() })
		}
	}
	n.Own, n.Pods = slices.DeleteFunc(slices.Clone(n.Own), alone(n.Pods)), slices.DeleteFunc(slices.Clone(n.Pods), alone(n.Own))
	return ServicePorts{Link: n.Link, Ranges: prefixList(n.Ranges), Own: prefixList(n.Own), Pods: prefixList(n.Pods), Entries: strings.Join(slices.Compact(lines), "\n")}
}

// prefixList is prefixes as text, sorted, each once, with commas.
func prefixList(prefixes []netip.Prefix) string {
	sorted := slices.SortedFunc(slices.Values(prefixes), netip.Prefix.Compare)
	texts := make([]string, 0, len(sorted))
	for _, p := range slices.Compact(sorted) {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ",")
}

// ServiceChange is a step from one ServicePorts to another: what goes and what
// comes at one Place. One of them may be the zero ServiceEntry.
type ServiceChange struct{ Drop, Add ServiceEntry }

// ServiceChanges lists what turns have's entries into want's, sorted.
func ServiceChanges(want, have ServicePorts) ([]ServiceChange, error) {
	at := map[ServiceEntry]*ServiceChange{}
	for line := range onlyIn(have.Entries, want.Entries) {
		e, err := ParseServiceEntry(line)
		if err != nil {
			return nil, err
		}
		at[e.Place()] = &ServiceChange{Drop: e}
	}
	for line := range onlyIn(want.Entries, have.Entries) {
		e, err := ParseServiceEntry(line)
		if err != nil {
			return nil, err
		}
		if c := at[e.Place()]; c != nil {
			c.Add = e
		} else {
			at[e.Place()] = &ServiceChange{Add: e}
		}
	}
	out := make([]ServiceChange, 0, len(at))
	for _, c := range at {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b ServiceChange) int { return cmp.Compare(a.String(), b.String()) })
	return out, nil
}

// String is "+ " and the entry that comes, "- " and the one that goes, or both.
func (c ServiceChange) String() string {
	switch (ServiceEntry{}) {
	case c.Drop:
		return "+ " + c.Add.String()
	case c.Add:
		return "- " + c.Drop.String()
	}
	return "~ " + c.Add.String() + " (was: " + c.Drop.String() + ")"
}

// ServiceChangeLines tells changes to a person: buckets of one place that change
// alike are one line, "+ share TCP 0.0.0.0:30080 to 10.244.1.5:8080 (40 buckets)".
func ServiceChangeLines(changes []ServiceChange) []string {
	buckets := map[ServiceChange]int{}
	var lines []ServiceChange
	for _, c := range changes {
		c.Drop.Bucket, c.Add.Bucket = 0, 0
		if buckets[c]++; buckets[c] == 1 {
			lines = append(lines, c)
		}
	}
	out := make([]string, len(lines))
	for i, c := range lines {
		out[i] = strings.ReplaceAll(c.String(), " bucket 0", "")
		if c.Drop.Kind.HasBuckets() || c.Add.Kind.HasBuckets() {
			out[i] += fmt.Sprintf(" (%d buckets)", buckets[c])
		}
	}
	return out
}

// onlyIn is the set of the lines of a that b hasn't got; both are sorted.
func onlyIn(a, b string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(a) {
		line = strings.TrimSuffix(line, "\n")
		for b != "" {
			first, rest, _ := strings.Cut(b, "\n")
			if first > line {
				break
			}
			b = rest
			if first == line {
				line = ""
				break
			}
		}
		if line != "" {
			out[line] = true
		}
	}
	return out
}

// Of is the item without entries.
func (p ServicePorts) Of() ServicePorts {
	p.Entries = ""
	return p
}

// Key implements Item.
func (p ServicePorts) Key() string { return "service-ports" }

// Device implements Item.
func (p ServicePorts) Device() string { return "" }

// Count is how many entries there are.
func (p ServicePorts) Count() int {
	if p.Entries == "" {
		return 0
	}
	return strings.Count(p.Entries, "\n") + 1
}

// String implements Item; it has the number of entries, not each.
func (p ServicePorts) String() string {
	return fmt.Sprintf("service-ports %d entries to %s through %s for pods of %s among %s", p.Count(), p.Ranges, p.Link, p.Own, p.Pods)
}
