package nft

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// The chains of hostplan.Hairpin in our table.
const (
	hairpinInChain   = "hairpin-in"   // another source for what the node gets back
	hairpinOutChain  = "hairpin-out"  // the right destination for the answers
	hairpinMasqChain = "hairpin-masq" // the node's address for what it forwards
	hairpinUDPChain  = "hairpin-udp"  // the address that UDP servers answer pods from
)

// hairpinChains are the four. The kernel's connection tracking comes after the first
// of them and before the second (netfilter_ipv4.h, enum nf_ip_hook_priorities), so
// it only ever sees the other address.
func hairpinChains() []*nftables.Chain {
	afterServices := nftables.ChainPriorityRef(*nftables.ChainPriorityNATDest + 10)
	return []*nftables.Chain{
		ourChain(hairpinInChain, nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw),
		ourChain(hairpinOutChain, nftables.ChainTypeFilter, nftables.ChainHookPostrouting,
			nftables.ChainPriorityConntrackHelper),
		ourChain(hairpinMasqChain, nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource),
		ourChain(hairpinUDPChain, nftables.ChainTypeNAT, nftables.ChainHookPrerouting, afterServices),
	}
}

// addrSet stands for nft's "saddr set" and "daddr set" in what a rule is about,
// between an address and how others see it.
const addrSet = " as "

// hairpinRules are four for each family.
func hairpinRules(h hostplan.Hairpin) (out []rule) {
	for _, own := range []netip.Addr{h.V4, h.V6} {
		if !own.IsValid() {
			continue
		}
		f, seen := familyOf(own), hostplan.HairpinSource(own)
		about := own.String() + addrSet + seen.String() + ifname + h.Link
		out = append(out,
			rule{hairpinInChain, about, f.rewrite(expr.MetaKeyIIFNAME, h.Link, f.source, own, seen)},
			rule{hairpinOutChain, about, f.rewrite(expr.MetaKeyOIFNAME, h.Link, f.offset, seen, own)},
			rule{hairpinMasqChain, about, leaving(ipnet.Single(seen), h.Link, &expr.Masq{})},
			rule{hairpinUDPChain, about, f.answerable(h.Link, own, seen)})
	}
	return out
}

// answerable is "iifname LINK ip saddr != SEEN meta l4proto udp fib daddr type local
// socket wildcard 1 dnat to OWN" (nft(8)). A UDP server that listens at all addresses
// lets the kernel choose the address of its answers. To pods the kernel chooses OWN. A
// pod that asked another address would not take such an answer. So its question is sent
// to OWN, and connection tracking translates the answer back.
func (f family) answerable(link string, own, seen netip.Addr) []expr.Any {
	exprs := append(slices.Concat(f.match(), iif(expr.CmpOpEq, link)),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.source, Len: f.size},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: seen.AsSlice()},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_UDP}})
	exprs = append(exprs, toThisNode()...)
	return append(exprs,
		&expr.Socket{Key: expr.SocketKeyWildcard, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{1}},
		&expr.Immediate{Register: 1, Data: own.AsSlice()},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.nfproto), RegAddrMin: 1})
}

// rewrite is "iifname LINK ip saddr FROM ip saddr set TO" (nft(8)), or its like
// for the other direction and family; at is the address's offset in the header.
//
// The checksum of TCP, UDP or ICMPv6 follows from CsumFlags, which this library
// leaves out unless a checksum of the header is named too. IPv6 has none: what
// is named there is the address itself, which is written after it.
func (f family) rewrite(ifname expr.MetaKey, link string, at uint32, from, to netip.Addr) []expr.Any {
	checksum := uint32(10) // RFC 791 section 3.1
	if from.Is6() {
		checksum = at
	}
	return append(slices.Concat(f.match(), atInterface(ifname, expr.CmpOpEq, link)),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: at, Len: f.size},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: from.AsSlice()},
		&expr.Immediate{Register: 1, Data: to.AsSlice()},
		&expr.Payload{
			OperationType: expr.PayloadWrite, SourceRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: at, Len: f.size,
			CsumType: expr.CsumTypeInet, CsumOffset: checksum, CsumFlags: unix.NFT_PAYLOAD_L4CSUM_PSEUDOHDR,
		})
}

// readHairpin reads the chains. When they are not as this version writes them, the
// link is "", so that all is made anew.
func readHairpin() ([]hostplan.Item, error) {
	have, ok, err := readRules(hairpinChains())
	if !ok || err != nil {
		return nil, err
	}
	var h hostplan.Hairpin
	for _, about := range have.abouts() {
		addrs, link, _ := strings.Cut(about, ifname)
		own, _, _ := strings.Cut(addrs, addrSet)
		if a, err := netip.ParseAddr(own); err == nil && a.Is4() {
			h.V4 = a
		} else if err == nil {
			h.V6 = a
		}
		h.Link = link
	}
	if !have.exactly(hairpinRules(h)) {
		return []hostplan.Item{hostplan.Hairpin{}}, nil
	}
	return []hostplan.Item{h}, nil
}
