package config

// Policies bounds what one policy may name, so that its author costs others little. 0 stands for no limit. Only the
// master needs it.
type Policies struct {
	MaxRules     int // of a NetworkPolicy, of both directions together
	MaxSelectors int // of peers
	MaxRanges    int // of addresses
	MaxPorts     int // of ports, each with its endPort
}

// DefaultPolicies has the default limits.
func DefaultPolicies() Policies {
	return Policies{MaxRules: 1024, MaxSelectors: 256, MaxRanges: 4096, MaxPorts: 1024}
}

// Validate returns an error for everything that is wrong, with the flag's name.
func (p Policies) Validate() error {
	d := DefaultPolicies()
	return validateLimits(limit{"--max-policy-rules", p.MaxRules, d.MaxRules},
		limit{"--max-policy-selectors", p.MaxSelectors, d.MaxSelectors},
		limit{"--max-policy-ranges", p.MaxRanges, d.MaxRanges}, limit{"--max-policy-ports", p.MaxPorts, d.MaxPorts})
}
