package hostplan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ServicePorts has the kernel serve services. It sends connections to the places that
// the entries name to ClusterIPs, through the management port and with its address as
// their source. Or it sends them, with the source that they have, to endpoints of
// this node or to other nodes. Equal contents have equal values: Entries is canonical.
type ServicePorts struct {
	Link    string // the management port's interface
	Ranges  string // those of ClusterIPs as CIDRs, sorted, with commas
	Own     string // the subnets of this node's pods, likewise
	Pods    string // those of all pods, likewise: pods of other nodes count as outside
	Entries string // ServiceEntry values as text, one a line, sorted, each once
}

// ServiceEntryKind says what an entry does.
type ServiceEntryKind string

// The kinds.
const (
	ServeEntry  ServiceEntryKind = "serve"  // connections to At go to To
	LocalEntry  ServiceEntryKind = "local"  // connections to At from outside go to To, the one endpoint on this node
	ShareEntry  ServiceEntryKind = "share"  // of these, a random number's Bucket goes to To, one of several endpoints
	StickEntry  ServiceEntryKind = "stick"  // of these, the Bucket of the client address's hash goes to To
	InsideEntry ServiceEntryKind = "inside" // this node and its pods may connect to At; others by the three kinds above
	// This node's own connections, from its address From, to its own node port At go
	// to To, the same port of another node. Of several nodes a random number decides,
	// or a hash of From.
	RemoteEntry      ServiceEntryKind = "away"
	RemoteShareEntry ServiceEntryKind = "away-share"
	RemoteStickEntry ServiceEntryKind = "away-stick"
	ExemptEntry      ServiceEntryKind = "exempt" // this node itself connects to At, and no other entry applies
	LimitEntry       ServiceEntryKind = "limit"  // At is for the sources of AllowEntries; others are dropped
	AllowEntry       ServiceEntryKind = "allow"  // From may connect to At
)

// ServiceBuckets is the number of buckets, which count from 0. It divides by 1 to 6,
// 8, 10 and 12: so many endpoints get equally many connections each. With other
// numbers of endpoints the difference is one bucket.
const ServiceBuckets = 120

// RemoteBuckets is the number of buckets for other nodes. A few are enough: the node
// that connects to itself is one client of many.
const RemoteBuckets = 12

// ServiceEntry is one line of ServicePorts.
type ServiceEntry struct {
	Kind     ServiceEntryKind
	Protocol string         // TCP, UDP or SCTP
	At       netip.AddrPort // the unspecified address stands for every address of the node, of that family
	From     netip.Prefix   // the source, of the same family: of an AllowEntry; of remote kinds, one address
	Bucket   int            // from 0, of kinds with Buckets
	To       netip.AddrPort // the ClusterIP of a ServeEntry, another node's of remote kinds, else an endpoint's
}

// HasTo tells whether entries of the kind have a To.
func (k ServiceEntryKind) HasTo() bool {
	return k == ServeEntry || k == LocalEntry || k == RemoteEntry || k.HasBuckets()
}

// HasFrom tells whether entries of the kind have a From.
func (k ServiceEntryKind) HasFrom() bool { return k == AllowEntry || k.Remote() }

// HasBuckets tells whether entries of the kind have a Bucket.
func (k ServiceEntryKind) HasBuckets() bool { return k.Buckets() > 0 }

// Buckets is how many buckets there are of the kind, 0 for none.
func (k ServiceEntryKind) Buckets() int {
	switch k {
	case ShareEntry, StickEntry:
		return ServiceBuckets
	case RemoteShareEntry, RemoteStickEntry:
		return RemoteBuckets
	}
	return 0
}

// Remote tells whether entries of the kind lead to other nodes.
func (k ServiceEntryKind) Remote() bool {
	return k == RemoteEntry || k == RemoteShareEntry || k == RemoteStickEntry
}

// OfEndpoints tells whether entries of the kind depend on a service's endpoints.
func (k ServiceEntryKind) OfEndpoints() bool { return k.HasTo() && k != ServeEntry }

// known tells whether there is such a kind.
func (k ServiceEntryKind) known() bool {
	return k.HasTo() || k == InsideEntry || k == ExemptEntry || k == LimitEntry || k == AllowEntry
}

// String is "serve TCP 0.0.0.0:30080 to 10.96.0.10:80", "local TCP 0.0.0.0:30080
// to 10.244.1.5:8080", "share TCP 0.0.0.0:30080 bucket 7 to 10.244.1.5:8080",
// "away-share TCP 0.0.0.0:30080 from 172.18.0.2/32 bucket 7 to
// 172.18.0.3:30080", "inside TCP 0.0.0.0:30080", "exempt TCP
// 192.0.2.1:6443", "limit TCP 192.0.2.7:80" or
// "allow TCP 192.0.2.7:80 from 198.51.100.0/24".
func (e ServiceEntry) String() string {
	b := make([]byte, 0, maxEntry)
	b = append(append(append(append(b, e.Kind...), ' '), e.Protocol...), ' ')
	b = e.At.AppendTo(b)
	if e.Kind.HasFrom() {
		b = e.From.AppendTo(append(b, " from "...))
	}
	if e.Kind.HasBuckets() {
		b = strconv.AppendInt(append(b, " bucket "...), int64(e.Bucket), 10)
	}
	if e.Kind.HasTo() {
		b = e.To.AppendTo(append(b, " to "...))
	}
	return string(b)
}

// maxEntry is about how long the text of an entry is at most.
const maxEntry = 160

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
	for _, part := range []struct {
		name string
		has  bool
		read func(value string) error
	}{
		{"from", e.Kind.HasFrom(), func(v string) (err error) { e.From, err = netip.ParsePrefix(v); return err }},
		{"bucket", e.Kind.HasBuckets(), func(v string) (err error) { e.Bucket, err = strconv.Atoi(v); return err }},
		{"to", e.Kind.HasTo(), func(v string) (err error) { e.To, err = netip.ParseAddrPort(v); return err }},
	} {
		if !part.has || err != nil {
			continue
		}
		if len(rest) < 2 || rest[0] != part.name {
			return e, fmt.Errorf("service entry %q: want %q and a value", line, part.name)
		}
		err = part.read(rest[1])
		rest = rest[2:]
	}
	switch {
	case !e.Kind.known():
		return e, fmt.Errorf("service entry %q: %q is no kind of entry", line, words[0])
	case err != nil:
		return e, fmt.Errorf("service entry %q: %w", line, err)
	case len(rest) > 0:
		return e, fmt.Errorf("service entry %q: want nothing from %q on", line, rest[0])
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
	own, pods := slices.DeleteFunc(slices.Clone(n.Own), alone(n.Pods)),
		slices.DeleteFunc(slices.Clone(n.Pods), alone(n.Own))
	return ServicePorts{
		Link: n.Link, Ranges: PrefixList(n.Ranges), Own: PrefixList(own), Pods: PrefixList(pods),
		Entries: strings.Join(slices.Compact(lines), "\n"),
	}
}

// PrefixList is prefixes as text, sorted, each once, with commas.
func PrefixList(prefixes []netip.Prefix) string {
	sorted := slices.SortedFunc(slices.Values(prefixes), netip.Prefix.Compare)
	return Join(slices.Compact(sorted))
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
	slices.SortFunc(out, func(a, b ServiceChange) int {
		return cmp.Or(cmp.Compare(a.turn(), b.turn()), cmp.Compare(a.String(), b.String()))
	})
	return out, nil
}

// turn is 0 for a range of sources that goes, and 1 for all other changes. The kernel takes no range that overlaps one
// that is there, so that those that go have to go first.
func (c ServiceChange) turn() int {
	if c.Drop.Kind == AllowEntry && c.Add == (ServiceEntry{}) {
		return 0
	}
	return 1
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

// WithoutEntries is the item without entries.
func (p ServicePorts) WithoutEntries() ServicePorts {
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
	return fmt.Sprintf("service-ports %d entries to %s through %s for pods of %s among %s",
		p.Count(), p.Ranges, p.Link, p.Own, p.Pods)
}
