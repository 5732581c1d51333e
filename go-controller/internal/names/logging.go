package names

import "strings"

// LogMeter is the name of the meter of all ACLs that log.
const LogMeter = "acl-logging"

// maxACLName is the longest name that an ACL may have (ovn-nb(5), ACL name).
const maxACLName = 63

// LoggedRule is what the name of an ACL says in a line of ovn-controller's log: which policy decided, by which rule.
type LoggedRule struct {
	Kind      Kind   // KindPolicy or KindClusterPolicy
	Owner     string // "namespace/name" or "name"
	Direction string // RoleIngress or RoleEgress
	Rule      string // the number of the rule, or DeniedByDefault
}

// DeniedByDefault stands for the number of a rule where no rule allows a connection.
const DeniedByDefault = "deny"

// String is the name of the ACL, such as "NP:shop/web:ingress:0". In a name that would be too long, the owner is cut
// and ends with a hash.
func (r LoggedRule) String() string {
	owner, prefix, suffix := r.Owner, "NP:", ":"+r.Direction+":"+r.Rule
	if r.Kind == KindClusterPolicy {
		prefix = "CNP:"
	}
	if room := maxACLName - len(prefix) - len(suffix); len(owner) > room {
		hash := "~" + short(owner)[:8]
		owner = owner[:room-len(hash)] + hash
	}
	return prefix + owner + suffix
}

// ParseLoggedRule reads the name of an ACL. cut is true when the owner is only the begin of its name, and a hash. ok is
// false for other ACLs.
func ParseLoggedRule(name string) (r LoggedRule, cut, ok bool) {
	parts := strings.Split(name, ":")
	if len(parts) != 4 || parts[2] != RoleIngress && parts[2] != RoleEgress {
		return r, false, false
	}
	r = LoggedRule{KindPolicy, parts[1], parts[2], parts[3]}
	switch parts[0] {
	case "CNP":
		r.Kind = KindClusterPolicy
	case "NP":
	default:
		return r, false, false
	}
	return r, strings.Contains(r.Owner, "~"), true
}
