package nft

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/google/nftables"
)

// OwnTables lists our tables as nft(8) names them: "inet northbound" and "netdev northbound", if they are there.
func OwnTables() ([]string, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("opening nftables: %w", err)
	}
	list, err := c.ListTables()
	if err != nil {
		return nil, fmt.Errorf("reading nftables: %w", err)
	}
	var out []string
	for text, own := range ownTables() {
		for _, t := range list {
			if t.Family == own.Family && t.Name == own.Name {
				out = append(out, text)
			}
		}
	}
	return out, nil
}

// IngressTable is the name of the table that has a chain for each NIC whose packets the kernel drops.
func IngressTable() string { return "netdev " + ingressTable().Name }

// IngressLinks lists the NICs that have a chain in it.
func IngressLinks() (out []string, err error) {
	_, chains, err := openTable(ingressTable())
	for name := range chains {
		if link, ok := strings.CutPrefix(name, ingressPrefix); ok {
			out = append(out, link)
		}
	}
	return out, err
}

// RemoveTable removes one of our tables with all that is in it. It may have gone already.
func RemoveTable(name string) error {
	table, ok := ownTables()[name]
	if !ok {
		return fmt.Errorf("removing nftables' table %q: it is not ours", name)
	}
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening nftables: %w", err)
	}
	c.DelTable(table)
	if err := c.Flush(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing nftables' table %s: %w", name, err)
	}
	return nil
}

func ownTables() map[string]*nftables.Table {
	own, ingress := ourTable(), ingressTable()
	return map[string]*nftables.Table{"inet " + own.Name: own, IngressTable(): ingress}
}
