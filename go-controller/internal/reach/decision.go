package reach

import (
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// Decision is what the rows decide about a connection in one direction: that of the client's policies, or that of the
// server's.
type Decision struct {
	Allowed bool   `json:"allowed"`
	Object  string `json:"object,omitempty"` // whose rule decides: "np/shop/web"
	Field   string `json:"field,omitempty"`  // the rule: "spec.ingress[0]"
	Reason  string `json:"reason"`           // the same for a person, or why no rule decides
	Rows    []Row  `json:"rows,omitempty"`   // the ACLs that decide

	isolated bool // denied, because policies isolate the pod and no rule allows the connection
}

// says is true when two decisions say the same, whatever rows make them.
func (d Decision) says(e Decision) bool {
	return d.Allowed == e.Allowed && d.Object == e.Object && d.Field == e.Field && d.Reason == e.Reason
}

// itself is why a pod reaches itself through a service.
const itself = "a pod may always reach itself"

// direction is that of a decision.
type direction string

const (
	egress  direction = "egress"
	ingress direction = "ingress"
)

// policyType is the direction as policies spell it.
func (d direction) policyType() string {
	if d == egress {
		return "Egress"
	}
	return "Ingress"
}

// side is how a rule of the direction names its peers.
func (d direction) side() string {
	if d == egress {
		return "to"
	}
	return "from"
}

// of is what a policy says of the direction.
func (d direction) of(p *cluster.NetworkPolicy) cluster.PolicyRules {
	if d == egress {
		return p.Egress
	}
	return p.Ingress
}

// decide is what the ACLs of some stages decide: the first one that drops the packet, or else the last one that allows
// it. A nil ACL stands for none. passed are ACLs that left the decision to a later tier.
func decide(steps []verdict.Step) (allowed bool, acl *nbdb.ACL, passed []*nbdb.ACL) {
	for _, s := range steps {
		passed = append(passed, s.Passed...)
		if !s.Allowed {
			return false, s.ACL, passed
		}
		if s.ACL != nil {
			acl = s.ACL
		}
	}
	return true, acl, passed
}

// decision says what the stages of a direction decide about the pod at that end, for a connection with the other end.
func (c *Cluster) decision(d direction, e, other End, steps []verdict.Step) Decision {
	allowed, acl, passed := decide(steps)
	out := Decision{Allowed: allowed}
	switch object, field, ok := c.rule(acl); {
	case acl == nil:
		out.Reason = c.undecided(d, e)
	case ok:
		out.Object, out.Field, out.Reason = object, field, object+" "+field
	default:
		out.Reason = c.reason(d, e, other, acl)
		out.isolated = e.pod != nil && c.isolates(acl) && !c.locked(e)
	}
	if key, owned := c.mark(acl); owned {
		out.Rows = []Row{{UUID: acl.UUID, Role: key.Role, key: key}}
	}
	for _, p := range passed {
		if object, field, ok := c.rule(p); ok {
			out.Reason += fmt.Sprintf(", after %s %s passed it on", object, field)
		}
	}
	return out
}

// mark is whose row an ACL is; owned is false for one of somebody else, and for none.
func (c *Cluster) mark(acl *nbdb.ACL) (key nb.Key, owned bool) {
	if acl == nil {
		return nb.Key{}, false
	}
	return c.Schema.Mark(acl)
}

// rule is the rule that an ACL is for; ok is false when it is for none.
func (c *Cluster) rule(acl *nbdb.ACL) (object, field string, ok bool) {
	key, owned := c.mark(acl)
	if !owned || acl.ExternalIDs[names.RuleKey] == "" {
		return "", "", false
	}
	return objectOf(key.Owner), fieldNamed(acl.ExternalIDs[names.RuleKey]), true
}

// objectOf is an owner of rules as it is named on the command line.
func objectOf(o nb.Owner) string {
	kind := strings.ToLower(string(o.Kind))
	switch o.Kind {
	case names.KindPolicy:
		kind = "np"
	case names.KindClusterPolicy:
		kind = "cnp"
	}
	return kind + "/" + o.Name
}

// fieldNamed is the field of a rule: spec.ingress[0] for ingress:0.
func fieldNamed(rule string) string {
	direction, number, _ := strings.Cut(rule, ":")
	return fmt.Sprintf("spec.%s[%s]", direction, number)
}

// undecided says why no ACL decides.
func (c *Cluster) undecided(d direction, e End) string {
	switch {
	case e.pod == nil && e.Name == "outside":
		return "outside the cluster: no policy selects it"
	case e.pod == nil && e.in != nil:
		return "no pod has the address"
	case e.pod == nil:
		return "a node's host: no policy selects it"
	}
	all, above := c.selecting(e.pod), c.ordering(e.pod)
	by, rules := c.isolatedBy(e, d), ruling(above, d)
	switch {
	case len(by) > 0:
		return "isolated by " + strings.Join(by, ", ") + ", but no row denies it"
	case len(rules) > 0:
		return "no rule of " + listTiered(rules) + " decides, and no NetworkPolicy with " + d.policyType() + " selects it"
	case len(all)+len(above)+len(c.furtherPolicies(e)) == 0:
		return "no policy selects it"
	}
	return "no policy with " + d.policyType() + " selects it"
}

// reason says why an ACL that is for no rule decides.
func (c *Cluster) reason(d direction, e, other End, acl *nbdb.ACL) string {
	key, owned := c.mark(acl)
	if !owned {
		return fmt.Sprintf("ACL %s, which Northbound did not make: %s %s", acl.UUID, acl.Action, acl.Match)
	}
	role := roleOf(key)
	switch key.Owner.Kind {
	case names.KindIsolation, names.KindNetworkIsolation, names.KindPolicy, names.KindMultiPolicy:
		switch role {
		case names.RoleLinkLocal:
			return "link-local addresses reach nobody while a ClusterNetworkPolicy is about the network"
		case names.RoleDenyIn, names.RoleDenyOut:
			if e.pod == nil {
				return "isolated, and no rule allows this"
			}
			if c.locked(e) {
				return inPrimary
			}
			return "isolated by " + strings.Join(c.isolatedBy(e, d), ", ") + ", and no rule allows this"
		case names.RoleDenyLocked:
			return inPrimary
		case names.RoleOpenLocked:
			return "the pod opens it: annotation " + annotation.OpenPorts
		case names.RoleOwnIn, names.RoleOwnOut, names.RoleAnswer:
			return alwaysAllowed(role, e, other)
		case names.RoleUnblock + "-0", names.RoleUnblock + "-1":
			return "a connection that is not allowed any more: the next tier decides"
		}
	case names.KindTenant:
		if role == names.RoleDeny {
			return c.tenantsApart(e, other)
		}
	case names.KindNode, names.KindCluster:
		switch role {
		case names.RoleUnserved:
			return "a ClusterIP at which no Service has a backend"
		case names.RoleLinkLocal:
			return "link-local addresses reach nobody"
		case names.RoleSpoofGuard:
			return "only the network itself sends such packets"
		case names.RoleHairpin:
			return "it comes back to its own node"
		}
	}
	return fmt.Sprintf("ACL %s of %s", key.Role, key.Owner)
}

// roleOf is the role of a row without the address family.
func roleOf(key nb.Key) string {
	role, _, _ := strings.Cut(strings.TrimSuffix(key.Role, "-"+string(names.IPv4)), "-"+string(names.IPv6))
	return role
}

// isolates is true for an ACL that drops what no rule of a policy allows.
func (c *Cluster) isolates(acl *nbdb.ACL) bool {
	key, owned := c.mark(acl)
	role := roleOf(key)
	return owned && (role == names.RoleDenyIn || role == names.RoleDenyOut)
}

// locked is true for the interface eth0 of a pod in a primary network.
func (c *Cluster) locked(e End) bool { return c.State.Locked(e.pod.Name) && e.in == nil }

// inPrimary says why a pod of a primary network has no connections in the cluster's own.
const inPrimary = "it is in a primary network: this is about its interface eth0, which is for its own node alone"

// alwaysAllowed says why an ACL allows what no policy denies: it has this role.
func alwaysAllowed(role string, e, other End) string {
	switch {
	case role == names.RoleOwnIn && e.pod != nil && e.pod == other.pod:
		return itself
	case role == names.RoleOwnIn:
		return "its own node may always connect to it"
	case role == names.RoleOwnOut && other.node != "":
		return "it may always connect to its own node"
	}
	return "it may always answer OVN's health checks"
}

// selecting lists the policies that select a pod, sorted.
func (c *Cluster) selecting(p *cluster.Pod) []*cluster.NetworkPolicy {
	var out []*cluster.NetworkPolicy
	for _, np := range c.State.NetworkPolicies {
		if np.Name.Namespace == p.Name.Namespace && np.Pods.Selects(p.Labels) {
			out = append(out, np)
		}
	}
	slices.SortFunc(out, func(a, b *cluster.NetworkPolicy) int { return cluster.CompareNames(a.Name, b.Name) })
	return out
}

// isolating lists those of the policies that isolate pods in a direction.
func isolating(all []*cluster.NetworkPolicy, d direction) []*cluster.NetworkPolicy {
	return slices.DeleteFunc(slices.Clone(all), func(p *cluster.NetworkPolicy) bool { return !d.of(p).Isolates })
}

// furtherPolicies lists the MultiNetworkPolicies that select a pod in its primary network, sorted.
func (c *Cluster) furtherPolicies(e End) []*cluster.NetworkPolicy {
	if e.in == nil || e.pod == nil {
		return nil
	}
	return c.policiesIn(e.in.Name, e.pod)
}

// policiesIn lists the MultiNetworkPolicies that select a pod in a network, sorted.
func (c *Cluster) policiesIn(n names.Network, pod *cluster.Pod) (out []*cluster.NetworkPolicy) {
	for _, p := range c.State.MultiNetworkPolicies {
		if p.About(n) && p.Name.Namespace == pod.Name.Namespace && p.Pods.Selects(pod.Labels) {
			out = append(out, &p.NetworkPolicy)
		}
	}
	slices.SortFunc(out, comparePolicies)
	return out
}

// isolatedBy names the policies that isolate a pod in a direction: "np/shop/a".
func (c *Cluster) isolatedBy(e End, d direction) (out []string) {
	for _, p := range isolating(c.selecting(e.pod), d) {
		out = append(out, "np/"+p.Name.String())
	}
	for _, p := range isolating(c.furtherPolicies(e), d) {
		out = append(out, objectOf(nb.Owner{Kind: names.KindMultiPolicy, Name: p.Name.String()}))
	}
	return out
}
