package reach

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// Logged explains a line that ovn-controller logged about an ACL. Addresses are those of who has them now.
type Logged struct {
	Time     string `json:"time,omitempty"`     // as the line has it: "2026-01-02T15:04:05.678Z"
	Verdict  string `json:"verdict"`            // what became of the packet: allow, drop, reject or pass
	Protocol string `json:"protocol,omitempty"` // such as tcp6
	From     End    `json:"from"`
	To       End    `json:"to"`
	FromPort uint16 `json:"fromPort,omitempty"`
	ToPort   uint16 `json:"toPort,omitempty"`
	Object   string `json:"object"`          // whose rule decided: "np/shop/web"
	Field    string `json:"field,omitempty"` // the rule: "spec.ingress[0]"
	Reason   string `json:"reason"`
	Rows     []Row  `json:"rows"` // the ACLs that log with this name now

	in *cluster.Network // the primary network that the policy is about, if it is about one
}

// ErrNoPolicyLine says that a line is about an ACL, but cannot be explained: the ACL is of no policy, or the line is
// damaged.
var ErrNoPolicyLine = errors.New("not a line of a policy")

// aclLine is the part of a line that tells of an ACL. Whoever copies a line may leave out when it was written.
var aclLine = regexp.MustCompile(`(?:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)\|[^"]*)?` +
	`name="([^"]*)", verdict=(allow|drop|reject|pass), severity=[a-z]+, direction=[a-z-]+: ([a-z0-9_]+),(\S+)`)

// IsACLLine is true for a line about an ACL.
func IsACLLine(line string) bool { return aclLine.MatchString(line) }

// Logged explains a line. An error that is ErrNoPolicyLine concerns this line alone.
func (c *Cluster) Logged(line string) (*Logged, error) {
	parts := aclLine.FindStringSubmatch(line)
	if parts == nil {
		return nil, fmt.Errorf("reading %.200q: want a line of ovn-controller's log with name=\"...\", verdict=..., and the "+
			"packet", strings.TrimSpace(line))
	}
	about, err := c.loggedAs(parts[2])
	if err != nil {
		return nil, err
	}
	out := about
	out.Time, out.Verdict, out.Protocol = parts[1], parts[3], parts[4]
	if err := out.packet(c, parts[5]); err != nil {
		return nil, fmt.Errorf("%w: reading the packet of %.200q: %w", ErrNoPolicyLine, line, err)
	}
	return &out, nil
}

// loggedAs is what is known of all lines with the name of an ACL. A log has few names, and many lines.
func (c *Cluster) loggedAs(acl string) (Logged, error) {
	if known, ok := c.logged[acl]; ok {
		return known, nil
	}
	rule, cut, ok := names.ParseLoggedRule(acl)
	if !ok {
		return Logged{}, fmt.Errorf("%w: the ACL %.64q is of no policy: want a name such as NP:shop/web:ingress:0",
			ErrNoPolicyLine, acl)
	}
	if cut {
		rule.Owner = c.uncut(rule, acl)
	}
	o := nb.Owner{Kind: rule.Kind, Name: rule.Owner}
	out := Logged{Object: objectOf(o), Rows: []Row{}}
	if n, known := c.State.PolicyNetwork(cluster.ParseName(rule.Owner).Namespace); rule.Kind == names.KindPolicy && known {
		out.in = c.State.Networks[n]
	}
	out.decided(c, rule)
	if err := c.loggedRows(o, acl, &out); err != nil {
		return Logged{}, err
	}
	c.logged[acl] = out
	return out, nil
}

// packet reads the fields of the packet as Open vSwitch prints flows.
func (l *Logged) packet(c *Cluster, text string) error {
	values := map[string]string{}
	for f := range strings.SplitSeq(text, ",") {
		k, v, _ := strings.Cut(f, "=")
		values[k] = v
	}
	for to, keys := range map[*End][]string{&l.From: {"nw_src", "ipv6_src"}, &l.To: {"nw_dst", "ipv6_dst"}} {
		a, err := netip.ParseAddr(cmp.Or(values[keys[0]], values[keys[1]]))
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Join(keys, " or "), err)
		}
		if *to = c.at(a); inside(l.in, a) {
			*to = c.member(l.in, a)
		}
	}
	for to, key := range map[*uint16]string{&l.FromPort: "tp_src", &l.ToPort: "tp_dst"} {
		if values[key] == "" {
			continue
		}
		port, err := strconv.ParseUint(values[key], 10, 16)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		*to = uint16(port)
	}
	return nil
}

// uncut is the owner of an ACL whose name has only a part of the owner's.
func (c *Cluster) uncut(r names.LoggedRule, acl string) string {
	named := func(owner string) bool {
		return names.LoggedRule{Kind: r.Kind, Owner: owner, Direction: r.Direction, Rule: r.Rule}.String() == acl
	}
	for n := range c.State.NetworkPolicies {
		if r.Kind == names.KindPolicy && named(n.String()) {
			return n.String()
		}
	}
	for n := range c.State.ClusterNetworkPolicies {
		if r.Kind == names.KindClusterPolicy && named(n) {
			return n
		}
	}
	return r.Owner
}

// decided says which rule decided, and whether there is such a rule now.
func (l *Logged) decided(c *Cluster, r names.LoggedRule) {
	d, rules, exists := direction(r.Direction), 0, false
	if r.Kind == names.KindPolicy {
		if p := c.State.NetworkPolicies[cluster.ParseName(r.Owner)]; p != nil {
			rules, exists = len(rulesOf(p, d)), true
		}
	} else if p := c.State.ClusterNetworkPolicies[r.Owner]; p != nil {
		rules, exists = len(tieredRules(p, d)), true
	}
	if r.Rule == names.DeniedByDefault {
		l.Reason = fmt.Sprintf("%s isolates the pod for %s, and no rule of any policy allows this", l.Object, d.policyType())
	} else {
		l.Field = fieldNamed(r.Direction + ":" + r.Rule)
		l.Reason = l.Object + " " + l.Field
	}
	var number int
	switch _, err := fmt.Sscan(r.Rule, &number); {
	case !exists:
		l.Reason += "; the policy does not exist any more"
	case err == nil && number >= rules:
		l.Reason += "; the policy has no such rule any more"
	}
}

// loggedRows lists the ACLs of an owner that log with a name.
func (c *Cluster) loggedRows(o nb.Owner, name string, out *Logged) error {
	rows, err := c.Rows(o)
	if err != nil {
		return fmt.Errorf("translating %s: %w", o, err)
	}
	for _, r := range rows.Rows {
		acl, ok := r.Model.(*nbdb.ACL)
		if !ok || acl.Name == nil || *acl.Name != name {
			continue
		}
		row := Row{UUID: acl.UUID, Role: r.Key.Role, key: r.Key}
		if c.database != nil {
			if err := row.compare(c); err != nil {
				return err
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return nil
}

// WriteJSON prints the explanation as one JSON object.
func (l *Logged) WriteJSON(w io.Writer) error { return writeJSON(w, l) }

// WriteText prints the explanation for a person.
func (l *Logged) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	if l.Time != "" {
		fmt.Fprintf(b, "%s ", l.Time)
	}
	fmt.Fprintf(b, "%s %s %s -> %s", l.Verdict, l.Protocol, l.From, l.To)
	if l.FromPort > 0 || l.ToPort > 0 {
		fmt.Fprintf(b, ", ports %d -> %d", l.FromPort, l.ToPort)
	}
	fmt.Fprintf(b, "\n  %s\n", l.Reason)
	for _, r := range l.Rows {
		fmt.Fprintf(b, "  ACL %s (%s)", r.UUID, r.Role)
		if r.State != "" {
			fmt.Fprintf(b, ": %s", r.State)
		}
		fmt.Fprintln(b)
	}
	return b.Flush()
}
