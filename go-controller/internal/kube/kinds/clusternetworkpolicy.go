package kinds

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Reasons of Problems with ClusterNetworkPolicies, besides those of NetworkPolicies.
const (
	reasonPolicyUnreadable = "PolicyUnreadable"
	reasonPolicyField      = "UnknownPolicyField"
	reasonPolicyTier       = "InvalidPolicyTier"
	reasonPolicyPriority   = "InvalidPolicyPriority"
	reasonPolicySubject    = "InvalidPolicySubject"
	reasonPolicyAction     = "InvalidPolicyAction"
	reasonPolicyWildcard   = "WildcardNotServed"
)

// maxClusterList is how many peers, protocols and networks the API allows in a list.
const maxClusterList = 25

// clusterPolicyDecoder is a ClusterNetworkPolicy being decoded.
type clusterPolicyDecoder struct {
	findings
	limits                              policyLimits
	out                                 *cluster.TieredPolicy
	unknown                             []string // fields
	closed                              bool     // every rule fails closed
	selectors, ranges, portCount, pairs int      // so far
	domains                             int      // names so far
}

// decodeClusterPolicy takes what the API documents of a ClusterNetworkPolicy. A rule with anything else fails closed:
// one that accepts accepts nothing, one that denies or passes denies everything.
func decodeClusterPolicy(p *clusterPolicyObject, limits policyLimits) (*cluster.TieredPolicy, []cluster.Problem) {
	d := &clusterPolicyDecoder{findings: findingsOf(cluster.KindClusterNetworkPolicy, p), limits: limits,
		unknown: p.unknown, out: &cluster.TieredPolicy{Name: p.Name, UID: string(p.UID),
			Created: createdAt(p), Tier: cluster.PolicyTier(p.Spec.Tier), Priority: int(p.Spec.Priority)}}
	if p.broken != nil {
		d.bad(reasonPolicyUnreadable, "%.500v: the policy selects no pod", p.broken)
		return d.out, d.problems
	}
	if !d.subject(p.Spec.Subject) {
		return d.out, d.problems
	}
	d.place()
	d.out.Logging = decodeLogging(&d.findings, p.Annotations, "allow", "deny", "pass")
	for i, path := range d.unknown {
		if strings.HasPrefix(path, "spec.") && !strings.HasPrefix(path, "spec.ingress[") &&
			!strings.HasPrefix(path, "spec.egress[") {
			d.closed = true
			d.bad(reasonPolicyField, "%.200s: this version does not know the field: all rules of the policy fail closed",
				d.unknown[i])
		}
	}
	for i, r := range p.Spec.Ingress {
		var from []v1alpha2.ClusterNetworkPolicyEgressPeer
		for _, peer := range r.From {
			from = append(from, v1alpha2.ClusterNetworkPolicyEgressPeer{Namespaces: peer.Namespaces, Pods: peer.Pods})
		}
		d.out.Ingress = d.rule(d.out.Ingress, "ingress", i, clusterRule{r.Name, r.Action, "from", from, r.Protocols})
	}
	for i, r := range p.Spec.Egress {
		d.out.Egress = d.rule(d.out.Egress, "egress", i, clusterRule{r.Name, r.Action, "to", r.To, r.Protocols})
	}
	return d.out, d.problems
}

// subject reads which pods the policy is about. It is false when that can't be told.
func (d *clusterPolicyDecoder) subject(s v1alpha2.ClusterNetworkPolicySubject) bool {
	const then = "the policy selects no pod"
	at := slices.IndexFunc(d.unknown, func(path string) bool { return strings.HasPrefix(path, "spec.subject.") })
	switch {
	case at >= 0:
		d.bad(reasonPolicyField, "%.200s: this version does not know the field: %s", d.unknown[at], then)
		return false
	case (s.Namespaces == nil) == (s.Pods == nil):
		d.bad(reasonPolicySubject, "spec.subject: want one of namespaces and pods: %s", then)
		return false
	}
	pods, err := podsOf(s.Namespaces, s.Pods)
	if err != nil {
		d.bad(reasonPolicySelector, "spec.subject.%v: %s", err, then)
		return false
	}
	d.out.Pods = pods
	return true
}

// podsOf reads the selector of all pods of namespaces, or of some of them.
func podsOf(namespaces *metav1.LabelSelector, pods *v1alpha2.NamespacedPod) (out cluster.PodSelector, err error) {
	if namespaces != nil {
		if out.Namespaces, err = selector(namespaces); err != nil {
			return out, fmt.Errorf("namespaces: %w", err)
		}
		return out, nil
	}
	if out.Namespaces, err = selector(&pods.NamespaceSelector); err != nil {
		return out, fmt.Errorf("pods.namespaceSelector: %w", err)
	}
	if out.Pods, err = selector(&pods.PodSelector); err != nil {
		return out, fmt.Errorf("pods.podSelector: %w", err)
	}
	return out, nil
}

// place checks the tier and the priority.
func (d *clusterPolicyDecoder) place() {
	if t := d.out.Tier; t != cluster.AdminTier && t != cluster.BaselineTier {
		d.closed, d.out.Tier = true, cluster.AdminTier
		d.bad(reasonPolicyTier, "spec.tier: %.64q, want Admin or Baseline: all rules of the policy fail closed in tier Admin",
			string(t))
	}
	if n := d.out.Priority; n < 0 || n > cluster.MaxClusterPriority {
		d.closed, d.out.Priority = true, min(max(n, 0), cluster.MaxClusterPriority)
		d.bad(reasonPolicyPriority, "spec.priority: %d, want 0 to %d: all rules of the policy fail closed with priority %d",
			n, cluster.MaxClusterPriority, d.out.Priority)
	}
}

// clusterRule is a rule of either direction.
type clusterRule struct {
	name      string
	action    v1alpha2.ClusterNetworkPolicyRuleAction
	side      string // the field of the peers
	peers     []v1alpha2.ClusterNetworkPolicyEgressPeer
	protocols []v1alpha2.ClusterNetworkPolicyProtocol
}

// rule adds a rule to those before it.
func (d *clusterPolicyDecoder) rule(before []cluster.TieredRule, direction string, i int, r clusterRule,
) []cluster.TieredRule {
	c := &clusterRuleDecoder{clusterPolicyDecoder: d, field: fmt.Sprintf("spec.%s[%d]", direction, i),
		direction: direction, closed: d.closed}
	c.out.Name, c.out.Action = r.name, cluster.PolicyAction(r.action)
	if i == cluster.MaxClusterRules {
		d.bad(reasonPolicySize, "spec.%s: has more than %d rules: those behind accept nothing, and if one of them does not "+
			"accept, all %s is denied in the place of the last", direction, i, direction)
	}
	if i >= cluster.MaxClusterRules {
		if c.out.Action != cluster.Accept {
			before[len(before)-1] = c.failed()
		}
		return before
	}
	if a := c.out.Action; a != cluster.Accept && a != cluster.Deny && a != cluster.Pass {
		c.bad(reasonPolicyAction, "action: %.64q, want Accept, Deny or Pass", string(a))
	}
	if at := slices.IndexFunc(d.unknown, func(path string) bool { return strings.HasPrefix(path, c.field+".") }); at >= 0 {
		c.bad(reasonPolicyField, "%.200s: this version does not know the field", d.unknown[at][len(c.field)+1:])
	}
	c.peers(r)
	c.ports(r.protocols)
	if c.closed {
		return append(before, c.failed())
	}
	return append(before, c.out)
}

// clusterRuleDecoder is a rule being decoded.
type clusterRuleDecoder struct {
	*clusterPolicyDecoder
	field, direction string
	out              cluster.TieredRule
	closed           bool // it fails closed, and a Problem said so
}

// bad notes the first Problem of a rule, which makes it fail closed.
func (c *clusterRuleDecoder) bad(reason, format string, args ...any) {
	if c.closed {
		return
	}
	c.closed = true
	then := "the rule denies all " + c.direction + " of the policy's pods"
	if c.out.Action == cluster.Accept {
		then = "the rule accepts nothing"
	}
	c.clusterPolicyDecoder.bad(reason, "%s.%s: %s", c.field, fmt.Sprintf(format, args...), then)
}

// failed is the rule, closed: as the API says, Accept matches nothing, and Deny and Pass deny all.
func (c *clusterRuleDecoder) failed() cluster.TieredRule {
	if c.out.Action == cluster.Accept {
		return cluster.TieredRule{Name: c.out.Name, Action: cluster.Accept}
	}
	return cluster.TieredRule{Name: c.out.Name, Action: cluster.Deny,
		PolicyRule: cluster.PolicyRule{AnyPeer: true, AnyPort: true}}
}

// listed checks that a list is not longer than the API allows.
func (c *clusterRuleDecoder) listed(field string, length int) bool {
	if length > maxClusterList {
		c.bad(reasonPolicySize, "%s: has %d items, want at most %d", field, length, maxClusterList)
	}
	return length <= maxClusterList
}

// within counts what all rules name.
func (c *clusterRuleDecoder) within(field string, count *int, more int, limit policyLimit) {
	if *count += more; !limit.allows(*count) {
		*count -= more
		c.bad(reasonPolicySize, "%s: with it the policy has more than %d %s: %s", field, limit.most, limit.what,
			limit.advice())
	}
}

func (c *clusterRuleDecoder) peers(r clusterRule) {
	if len(r.peers) == 0 {
		c.bad(reasonPolicyPeer, "%s: is empty, want one peer or more", r.side)
	}
	if !c.listed(r.side, len(r.peers)) {
		return
	}
	for i, p := range r.peers {
		if c.closed {
			return // an attacker's selectors and ranges cost nothing more
		}
		c.peer(fmt.Sprintf("%s[%d]", r.side, i), p)
	}
}

// peer adds a peer: of the selectors and lists, one must be there.
func (c *clusterRuleDecoder) peer(field string, p v1alpha2.ClusterNetworkPolicyEgressPeer) {
	given := 0
	for _, is := range []bool{p.Namespaces != nil, p.Pods != nil, p.Nodes != nil, len(p.Networks) > 0,
		len(p.DomainNames) > 0} {
		if is {
			given++
		}
	}
	want := "namespaces, pods, nodes, networks or domainNames"
	if c.direction == "ingress" {
		want = "namespaces or pods"
	}
	switch {
	case given != 1:
		c.bad(reasonPolicyPeer, "%s: has %d fields that this version knows, want one: %s", field, given, want)
	case len(p.DomainNames) > 0:
		c.domainNames(field+".domainNames", p.DomainNames)
	case len(p.Networks) > 0:
		c.networks(field+".networks", p.Networks)
	case p.Nodes != nil:
		nodes, err := selector(p.Nodes)
		if err != nil {
			c.bad(reasonPolicySelector, "%s.nodes: %v", field, err)
			return
		}
		c.within(field, &c.selectors, 1, c.limits.selectors)
		c.out.Peers = append(c.out.Peers, cluster.PolicyPeer{Nodes: &nodes})
	default:
		pods, err := podsOf(p.Namespaces, p.Pods)
		if err != nil {
			c.bad(reasonPolicySelector, "%s.%v", field, err)
			return
		}
		c.within(field, &c.selectors, 1, c.limits.selectors)
		c.out.Peers = append(c.out.Peers, cluster.PolicyPeer{Pods: &pods})
	}
}

func (c *clusterRuleDecoder) networks(field string, list []v1alpha2.CIDR) {
	if !c.listed(field, len(list)) {
		return
	}
	c.within(field, &c.ranges, len(list), c.limits.ranges)
	for i, text := range list {
		p, err := netip.ParsePrefix(string(text))
		if err != nil || p.Addr().Is4In6() {
			c.bad(reasonPolicyPeer, "%s[%d]: %.64q, want a range of addresses such as 192.0.2.0/24 or 2001:db8::/32", field, i,
				string(text))
			return
		}
		c.out.Peers = append(c.out.Peers, cluster.PolicyPeer{Addresses: []netip.Prefix{p.Masked()}})
	}
}

// domainNames adds names of hosts. The API has them for rules that accept: nobody knows all addresses of a name, so one
// that denies would be no protection. The names that a wildcard stands for can't be asked for.
func (c *clusterRuleDecoder) domainNames(field string, list []v1alpha2.DomainName) {
	if c.out.Action != cluster.Accept {
		c.bad(reasonPolicyPeer, "%s: with action %.64s, want Accept", field, c.out.Action)
	}
	if !c.listed(field, len(list)) {
		return
	}
	c.within(field, &c.domains, len(list), c.limits.domains)
	for i, text := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		if strings.HasPrefix(string(text), "*") {
			c.bad(reasonPolicyWildcard, "%s: %.64q: wildcards are not served, want each name by itself", at, string(text))
			return
		}
		name, err := cluster.ParseDomainName(string(text))
		if err != nil {
			c.bad(reasonPolicyPeer, "%s: %v", at, err)
			return
		}
		c.out.Peers = append(c.out.Peers, cluster.PolicyPeer{Domain: name})
	}
}

func (c *clusterRuleDecoder) ports(list []v1alpha2.ClusterNetworkPolicyProtocol) {
	c.out.AnyPort = len(list) == 0
	if !c.listed("protocols", len(list)) {
		return
	}
	for i, p := range list {
		c.port(fmt.Sprintf("protocols[%d]", i), p)
	}
	c.out.Ports = mergedPorts(c.out.Ports)
	c.within("protocols", &c.portCount, len(c.out.Ports), c.limits.ports)
	if names := len(c.out.PortNames()); names > 0 {
		c.within("protocols", &c.pairs, names*(1+len(c.out.Peers)), c.limits.pairs)
	}
}
