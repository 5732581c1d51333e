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

func ingressChain(link string) string { return "ingress-" + link }

// ingressDropChain is the chain of this link.
func ingressDropChain(link string) *nftables.Chain {
	policy, priority := nftables.ChainPolicyDrop, ingressPriority
	return &nftables.Chain{
		Name: ingressChain(link), Table: ingressTable(), Type: nftables.ChainTypeFilter, Device: link,
		Hooknum: nftables.ChainHookIngress, Priority: &priority, Policy: &policy,
	}
}

// ReadIngressDrop tells whether the chain of this link is there and drops.
func ReadIngressDrop(d hostplan.IngressDrop) ([]hostplan.Item, error) {
	chain, _, err := findIngressChain(d.Link)
	if err != nil || chain == nil || !sameChain(chain, ingressDropChain(d.Link)) {
		return nil, err
	}
	return []hostplan.Item{d}, nil
}

// findIngressChain finds the chain of this link, and tells how many others the
// table has.
func findIngressChain(link string) (chain *nftables.Chain, others int, err error) {
	c, err := nftables.New()
	if err != nil {
		return nil, 0, fmt.Errorf("opening nftables: %w", err)
	}
	chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyNetdev)
	if err != nil {
		return nil, 0, fmt.Errorf("reading nftables chains: %w", err)
	}
	for _, ch := range chains {
		switch {
		case ch.Table.Name != names.NFTable:
		case ch.Name == ingressChain(link):
			chain = ch
		default:
			others++
		}
	}
	return chain, others, nil
}

// SetIngressDrop makes the link's chain anew, or removes it, and the table
// with the last one; in one transaction.
func SetIngressDrop(d hostplan.IngressDrop, remove bool) error {
	old, others, err := findIngressChain(d.Link)
	if err != nil {
		return err
	}
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening nftables: %w", err)
	}
	table := c.AddTable(ingressTable())
	if old != nil {
		c.FlushChain(old)
		c.DelChain(old)
	}
	if !remove {
		c.AddChain(ingressDropChain(d.Link))
	} else if others == 0 {
		c.DelTable(table)
	}
	if err := c.Flush(); err != nil && (!remove || !errors.Is(err, os.ErrNotExist)) {
		return fmt.Errorf("writing nftables: %w", err)
	}
	return nil
}
