package hostnet

import (
	"context"
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
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
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

// watchNFTables calls changed for every change of our table or in it; see Watch.
func watchNFTables(ctx context.Context, changed func(), lost func(error)) error {
	socket, err := nl.Subscribe(unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, socket.Close)
	go func() {
		for {
			messages, _, err := socket.Receive()
			if errors.Is(err, unix.ENOBUFS) { // more changes at once than there is room for
				changed()
				continue
			}
			if err != nil {
				if ctx.Err() == nil {
					lost(fmt.Errorf("receiving nftables events: %w", err))
				}
				return
			}
			for _, m := range messages {
				if m.Header.Type>>8 == unix.NFNL_SUBSYS_NFTABLES && tableName(m.Data) == names.NFTable {
					changed()
				}
			}
		}
	}()
	return nil
}

// nfgenmsgSize is the size of struct nfgenmsg (linux/netfilter/nfnetlink.h).
const nfgenmsgSize = 4

// tableName is the table that an nftables message is about. After the header
// (struct nfgenmsg) it is the attribute of number 1 of tables, chains,
// rules and sets alike (linux/netfilter/nf_tables.h).
func tableName(message []byte) string {
	if len(message) < nfgenmsgSize {
		return ""
	}
	attrs, err := nl.ParseRouteAttr(message[nfgenmsgSize:])
	if err != nil {
		return ""
	}
	for _, a := range attrs {
		if a.Attr.Type == unix.NFTA_TABLE_NAME {
			return strings.TrimRight(string(a.Value), "\x00")
		}
	}
	return ""
}
