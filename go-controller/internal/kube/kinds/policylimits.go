package kinds

import "github.com/northbound-net/northbound/go-controller/internal/config"

// policyLimit is how many of something one policy may name.
type policyLimit struct {
	most int    // 0 for no limit
	what string // in the plural
	flag string // with which the operator sets it; "" for a fixed limit
}

// policyLimits are all limits of one policy.
type policyLimits struct{ rules, selectors, ranges, ports, names, pairs, domains policyLimit }

// limitsOf adds the limits that are fixed. Names of ports are counted in all rules together: each costs sets for every
// number that pods have for it. Each pair costs address sets, or a part of an ACL.
func limitsOf(c config.Policies) policyLimits {
	return policyLimits{
		rules:     policyLimit{c.MaxRules, "rules", "--max-policy-rules"},
		selectors: policyLimit{c.MaxSelectors, "selectors", "--max-policy-selectors"},
		ranges:    policyLimit{c.MaxRanges, "ranges of addresses", "--max-policy-ranges"},
		ports:     policyLimit{c.MaxPorts, "ports", "--max-policy-ports"},
		names:     policyLimit{64, "names of ports", ""},
		pairs:     policyLimit{4096, "pairs of a peer and the name of a port", ""},
		domains:   policyLimit{256, "names", ""},
	}
}

func (l policyLimit) allows(count int) bool { return l.most == 0 || count <= l.most }

// advice is what a user can do about a policy that exceeds the limit.
func (l policyLimit) advice() string {
	if l.flag == "" {
		return "divide the policy"
	}
	return "divide the policy, or raise " + l.flag + " of the masters"
}
