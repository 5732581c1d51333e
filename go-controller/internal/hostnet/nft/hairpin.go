package nft

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// The chains of hostplan.Hairpin in our table.
const (
	hairpinInChain   = "hairpin-in"   // another source for what the node gets back
	hairpinOutChain  = "hairpin-out"  // the right destination for the answers
	hairpinMasqChain = "hairpin-masq" // the node's address for what it forwards
	hairpinUDPChain  = "hairpin-udp"  // the address that UDP servers answer pods from
)

func hairpinChains() []string {
	return []string{hairpinInChain, hairpinOutChain, hairpinMasqChain, hairpinUDPChain}
}

// hairpinChain is the chain of this name. The kernel's connection tracking comes
// after the first of them and before the second (netfilter_ipv4.h,
// enum nf_ip_hook_priorities), so it only ever sees the other address.
func hairpinChain(table *nftables.Table, name string) *nftables.Chain {
	c := &nftables.Chain{Name: name, Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw}
	switch name {
	case hairpinOutChain:
		c.Hooknum, c.Priority = nftables.ChainHookPostrouting, nftables.ChainPriorityConntrackHelper
	case hairpinMasqChain:
		c.Type, c.Hooknum, c.Priority = nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource
	case hairpinUDPChain: // after what leads to services
		c.Type, c.Priority = nftables.ChainTypeNAT, nftables.ChainPriorityRef(*nftables.ChainPriorityNATDest+10)
	}
	return c
}

// as stands between an address and how others see it in a rule's comment.
const as = " as "

// hairpinRules are four for each family.
func hairpinRules(h hostplan.Hairpin) (out []serviceRule) {
	for _, own := range []netip.Addr{h.V4, h.V6} {
		if !own.IsValid() {
			continue
		}
		f, seen := serviceFamilyOf(own), hairpinSource(own)
		about := own.String() + as + seen.String() + through + h.Link
		out = append(out,
			serviceRule{hairpinInChain, about, f.rewrite(expr.MetaKeyIIFNAME, h.Link, f.source, own, seen)},
			serviceRule{hairpinOutChain, about, f.rewrite(expr.MetaKeyOIFNAME, h.Link, f.offset, seen, own)},
			serviceRule{hairpinMasqChain, about, leaving(netip.PrefixFrom(seen, seen.BitLen()), h.Link, &expr.Masq{})},
			serviceRule{hairpinUDPChain, about, f.answerable(h.Link, own, seen)})
	}
	return out
}

// answerable is "iifname LINK ip saddr != SEEN meta l4proto udp fib daddr type
// local socket wildcard 1 dnat to OWN". A UDP server that listens at all
// addresses leaves it to the kernel from which it answers, and to pods the kernel
// answers from OWN: at another address it is asked in vain, were the question
// not put to OWN, and the answer led back by connection tracking.
func (f serviceFamily) answerable(link string, own, seen netip.Addr) []expr.Any {
	exprs := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{f.nfproto}},
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: interfaceName(link)},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.source, Len: f.size},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: seen.AsSlice()},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_UDP}},
	}
	exprs = append(exprs, toThisNode()...)
	return append(exprs,
		&expr.Socket{Key: expr.SocketKeyWildcard, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{1}},
		&expr.Immediate{Register: 1, Data: own.AsSlice()},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.nfproto), RegAddrMin: 1})
}

// hairpinSource is what stands for own.
func hairpinSource(own netip.Addr) netip.Addr {
	if own.Is4() {
		return netip.MustParseAddr(names.HairpinSource4)
	}
	return netip.MustParseAddr(names.HairpinSource6)
}

// rewrite is "iifname LINK ip saddr FROM ip saddr set TO" (nft(8)), or its like
// for the other direction and family; at is the address's offset in the header.
//
// The checksum of TCP, UDP or ICMPv6 follows from CsumFlags, which this library
// leaves out unless a checksum of the header is named too. IPv6 has none: what
// is named there is the address itself, which is written after it.
func (f serviceFamily) rewrite(through expr.MetaKey, link string, at uint32, from, to netip.Addr) []expr.Any {
	checksum := uint32(10) // RFC 791 section 3.1
	if from.Is6() {
		checksum = at
	}
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{f.nfproto}},
		&expr.Meta{Key: through, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: interfaceName(link)},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: at, Len: f.size},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: from.AsSlice()},
		&expr.Immediate{Register: 1, Data: to.AsSlice()},
		&expr.Payload{
			OperationType: expr.PayloadWrite, SourceRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: at, Len: f.size,
			CsumType: expr.CsumTypeInet, CsumOffset: checksum, CsumFlags: unix.NFT_PAYLOAD_L4CSUM_PSEUDOHDR,
		},
	}
}

// readHairpin reads the chains. When chains or rules are not as this version
// writes them, the link is "", so that all is made anew.
func readHairpin() ([]hostplan.Item, error) {
	c, chains, err := openTable()
	if err != nil {
		return nil, err
	}
	var h hostplan.Hairpin
	have, some := map[string][]*nftables.Rule{}, false
	for _, name := range hairpinChains() {
		if chains[name] == nil {
			continue
		}
		some = true
		if !sameChain(chains[name], hairpinChain(ourTable(), name)) {
			return []hostplan.Item{hostplan.Hairpin{}}, nil
		}
		rules, err := c.GetRules(ourTable(), chains[name])
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("reading nftables rules: %w", err)
		}
		have[name] = rules
		for _, r := range rules {
			about, link, _ := strings.Cut(ruleComment(r), through)
			own, _, _ := strings.Cut(about, as)
			if a, err := netip.ParseAddr(own); err == nil && a.Is4() {
				h.V4 = a
			} else if err == nil {
				h.V6 = a
			}
			h.Link = link
		}
	}
	if !some {
		return nil, nil
	}
	if !exactRules(have, hairpinRules(h)) {
		return []hostplan.Item{hostplan.Hairpin{}}, nil
	}
	return []hostplan.Item{h}, nil
}

// applyHairpin makes the chains anew, or removes them, and the table with the
// last chain; in one transaction.
func applyHairpin(h hostplan.Hairpin, remove bool) error {
	c, chains, err := openTable()
	if err != nil {
		return err
	}
	table := c.AddTable(ourTable())
	removeChains(c, chains, hairpinChains())
	made := map[string]*nftables.Chain{}
	if !remove {
		for _, name := range hairpinChains() {
			made[name] = c.AddChain(hairpinChain(table, name))
		}
		for _, r := range hairpinRules(h) {
			c.AddRule(&nftables.Rule{Table: table, Chain: made[r.chain], Exprs: r.exprs, UserData: userdata.AppendString(nil, userdata.TypeComment, r.about)})
		}
	} else if len(chains) == 0 {
		c.DelTable(table)
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("writing nftables: %w", err)
	}
	return nil
}
