package config

// Policies bounds what one policy may name, and all NetworkPolicies of a namespace together, so that their authors cost
// others little. 0 stands for no limit. Only the master needs it.
type Policies struct {
	MaxRules     int // of a NetworkPolicy, of both directions together
	MaxSelectors int // of peers
	MaxRanges    int // of addresses
	MaxPorts     int // of ports, each with its endPort

	MaxNamespaceSelectors int // of peers
	MaxNamespaceTerms     int // rules, peers and ports: a peer with several ranges of addresses counts once for each
}

// DefaultPolicies has the default limits.
func DefaultPolicies() Policies {
	return Policies{MaxRules: 1024, MaxSelectors: 256, MaxRanges: 4096, MaxPorts: 1024,
		MaxNamespaceSelectors: 2000, MaxNamespaceTerms: 20000}
}

// Validate returns an error for everything that is wrong, with the flag's name.
func (p Policies) Validate() error {
	d := DefaultPolicies()
	return validateLimits(limit{"--max-policy-rules", p.MaxRules, d.MaxRules},
		limit{"--max-policy-selectors", p.MaxSelectors, d.MaxSelectors},
		limit{"--max-policy-ranges", p.MaxRanges, d.MaxRanges}, limit{"--max-policy-ports", p.MaxPorts, d.MaxPorts},
		limit{"--max-namespace-policy-selectors", p.MaxNamespaceSelectors, d.MaxNamespaceSelectors},
		limit{"--max-namespace-policy-terms", p.MaxNamespaceTerms, d.MaxNamespaceTerms})
}
