package nft

import (
	"fmt"
	"slices"

	"github.com/google/nftables"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// isOurChain tells whether we have a chain of this name in our table; what else
// is there is somebody's mistake.
func isOurChain(name string) bool {
	all := slices.Concat(masqueradeChains(), serviceChains(), hairpinChains(), antiSpoofChains(),
		databaseDropChains())
	return slices.ContainsFunc(all, func(c *nftables.Chain) bool { return c.Name == name })
}

func ourTable() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: names.NFTable}
}

// openTable begins a transaction, and tells which chains the table has: none
// when there is no table.
func openTable(table *nftables.Table) (*nftables.Conn, map[string]*nftables.Chain, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, nil, fmt.Errorf("opening nftables: %w", err)
	}
	list, err := c.ListChainsOfTableFamily(table.Family)
	if err != nil {
		return nil, nil, fmt.Errorf("reading nftables chains: %w", err)
	}
	chains := map[string]*nftables.Chain{}
	for _, ch := range list {
		if ch.Table.Name == table.Name {
			chains[ch.Name] = ch
		}
	}
	return c, chains, nil
}

// removeChains takes those of these chains that are there out of the table and
// out of chains; none has rules when the first goes, as one may lead to another.
func removeChains(c *nftables.Conn, chains map[string]*nftables.Chain, gone []*nftables.Chain) {
	for _, g := range gone {
		if chains[g.Name] != nil {
			c.FlushChain(chains[g.Name])
		}
	}
	for _, g := range gone {
		if chains[g.Name] != nil {
			c.DelChain(chains[g.Name])
			delete(chains, g.Name)
		}
	}
}

// setItem makes an item's chains anew, or removes them. Chains that are not ours go,
// too.
func setItem(want []*nftables.Chain, rules []rule, remove bool) error {
	c, chains, err := openTable(ourTable())
	if err != nil {
		return err
	}
	var foreign []*nftables.Chain
	for name, ch := range chains {
		if !isOurChain(name) {
			foreign = append(foreign, ch)
		}
	}
	removeChains(c, chains, foreign)
	if remove {
		rules = nil
	}
	return setChains(c, chains, want, rules)
}

// setChains makes chains anew in one transaction, so that no packet comes between
// the old rules and the new. Without any rules it removes them, and the table with
// its last chain.
func setChains(c *nftables.Conn, chains map[string]*nftables.Chain, want []*nftables.Chain, rules []rule) error {
	table := c.AddTable(ourTable())
	removeChains(c, chains, want)
	if len(rules) > 0 {
		addRules(c, want, rules)
	} else if len(chains) == 0 {
		c.DelTable(table)
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("writing nftables: %w", err)
	}
	return nil
}

// ourChain is a chain of our table at a hook.
func ourChain(
	name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority,
) *nftables.Chain {
	return &nftables.Chain{Name: name, Table: ourTable(), Type: kind, Hooknum: hook, Priority: priority}
}

// sameChain tells whether packets come to both chains in the same way, and what
// becomes of those that get past the last rule.
func sameChain(have, want *nftables.Chain) bool {
	policy := func(c *nftables.Chain) nftables.ChainPolicy {
		if c.Policy == nil {
			return nftables.ChainPolicyAccept
		}
		return *c.Policy
	}
	return have.Type == want.Type && policy(have) == policy(want) && have.Hooknum != nil &&
		*have.Hooknum == *want.Hooknum &&
		have.Priority != nil && *have.Priority == *want.Priority
}
