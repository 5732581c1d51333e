package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// NetworkPolicy translates what policies allow. What they deny follows from a pod's Isolation.
type NetworkPolicy struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (NetworkPolicy) Kind() names.Kind { return names.KindPolicy }

func owner(n cluster.Name) nb.Owner { return nb.Owner{Kind: names.KindPolicy, Name: n.String()} }

// Atomic implements translate.Atomic.
func (NetworkPolicy) Atomic() translate.Atomicity { return translate.OfAll }

// Owners implements translate.Translator.
func (NetworkPolicy) Owners(s *cluster.State) []nb.Owner {
	return nb.Owners(names.KindPolicy, s.NetworkPolicies, cluster.Name.String)
}

// Depends implements translate.Translator.
func (NetworkPolicy) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds: []cluster.Kind{cluster.KindNetworkPolicy}, Subjects: []cluster.Subject{index.PolicyWritten},
	}
}

// Affected implements translate.Translator.
func (NetworkPolicy) Affected(_ *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	if c.Ref.Kind == cluster.KindNetworkPolicy {
		out = append(out, owner(c.Ref.Name))
	}
	for _, policy := range c.About(index.PolicyWritten) {
		out = append(out, owner(policy))
	}
	return out
}

// Rows implements translate.Translator.
func (t NetworkPolicy) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	p := s.NetworkPolicies[cluster.ParseName(o.Name)]
	if p == nil {
		return translate.Rows{}, nil
	}
	r := policyRows{
		Maker: translate.Maker{Schema: t.Schema, Owner: o, UID: p.UID}, state: s, policies: index.PoliciesOf(s),
		subject: index.SelectorHash(p.Subject()),
	}
	if p.Ingress.Isolates {
		for i, rule := range p.Ingress.Rules {
			r.rule(ingress(), i, rule)
		}
	}
	if p.Egress.Isolates {
		for i, rule := range p.Egress.Rules {
			r.rule(egress(), i, rule)
		}
	}
	return translate.Rows{Rows: r.rows}, nil
}

// policyRows makes the rows of one policy.
type policyRows struct {
	translate.Maker
	state    *cluster.State
	policies *index.Policies
	subject  string // the hash of the selector of its own pods
	rows     []nb.Row
}

// rule makes the ACLs of a rule: one for each address family and protocol. One ACL for several of them would cost more
// flows: ovn-controller multiplies what "||" joins of different fields.
func (r *policyRows) rule(d direction, number int, rule cluster.PolicyRule) {
	a := ruleACLs{r, d, number}
	if rule.AnyPort {
		a.anyPort(rule)
		return
	}
	for _, p := range cluster.Protocols() {
		var numbers []cluster.PolicyPort
		for _, port := range rule.Ports {
			if port.Protocol == p && port.Name == "" {
				numbers = append(numbers, port)
			}
		}
		if len(numbers) > 0 {
			a.numbers(rule, p, ports(p, numbers))
		}
	}
	for _, name := range rule.PortNames() {
		if d == ingress() {
			a.ownPort(rule, name)
		} else {
			a.theirPort(rule, name)
		}
	}
}

// ruleACLs makes the ACLs of one rule.
type ruleACLs struct {
	*policyRows
	direction
	number int // of the rule among those of its direction
}

// allow adds an ACL. The parts of its role say how it differs from the others of the rule.
func (a ruleACLs) allow(parts []string, matches ...string) {
	match := append([]string{a.pods(names.SelectorGroup(a.subject))}, slices.DeleteFunc(matches, func(m string) bool {
		return m == ""
	})...)
	acl := a.acl(names.ACLPolicyAllow, nbdb.ACLActionAllowRelated, strings.Join(match, " && "))
	acl.ExternalIDs = map[string]string{names.RuleKey: fmt.Sprintf("%s:%d", a.role, a.number)}
	role := strings.Join(append([]string{a.role, strconv.Itoa(a.number)}, parts...), "-")
	group := nb.Ref{Table: nbdb.PortGroupTable, UUID: names.SelectorRow(nbdb.PortGroupTable, a.subject, names.RoleGroup)}
	a.rows = append(a.rows, a.Row(role, acl, nb.Slot{In: group, Column: "acls"}))
}

// anyPort allows the peers all connections.
func (a ruleACLs) anyPort(rule cluster.PolicyRule) {
	if rule.AnyPeer {
		a.allow(nil, "ip")
		return
	}
	for _, f := range translate.Families(a.state) {
		if peers := a.others(rule, f); peers != "" {
			a.allow([]string{string(f)}, peers)
		}
	}
}

// numbers allows the peers connections to ports of one protocol.
func (a ruleACLs) numbers(rule cluster.PolicyRule, p cluster.Protocol, ports string) {
	protocol := strings.ToLower(string(p))
	if rule.AnyPeer {
		a.allow([]string{protocol}, ports)
		return
	}
	for _, f := range translate.Families(a.state) {
		if peers := a.others(rule, f); peers != "" {
			a.allow([]string{string(f), protocol}, peers, ports)
		}
	}
}

// ownPort allows the peers connections to a port that the policy's own pods know by a name. It may mean another number
// in each pod.
func (a ruleACLs) ownPort(rule cluster.PolicyRule, name cluster.PortName) {
	selection := a.policies.Selection(a.subject)
	for _, number := range selection.Numbers(name) {
		for _, f := range translate.Families(a.state) {
			own := server(f, a.portSet(a.subject, name, number, f))
			if peers := a.others(rule, f); rule.AnyPeer || peers != "" {
				a.allow(named(f, name, number), own, port(name, number), peers)
			}
		}
	}
}

// theirPort allows connections to a port that the peers know by a name.
func (a ruleACLs) theirPort(rule cluster.PolicyRule, name cluster.PortName) {
	having := map[uint16][]string{} // hashes of selections
	for _, s := range rule.Servers() {
		hash := index.SelectorHash(s)
		for _, number := range a.policies.Selection(hash).Numbers(name) {
			if !slices.Contains(having[number], hash) {
				having[number] = append(having[number], hash)
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(having)) {
		hashes := slices.Sorted(slices.Values(having[number]))
		for _, f := range translate.Families(a.state) {
			var sets []string
			for _, hash := range hashes {
				sets = append(sets, a.portSet(hash, name, number, f))
			}
			a.allow(named(f, name, number), server(f, sets...), port(name, number))
		}
	}
}

// others matches the addresses of a rule's peers in one family; "" when there are none, and when the peer may be any.
func (a ruleACLs) others(rule cluster.PolicyRule, f names.Family) string {
	if rule.AnyPeer {
		return ""
	}
	var sets, ranges []string
	for _, peer := range rule.Peers {
		if peer.Pods != nil {
			sets = append(sets, "$"+addressSet(a.state, *peer.Pods, f))
		}
		for _, p := range peer.Addresses {
			switch {
			case names.FamilyOf(p.Addr().Is4()) != f:
			case p.Bits() == 0:
				return keyword(f)
			default:
				ranges = append(ranges, address(p))
			}
		}
	}
	if len(sets)+len(ranges) == 0 {
		return ""
	}
	slices.Sort(sets)
	slices.Sort(ranges)
	return a.peers(f, append(slices.Compact(sets), slices.Compact(ranges)...)...)
}

// portSet is the address set of the pods of a selection for which a port's name means a number.
func (a ruleACLs) portSet(hash string, n cluster.PortName, number uint16, f names.Family) string {
	return "$" + names.PortAddressSet(hash, string(n.Protocol), n.Name, number, f)
}

// named is what the role of an ACL says of a named port.
func named(f names.Family, n cluster.PortName, number uint16) []string {
	return []string{string(f), strings.ToLower(string(n.Protocol)), fmt.Sprintf("%s=%d", n.Name, number)}
}

func port(n cluster.PortName, number uint16) string {
	return ports(n.Protocol, []cluster.PolicyPort{{Protocol: n.Protocol, First: number, Last: number}})
}
