package names

import (
	"regexp"
	"strings"
)

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
	parts := loggedName().FindStringSubmatch(name)
	if parts == nil {
		return r, false, false
	}
	r = LoggedRule{KindPolicy, parts[2], parts[3], parts[4]}
	if parts[1] == "CNP" {
		r.Kind = KindClusterPolicy
	}
	return r, strings.Contains(r.Owner, "~"), true
}

// loggedName matches the names that LoggedRule.String makes.
func loggedName() *regexp.Regexp {
	return regexp.MustCompile(`^(NP|CNP):([a-z0-9./~-]+):(` + RoleIngress + `|` + RoleEgress + `):([0-9]{1,9}|` +
		DeniedByDefault + `)$`)
}
