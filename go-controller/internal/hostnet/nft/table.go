package nft

import (
	"fmt"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// isOurChain tells whether we have a chain of this name in our table; what else
// is there is somebody's mistake.
func isOurChain(name string) bool {
	return slices.Contains(masqueradeChains(), name) || slices.Contains(serviceChains(), name) || slices.Contains(hairpinChains(), name)
}

func ourTable() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: names.NFTable}
}

// openTable begins a transaction, and tells which chains our table has: none
// when there is no table.
func openTable() (*nftables.Conn, map[string]*nftables.Chain, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, nil, fmt.Errorf("opening nftables: %w", err)
	}
	list, err := c.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, nil, fmt.Errorf("reading nftables chains: %w", err)
	}
	chains := map[string]*nftables.Chain{}
	for _, ch := range list {
		if ch.Table.Name == names.NFTable {
			chains[ch.Name] = ch
		}
	}
	return c, chains, nil
}

// removeChains takes those of these names that are there out of the table and
// out of chains; none has rules when the first goes, as one may lead to another.
func removeChains(c *nftables.Conn, chains map[string]*nftables.Chain, names []string) {
	for _, name := range names {
		if chains[name] != nil {
			c.FlushChain(chains[name])
		}
	}
	for _, name := range names {
		if chains[name] != nil {
			c.DelChain(chains[name])
			delete(chains, name)
		}
	}
}

// sameChain tells whether packets come to both chains in the same way, and get
// past them.
func sameChain(have, want *nftables.Chain) bool {
	if have.Policy != nil && *have.Policy != nftables.ChainPolicyAccept {
		return false
	}
	return have.Type == want.Type && have.Hooknum != nil && *have.Hooknum == *want.Hooknum && have.Priority != nil && *have.Priority == *want.Priority
}

// exactRules tells whether the chains have just these rules, in their order. A
// rule is known by its comment and its length.
func exactRules(have map[string][]*nftables.Rule, want []serviceRule) bool {
	for _, w := range want {
		rules := have[w.chain]
		if len(rules) == 0 || ruleComment(rules[0]) != w.about || len(rules[0].Exprs) != readable(w.exprs) {
			return false
		}
		have[w.chain] = rules[1:]
	}
	for _, rest := range have {
		if len(rest) > 0 {
			return false
		}
	}
	return true
}

// readable is how many of a rule's expressions the library reads back: it leaves
// out those of the type socket.
func readable(exprs []expr.Any) int {
	n := 0
	for _, e := range exprs {
		if _, socket := e.(*expr.Socket); !socket {
			n++
		}
	}
	return n
}
