package nft

import (
	"errors"
	"fmt"
	"os"

	"github.com/google/nftables"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// ingressPriority comes before any other usual hook of ingress: there "filter" is 0
// (nft(8), "Standard priority names").
const ingressPriority = nftables.ChainPriority(-500)

// ingressTable is of the family netdev and has nothing but one chain per link,
// "ingress-LINK", without rules and with the policy to drop.
func ingressTable() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyNetdev, Name: names.NFTable}
}

// ingressPrefix comes before the link in a chain's name.
const ingressPrefix = "ingress-"

// ingressDropChain is the chain of this link.
func ingressDropChain(link string) *nftables.Chain {
	policy, priority := nftables.ChainPolicyDrop, ingressPriority
	return &nftables.Chain{
		Name: ingressPrefix + link, Table: ingressTable(), Type: nftables.ChainTypeFilter, Device: link,
		Hooknum: nftables.ChainHookIngress, Priority: &priority, Policy: &policy,
	}
}

// ReadIngressDrop tells whether the chain of this link is there and drops.
func ReadIngressDrop(d hostplan.IngressDrop) ([]hostplan.Item, error) {
	_, chains, err := openTable(ingressTable())
	want := ingressDropChain(d.Link)
	if have := chains[want.Name]; have == nil || !sameChain(have, want) {
		return nil, err
	}
	return []hostplan.Item{d}, nil
}

// SetIngressDrop makes the link's chain anew, or removes it, and the table
// with the last one; in one transaction.
func SetIngressDrop(d hostplan.IngressDrop, remove bool) error {
	c, chains, err := openTable(ingressTable())
	if err != nil {
		return err
	}
	table, chain := c.AddTable(ingressTable()), ingressDropChain(d.Link)
	removeChains(c, chains, []*nftables.Chain{chain})
	if !remove {
		c.AddChain(chain)
	} else if len(chains) == 0 {
		c.DelTable(table)
	}
	if err := c.Flush(); err != nil && (!remove || !errors.Is(err, os.ErrNotExist)) {
		return fmt.Errorf("writing nftables: %w", err)
	}
	return nil
}
