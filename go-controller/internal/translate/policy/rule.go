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
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// ruleACLs makes the ACLs of one rule.
type ruleACLs struct {
	*policyRows
	direction
	ruling
	number int // of the rule among those of its direction
}

// portTerm matches the ports of one protocol that are connected to; match is "" for what needs no port.
type portTerm struct{ protocol, match string }

// fragments matches the packets of a protocol whose ports OVN may not know.
func (p portTerm) fragments() string { return p.protocol + " && ip.is_frag" }

// add adds an ACL. The parts of its role say how it differs from the others of the rule. One that denies some ports has
// a companion that denies fragments: their ports are not known, so that they would pass.
func (a ruleACLs) add(parts []string, port portTerm, matches ...string) {
	a.log(parts, matches)
	if a.action != nbdb.ACLActionDrop || port.match == port.protocol {
		return
	}
	matches = slices.Clone(matches)
	matches[slices.Index(matches, port.match)] = port.fragments()
	a.log(append(slices.Clone(parts), "fragments"), matches)
}

// log adds an ACL. Where the rule is logged and does not deny, two ACLs share its work, so that the first packet of a
// connection is logged, and no other.
func (a ruleACLs) log(parts, matches []string) {
	if a.severity == "" || a.action == nbdb.ACLActionDrop {
		a.one(parts, matches)
		return
	}
	a.one(append(slices.Clone(parts), names.RoleNew), append(slices.Clone(matches), "ct.new"))
	a.severity = ""
	a.one(parts, append(slices.Clone(matches), "!ct.new"))
}

func (a ruleACLs) one(parts, matches []string) {
	match := []string{a.pods(names.SelectorGroup(a.subject))}
	for _, m := range matches {
		if m != "" {
			match = append(match, m)
		}
	}
	acl := a.acl(a.priority, a.action, strings.Join(match, " && "))
	acl.Tier = a.tier
	a.logTo(acl, a.direction, strconv.Itoa(a.number), a.severity)
	acl.ExternalIDs = map[string]string{names.RuleKey: fmt.Sprintf("%s:%d", a.role, a.number)}
	if a.name != "" {
		acl.ExternalIDs[names.RuleNameKey] = fmt.Sprintf("%.100s", a.name)
	}
	role := strings.Join(append([]string{a.role, strconv.Itoa(a.number)}, parts...), "-")
	a.rows = append(a.rows, a.Row(a.network.RuleRole(role), acl, a.group()))
}

// anyPort is about all connections with the peers.
func (a ruleACLs) anyPort(rule cluster.PolicyRule) {
	if rule.AnyPeer {
		a.add(nil, portTerm{}, "ip")
		return
	}
	for _, f := range a.families {
		for _, s := range a.sides(rule, f) {
			a.add(append([]string{string(f)}, s.part...), portTerm{}, s.match)
		}
	}
}

// numbers is about connections with the peers to ports of one protocol.
func (a ruleACLs) numbers(rule cluster.PolicyRule, p cluster.Protocol, ports string) {
	protocol := strings.ToLower(string(p))
	if rule.AnyPeer {
		a.add([]string{protocol}, portTerm{protocol, ports}, ports)
		return
	}
	for _, f := range a.families {
		for _, s := range a.sides(rule, f) {
			if p != cluster.UDP && slices.Contains(s.part, names.RoleMulticast) {
				continue // other protocols have none
			}
			a.add(append([]string{string(f), protocol}, s.part...), portTerm{protocol, ports}, s.match, ports)
		}
	}
}

// ownPort is about connections of the peers to a port that the policy's own pods know by a name. It may mean another
// number in each pod.
func (a ruleACLs) ownPort(rule cluster.PolicyRule, name cluster.PortName) {
	selection := a.policies.Selection(a.subject)
	for _, number := range selection.Numbers(name) {
		for _, f := range a.families {
			own := server(f, a.portSet(a.subject, name, number, f))
			term := port(name, number)
			if rule.AnyPeer {
				a.add(named(f, name, number), term, own, term.match)
			}
			for _, s := range a.sides(rule, f) {
				if s.part != nil {
					own = "" // the address is compared with the peers
				}
				a.add(append(named(f, name, number), s.part...), term, own, term.match, s.match)
			}
		}
	}
}

// theirPort is about connections to a port that the peers know by a name.
func (a ruleACLs) theirPort(rule cluster.PolicyRule, name cluster.PortName) {
	having := map[uint16][]string{} // hashes of selections
	for _, s := range rule.Servers() {
		hash := a.policies.Hash(s)
		for _, number := range a.policies.Selection(hash).Numbers(name) {
			if !slices.Contains(having[number], hash) {
				having[number] = append(having[number], hash)
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(having)) {
		hashes := slices.Sorted(slices.Values(having[number]))
		for _, f := range a.families {
			var sets []string
			for _, hash := range hashes {
				sets = append(sets, a.portSet(hash, name, number, f))
			}
			term := port(name, number)
			a.add(named(f, name, number), term, server(f, sets...), term.match)
		}
	}
}

// side is a match of the other side of connections. An ACL has it for itself.
type side struct {
	part  []string // of the ACL's role
	match string
}

// sides matches a rule's peers in one family. A pod that is a peer of itself, and reaches itself through a service, has
// another source. Then the destination tells whether the pod is a peer.
func (a ruleACLs) sides(rule cluster.PolicyRule, f names.Family) (out []side) {
	if rule.AnyPeer {
		return nil
	}
	o := a.others(rule, f)
	if o.all {
		return []side{{nil, translate.Keyword(f)}}
	}
	if among := slices.Concat(o.sets, o.ranges); len(among) > 0 {
		out = append(out, side{nil, a.peers(f, among...)})
	}
	if a.tiered && a.direction == ingress() && len(o.sets) > 0 {
		out = append(out, side{[]string{names.RoleItself}, a.peers(f, hairpinSource(f)) + " && " + server(f, o.sets...)})
	}
	if len(o.outside) > 0 {
		out = append(out, side{[]string{names.RoleOutside}, a.notInNetwork(f, o.outside)})
	}
	if a.tiered && a.network.Further() && a.direction == egress() && a.action == nbdb.ACLActionDrop && len(o.sets) > 0 {
		out = append(out, side{[]string{names.RoleMulticast}, toAll(f)})
	}
	return out
}

// others is the addresses of a rule's peers in one family, sorted.
type others struct {
	all     bool     // every address: the other fields have no meaning
	sets    []string // of pods
	ranges  []string // ranges, and sets that are not of pods
	outside []string // such sets in a primary network: their addresses mean nobody there
}

func (a ruleACLs) others(rule cluster.PolicyRule, f names.Family) (out others) {
	foreign := &out.ranges
	if a.network.Further() {
		foreign = &out.outside
	}
	for _, peer := range rule.Peers {
		switch {
		case peer.Pods != nil:
			out.sets = append(out.sets, "$"+addressSet(a.state, a.network, *peer.Pods, f))
			if a.direction == egress() && !a.tiered {
				out.ranges = append(out.ranges, a.dns.of(*peer.Pods, f)...)
			}
		case peer.Nodes != nil:
			*foreign = append(*foreign, "$"+names.SelectorAddressSet(nodesHash(*peer.Nodes), f))
		case peer.Domain != "":
			*foreign = append(*foreign, "$"+names.SelectorAddressSet(index.DomainNameHash(peer.Domain), f))
		}
		for _, p := range peer.Addresses {
			switch {
			case names.FamilyOf(p.Addr().Is4()) != f:
			case p.Bits() == 0:
				return others{all: true}
			default:
				out.ranges = append(out.ranges, address(p))
			}
		}
	}
	for _, list := range []*[]string{&out.sets, &out.ranges, &out.outside} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return out
}

// portSet is the address set of the pods of a selection for which a port's name means a number.
func (a ruleACLs) portSet(hash string, n cluster.PortName, number uint16, f names.Family) string {
	return "$" + names.PortAddressSet(hash, string(n.Protocol), n.Name, number, f)
}

// named is what the role of an ACL says of a named port.
func named(f names.Family, n cluster.PortName, number uint16) []string {
	return []string{string(f), strings.ToLower(string(n.Protocol)), fmt.Sprintf("%s=%d", n.Name, number)}
}

func port(n cluster.PortName, number uint16) portTerm {
	return portTerm{strings.ToLower(string(n.Protocol)),
		ports(n.Protocol, []cluster.PolicyPort{{Protocol: n.Protocol, First: number, Last: number}})}
}
