package nft

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

const natChain = "postrouting"

// guardChain drops packets that natChain should have masqueraded and did not: NAT does
// not translate packets that conntrack finds invalid. Replies on connections to a pod's
// own address pass: the client knows the pod by that address.
const guardChain = "masqueraded-only"

// answersRule is what the first rule of guardChain is about.
const answersRule = "answers"

// oifnameNot stands for nft's "oifname !=" in what a rule is about, between subnet
// and interface.
const oifnameNot = " unless through "

// masqueradeChains are the two; guardChain comes after NAT has had its turn.
func masqueradeChains() []*nftables.Chain {
	nat, afterNAT := nftables.ChainPriorityNATSource, nftables.ChainPriorityRef(*nftables.ChainPriorityNATSource+1)
	return []*nftables.Chain{
		ourChain(natChain, nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nat),
		ourChain(guardChain, nftables.ChainTypeFilter, nftables.ChainHookPostrouting, afterNAT),
	}
}

func masqueradeRules(m hostplan.Masquerade) []rule {
	out := []rule{{guardChain, answersRule, answer()}}
	for _, p := range []netip.Prefix{m.V4, m.V6} {
		if p.IsValid() {
			about := p.String() + oifnameNot + m.Except
			out = append(out, rule{natChain, about, leaving(p, m.Except, &expr.Masq{})},
				rule{guardChain, about, leaving(p, m.Except, &expr.Verdict{Kind: expr.VerdictDrop})})
		}
	}
	return out
}

// readMasquerade reads the chains. When they are not as this version writes them, or
// the table has chains that are not ours, the result is an unknown item, so that all
// is made anew.
func readMasquerade() ([]hostplan.Item, error) {
	have, ok, err := readRules(masqueradeChains())
	if err != nil {
		return nil, err
	}
	unknown := []hostplan.Item{hostplan.Masquerade{Except: "what somebody has put there"}}
	for name := range have.chains {
		if !isOurChain(name) {
			return unknown, nil
		}
	}
	if !ok {
		return nil, nil
	}
	var m hostplan.Masquerade
	for _, about := range have.abouts() {
		subnet, except, _ := strings.Cut(about, oifnameNot)
		if p, err := netip.ParsePrefix(subnet); err == nil && p.Addr().Is4() {
			m.V4, m.Except = p, except
		} else if err == nil {
			m.V6, m.Except = p, except
		}
	}
	if !have.exactly(masqueradeRules(m)) {
		return unknown, nil
	}
	return []hostplan.Item{m}, nil
}

// leaving is "meta nfproto ipv4 ip saddr SUBNET oifname != EXCEPT" (nft(8)), or the
// same for IPv6, and a statement.
func leaving(subnet netip.Prefix, except string, then expr.Any) []expr.Any {
	f := familyOf(subnet.Addr())
	return slices.Concat(f.match(), toRange(subnet, f.source), oif(expr.CmpOpNeq, except), []expr.Any{then})
}

// answer is "ct direction reply accept" (nft(8)). It does not match packets without a
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
