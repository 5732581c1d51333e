package nft

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// The chains of hostplan.AntiSpoof in our table.
const (
	antiSpoofChain     = "anti-spoof"      // drops what arrives with a source within the cluster
	antiSpoofJoinChain = "anti-spoof-join" // drops what leaves for pods with a source on the join switch
)

// antiSpoofChains are the two. The first comes between connection tracking and NAT. The second comes after NAT: most
// packets to services have got the management port's address by then.
func antiSpoofChains() []*nftables.Chain {
	afterNAT := nftables.ChainPriorityRef(*nftables.ChainPriorityNATSource + 1)
	return []*nftables.Chain{
		ourChain(antiSpoofChain, nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityMangle),
		ourChain(antiSpoofJoinChain, nftables.ChainTypeFilter, nftables.ChainHookPostrouting, afterNAT),
	}
}

// What stands between prefix and interface in what a rule is about.
const (
	ownOf    = " own of "
	routedBy = " routed through "
	keptFrom = " kept from "
)

// loopback is the interface of packets that the node sends to itself.
const loopback = "lo"

// antiSpoofRules are one for each prefix, after those of tunnels, and two that accept answers to the node itself. A
// program that is bound to the node's own address gets those of another node's management address through the NIC. The
// other node asks for the NIC's MAC from that address, too. Nobody takes a solicitation that was forwarded (RFC 4861
// section 7.1.1).
func antiSpoofRules(a hostplan.AntiSpoof) (out []rule) {
	for _, port := range []uint16{names.VXLANPort, names.GenevePort} {
		about := fmt.Sprintf("tunnels to port %d from %s", port, a.Link)
		out = append(out, rule{antiSpoofChain, about, tunnels(a.Link, port)})
	}
	out = append(out, rule{antiSpoofChain, answersRule, append(established(), answer()...)},
		rule{antiSpoofChain, "neighbour solicitations", neighbourSolicitation()})
	drop := &expr.Verdict{Kind: expr.VerdictDrop}
	out = append(out, rule{antiSpoofChain, "this node's addresses, not through " + a.Link,
		append(ownFromElsewhere(a.Link), drop)})
	for _, list := range []struct{ prefixes, about string }{{a.Own, ownOf}, {a.Inside, routedBy}} {
		for _, p := range hostplan.Prefixes(list.prefixes) {
			f := familyOf(p.Addr())
			exprs := slices.Concat(f.match(), toRange(p, f.source), iif(expr.CmpOpNeq, a.Link), iif(expr.CmpOpNeq, loopback))
			if list.about == routedBy {
				exprs = append(exprs, answeredThrough(a.Link)...)
			}
			out = append(out, rule{antiSpoofChain, p.String() + list.about + a.Link, append(exprs, drop)})
		}
	}
	for _, p := range hostplan.Prefixes(a.Join) {
		f := familyOf(p.Addr())
		exprs := slices.Concat(f.match(), toRange(p, f.source), oif(expr.CmpOpEq, a.Link))
		out = append(out, rule{antiSpoofJoinChain, p.String() + keptFrom + a.Link, append(exprs, drop)})
	}
	return out
}

// tunnels is "iifname LINK udp dport PORT drop": what pods send to a tunnel's port would leave with the node's address,
// and be taken for the node's own (ADR 0029).
func tunnels(link string, port uint16) []expr.Any {
	return append(iif(expr.CmpOpEq, link),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_UDP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.Verdict{Kind: expr.VerdictDrop})
}

// ownFromElsewhere matches IPv6 packets that arrive at a NIC and have an address of this node as their source. They
// would be taken for the node's own where a policy lets these in. Linux drops such IPv4 packets itself. Duplicate
// address detection needs those of ICMPv6 (RFC 4862 section 5.4).
func ownFromElsewhere(link string) []expr.Any {
	return slices.Concat(familyOf(netip.IPv6Unspecified()).match(),
		iif(expr.CmpOpNeq, link), iif(expr.CmpOpNeq, loopback),
		[]expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte{unix.IPPROTO_ICMPV6}}},
		ownSource())
}

// established is "ct state established".
func established() []expr.Any {
	bit := binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED)
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: bit, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
}

// neighbourSolicitation is "icmpv6 type nd-neighbor-solicit accept".
func neighbourSolicitation() []expr.Any {
	const solicitation = 135 // RFC 4861 section 4.3
	return append(familyOf(netip.IPv6Unspecified()).match(),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_ICMPV6}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{solicitation}},
		&expr.Verdict{Kind: expr.VerdictAccept})
}

// answeredThrough is "fib saddr oifname LINK" (nft(8)): answers to the packet would leave through the link. A network
// outside that is within a range of the cluster has a more specific route, and keeps working as far as it did.
func answeredThrough(link string) []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: 1, FlagSADDR: true, ResultOIFNAME: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: interfaceName(link)},
	}
}

// readAntiSpoof reads the chains. When they are not as this version writes them, the link is "", so that all is made
// anew.
func readAntiSpoof() ([]hostplan.Item, error) {
	have, ok, err := readRules(antiSpoofChains())
	if !ok || err != nil {
		return nil, err
	}
	var a hostplan.AntiSpoof
	lists := map[string][]netip.Prefix{}
	for _, about := range have.abouts() {
		for _, separator := range []string{ownOf, routedBy, keptFrom} {
			prefix, link, is := strings.Cut(about, separator)
			if p, err := netip.ParsePrefix(prefix); is && err == nil {
				lists[separator], a.Link = append(lists[separator], p), link
			}
		}
	}
	a.Own, a.Inside, a.Join = hostplan.PrefixList(lists[ownOf]), hostplan.PrefixList(lists[routedBy]),
		hostplan.PrefixList(lists[keptFrom])
	if !have.exactly(antiSpoofRules(a)) {
		return []hostplan.Item{hostplan.AntiSpoof{}}, nil
	}
	return []hostplan.Item{a}, nil
}
