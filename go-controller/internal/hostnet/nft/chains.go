package nft

import (
	"fmt"

	"github.com/google/nftables"
)

// Chain is a chain of any program, in any table.
type Chain struct {
	Table, Name string
	IPv6        bool // of the family ip6
	// Forwards is true for a base chain that every forwarded packet passes, and Drops for one that drops what none of its
	// rules accepts.
	Forwards, Drops bool
}

// Chains lists all chains of the network namespace, also those of iptables-nft. It needs root.
func Chains() ([]Chain, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("opening nftables: %w", err)
	}
	list, err := c.ListChains()
	if err != nil {
		return nil, fmt.Errorf("reading nftables chains: %w", err)
	}
	out := make([]Chain, 0, len(list))
	for _, ch := range list {
		out = append(out, Chain{
			Table: ch.Table.Name, Name: ch.Name, IPv6: ch.Table.Family == nftables.TableFamilyIPv6,
			Forwards: ch.Hooknum != nil && *ch.Hooknum == *nftables.ChainHookForward &&
				ch.Table.Family != nftables.TableFamilyNetdev,
			Drops: ch.Policy != nil && *ch.Policy == nftables.ChainPolicyDrop,
		})
	}
	return out, nil
}
