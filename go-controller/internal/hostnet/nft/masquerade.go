package nft

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

const natChain = "postrouting"

// guardChain drops what natChain was to masquerade and did not: NAT takes no
// packet that conntrack can't make out. What answers a connection that came to a
// pod's own address, whatever its route, is none of that: who began it knows the
// pod by that address.
const guardChain = "masqueraded-only"

// answersRule is the comment of the first rule of guardChain.
const answersRule = "answers"

func masqueradeChains() []string { return []string{natChain, guardChain} }

// unless stands between subnet and interface in a rule's comment.
const unless = " unless through "

// readMasquerade reads our table's masquerade chains. Each rule carries what it
// is for as its comment; a chain that has anything else in it is read as an
// unknown one, so that it is made anew, and so is one beside which the table has
// chains that are not ours.
func readMasquerade() ([]hostplan.Item, error) {
	c, chains, err := openTable()
	if err != nil {
		return nil, err
	}
	unknown := []hostplan.Item{hostplan.Masquerade{Except: "what somebody has put there"}}
	for name := range chains {
		if !isOurChain(name) {
			return unknown, nil
		}
	}
	if chains[natChain] == nil && chains[guardChain] == nil {
		return nil, nil
	}
	var both []hostplan.Masquerade
	for _, want := range []*nftables.Chain{natChainIn(ourTable()), guardChainIn(ourTable())} {
		chain := chains[want.Name]
		if chain == nil || !sameChain(chain, want) {
			return unknown, nil
		}
		rules, err := c.GetRules(ourTable(), chain)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading nftables rules: %w", err)
		}
		if want.Name == guardChain {
			if len(rules) == 0 || ruleComment(rules[0]) != answersRule || len(rules[0].Exprs) != len(answer()) {
				return unknown, nil
			}
			rules = rules[1:]
		}
		m, ok := masqueradeOf(rules)
		if !ok {
			return unknown, nil
		}
		both = append(both, m)
	}
	if both[0] != both[1] {
		return unknown, nil
	}
	return []hostplan.Item{both[0]}, nil
}

// masqueradeOf is what the rules of one of the two chains are for; false when
// one of them is not ours.
func masqueradeOf(rules []*nftables.Rule) (m hostplan.Masquerade, ok bool) {
	for _, r := range rules {
		subnet, except, _ := strings.Cut(ruleComment(r), unless)
		p, err := netip.ParsePrefix(subnet)
		switch {
		case err != nil || len(r.Exprs) != ruleLength:
			return m, false
		case p.Addr().Is4():
			m.V4 = p
		default:
			m.V6 = p
		}
		m.Except = except
	}
	return m, true
}

func natChainIn(t *nftables.Table) *nftables.Chain {
	return &nftables.Chain{Name: natChain, Table: t, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource}
}

// guardChainIn comes after NAT has had its turn.
func guardChainIn(t *nftables.Table) *nftables.Chain {
	return &nftables.Chain{Name: guardChain, Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityRef(*nftables.ChainPriorityNATSource + 1)}
}

// applyMasquerade makes our table's masquerade chains anew, or removes them, and
// the table with the last chain; in one transaction. Chains that are not ours go.
func applyMasquerade(m hostplan.Masquerade, remove bool) error {
	c, chains, err := openTable()
	if err != nil {
		return err
	}
	table := c.AddTable(ourTable())
	removeChains(c, chains, slices.DeleteFunc(slices.Collect(maps.Keys(chains)), func(name string) bool {
		return !slices.Contains(masqueradeChains(), name) && isOurChain(name)
	}))
	if !remove {
		nat, guard := c.AddChain(natChainIn(table)), c.AddChain(guardChainIn(table))
		c.AddRule(&nftables.Rule{Table: table, Chain: guard, Exprs: answer(), UserData: userdata.AppendString(nil, userdata.TypeComment, answersRule)})
		for _, p := range []netip.Prefix{m.V4, m.V6} {
			if !p.IsValid() {
				continue
			}
			comment := userdata.AppendString(nil, userdata.TypeComment, p.String()+unless+m.Except)
			c.AddRule(&nftables.Rule{Table: table, Chain: nat, Exprs: leaving(p, m.Except, &expr.Masq{}), UserData: comment})
			c.AddRule(&nftables.Rule{Table: table, Chain: guard, Exprs: leaving(p, m.Except, &expr.Verdict{Kind: expr.VerdictDrop}), UserData: comment})
		}
	} else if len(chains) == 0 {
		c.DelTable(table)
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("writing nftables: %w", err)
	}
	return nil
}

// ruleLength is the number of expressions in leaving's rule.
const ruleLength = 8

// leaving is "meta nfproto ipv4 ip saddr SUBNET oifname != EXCEPT" (nft(8)), or
// its like for IPv6, and what is to be done then.
func leaving(subnet netip.Prefix, except string, then expr.Any) []expr.Any {
	family, offset := byte(unix.NFPROTO_IPV4), uint32(12) // RFC 791 section 3.1
	if subnet.Addr().Is6() {
		family, offset = unix.NFPROTO_IPV6, 8 // RFC 8200 section 3
	}
	size := uint32(subnet.Addr().BitLen() / 8)
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{family}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: net.CIDRMask(subnet.Bits(), subnet.Addr().BitLen()), Xor: make([]byte, size)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: subnet.Masked().Addr().AsSlice()},
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: interfaceName(except)},
		then,
	}
}

// answer is "ct direction reply accept" (nft(8)). It does not match what has no
// connection.
func answer() []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeyDIRECTION, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{directionReply}},
		&expr.Verdict{Kind: expr.VerdictAccept},
	}
}

// directionReply is IP_CT_DIR_REPLY of linux/netfilter/nf_conntrack_tuple_common.h.
const directionReply = 1
