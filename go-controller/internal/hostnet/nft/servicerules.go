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
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// The chains of service ports in our table.
const (
	serviceInChain   = "service-in"   // what comes to this node
	serviceOutChain  = "service-out"  // what this node itself sends
	serviceMasqChain = "service-masq" // gives it the management port's address
)

// serviceRules lists the rules. Their number does not depend on the number of services.
// Pods of other nodes, which are not in own, count as outside, although they come
// through the link. The answers of this node's pods would go straight to them, so their
// connections get the link's address as the source. This node's own connections to
// other nodes keep their source.
//
// A policy lets pods reach their own node at the management port's address. So this node's pods find no node ports
// there, through which they would get past the policy.
func serviceRules(n hostplan.ServiceNode) (out []rule) {
	link := n.Link
	for _, chain := range []string{serviceInChain, serviceOutChain} {
		for _, f := range families() {
			add := func(about string, parts ...[]expr.Any) {
				exprs := f.match()
				for _, p := range parts {
					exprs = append(exprs, p...)
				}
				out = append(out, rule{chain, about + " ipv" + f.suffix + ifname + link, exprs})
			}
			drop := []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}
			in := func(kind hostplan.ServiceEntryKind, ports bool) serviceSet { return serviceSet{kind, ports, f} }
			if chain == serviceOutChain {
				add("what this node uses", in(hostplan.ExemptEntry, false).contains(true),
					[]expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}})
			}
			add("other sources", in(hostplan.LimitEntry, false).contains(true), in(hostplan.AllowEntry, false).contains(false),
				drop)
			outside := iif(expr.CmpOpNeq, link)
			if chain == serviceInChain {
				for _, p := range ofFamily(n.Own, f) {
					add("from this node's pods to the management port", iif(expr.CmpOpEq, link), toRange(p, f.source),
						toRange(p, f.offset), []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}})
				}
				for _, kind := range localKinds() {
					add("from outside to addresses, "+string(kind), outside, in(kind, false).dnat())
				}
				add("not from inside", outside, in(hostplan.InsideEntry, false).contains(true), drop)
			}
			add("addresses", in(hostplan.ServeEntry, false).dnat())
			if chain == serviceInChain {
				foreign := fromOtherPods(link, n.Own, f)
				for _, kind := range localKinds() {
					add("from outside to node ports, "+string(kind), outside, notTo(f.loopback, f.offset), toThisNode(),
						in(kind, true).dnat())
					if foreign != nil {
						add("from other nodes' pods to node ports, "+string(kind), foreign, toThisNode(), in(kind, true).dnat())
					}
				}
				add("not from inside to node ports", outside, toThisNode(), in(hostplan.InsideEntry, true).contains(true), drop)
				if foreign != nil {
					add("not from other nodes' pods to node ports", foreign, toThisNode(),
						in(hostplan.InsideEntry, true).contains(true), drop)
				}
			}
			if chain == serviceOutChain {
				for _, kind := range remoteKinds() {
					add("own node ports, "+string(kind), notTo(f.loopback, f.offset), toThisNode(), in(kind, true).dnat())
				}
			}
			add("node ports", notTo(f.loopback, f.offset), toThisNode(), in(hostplan.ServeEntry, true).dnat())
		}
	}
	return append(out, addressRules(n)...)
}

// addressRules give connections to services and hostPorts the link's address as the source where the answers would not
// come back otherwise. What this node only forwards gets a port of names.SNATPorts.
func addressRules(n hostplan.ServiceNode) (out []rule) {
	link, own := n.Link, []expr.Any{&expr.Masq{}}
	for _, r := range n.Ranges {
		out = append(out,
			rule{serviceMasqChain, r.String() + fromThisNode + ifname + link, masqueradeService(r, link, ownSource(), own)},
			rule{serviceMasqChain, r.String() + ifname + link, masqueradeService(r, link, nil, forwarded(n, r))})
	}
	for _, pods := range n.Own {
		hostPorts := pods.String() + " as portmap marks it"
		out = append(out, rule{serviceMasqChain, hostPorts + fromThisNode + ifname + link,
			masqueradeService(pods, link, append(portmapMark(), ownSource()...), own)})
		for _, all := range n.Pods {
			if pods.Addr().Is4() == all.Addr().Is4() {
				source := toRange(all, familyOf(all.Addr()).source)
				out = append(out, rule{serviceMasqChain, pods.String() + fromPods + all.String() + ifname + link,
					masqueradeService(pods, link, source, forwarded(n, pods))})
			}
		}
		out = append(out, rule{serviceMasqChain, hostPorts + ifname + link,
			masqueradeService(pods, link, portmapMark(), forwarded(n, pods))})
	}
	return out
}

// fromThisNode stands in what a rule is about that is for the node's own connections.
const fromThisNode = " from this node"

// ownSource is "fib saddr type local" (nft(8)).
func ownSource() []expr.Any {
	return []expr.Any{&expr.Fib{Register: 1, FlagSADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)}}
}

// portmapMasqueradeBit is what CNI's portmap sets in the mark of packets to a hostPort, to masquerade them later (its
// option markMasqBit, by default 13).
const portmapMasqueradeBit = 1 << 13

// portmapMark is "meta mark and 0x2000 != 0".
func portmapMark() []expr.Any {
	mask := binaryutil.NativeEndian.PutUint32(portmapMasqueradeBit)
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)}}
}

// forwarded is "snat to ADDRESS:10240-29999" (nft(8)), with the management port's address of to's family. Without one
// the node has no pods of the family, and it is "masquerade". The library can't say "masquerade to :10240-29999": it
// leaves out NF_NAT_RANGE_PROTO_SPECIFIED, and the kernel then ignores the ports.
func forwarded(n hostplan.ServiceNode, to netip.Prefix) []expr.Any {
	for _, own := range ofFamily(n.Own, familyOf(to.Addr())) {
		address, ok := subnet.Management(own)
		if !ok {
			continue
		}
		return []expr.Any{
			&expr.Immediate{Register: 1, Data: address.AsSlice()},
			&expr.Immediate{Register: 2, Data: binaryutil.BigEndian.PutUint16(names.FirstSNATPort)},
			&expr.Immediate{Register: 3, Data: binaryutil.BigEndian.PutUint16(names.LastSNATPort)},
			&expr.NAT{Type: expr.NATTypeSourceNAT, Family: uint32(familyOf(address).nfproto), RegAddrMin: 1, RegProtoMin: 2,
				RegProtoMax: 3},
		}
	}
	return []expr.Any{&expr.Masq{}}
}

// fromPods stands between the subnets in what a rule is about that masquerades
// what pods send to pods of this node.
const fromPods = " from pods of "

// betweenPods reads the subnets from what such a rule is about.
func betweenPods(about string) (pods, own netip.Prefix, ok bool) {
	to, from, _ := strings.Cut(about, fromPods)
	own, err1 := netip.ParsePrefix(to)
	pods, err2 := netip.ParsePrefix(from)
	return pods, own, err1 == nil && err2 == nil
}

// fromOtherPods matches packets through the link from outside a family's subnets; nil
// without subnets.
func fromOtherPods(link string, own []netip.Prefix, f family) []expr.Any {
	var out []expr.Any
	for _, p := range ofFamily(own, f) {
		out = append(out, notTo(p, f.source)...)
	}
	if out == nil {
		return nil
	}
	return append(iif(expr.CmpOpEq, link), out...)
}

func ofFamily(prefixes []netip.Prefix, f family) []netip.Prefix {
	other := func(p netip.Prefix) bool { return familyOf(p.Addr()).nfproto != f.nfproto }
	return slices.DeleteFunc(slices.Clone(prefixes), other)
}

// ifname stands for nft's "iifname" or "oifname" in what a rule is about, before the
// interface.
const ifname = " through "

// statusDNAT is IPS_DST_NAT (linux/netfilter/nf_conntrack_common.h).
const statusDNAT = 1 << 5

// masqueradeService is "ip daddr RANGE oifname LINK ct status dnat" (nft(8)) and masquerade: only connections that a
// rule sent to a ClusterIP, or to a pod, match both. further is what else must match.
func masqueradeService(r netip.Prefix, link string, further, masquerade []expr.Any) []expr.Any {
	f := familyOf(r.Addr())
	mask := binaryutil.NativeEndian.PutUint32(statusDNAT)
	return slices.Concat(f.match(), toRange(r, f.offset), further, oif(expr.CmpOpEq, link), []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATUS, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}, masquerade)
}

// serviceChains are the three. The last comes before portmap's own masquerading, whose ports would be those of this
// node's connections.
func serviceChains() []*nftables.Chain {
	nat, beforeNAT := nftables.ChainTypeNAT, nftables.ChainPriorityRef(*nftables.ChainPriorityNATSource-1)
	return []*nftables.Chain{
		ourChain(serviceInChain, nat, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest),
		ourChain(serviceOutChain, nat, nftables.ChainHookOutput, nftables.ChainPriorityNATDest),
		ourChain(serviceMasqChain, nat, nftables.ChainHookPostrouting, beforeNAT),
	}
}

// The numbers of the protocols (IANA, "Protocol Numbers").
func protocolNumber(name string) (byte, error) {
	switch name {
	case "TCP":
		return unix.IPPROTO_TCP, nil
	case "UDP":
		return unix.IPPROTO_UDP, nil
	case "SCTP":
		return unix.IPPROTO_SCTP, nil
	}
	return 0, fmt.Errorf("protocol %q: want TCP, UDP or SCTP", name)
}

func protocolName(number byte) string {
	for _, name := range []string{"TCP", "UDP", "SCTP"} {
		if n, err := protocolNumber(name); err == nil && n == number {
			return name
		}
	}
	return fmt.Sprint("protocol-", number)
}

// serviceNode reads what ServicePorts has besides entries.
func serviceNode(p hostplan.ServicePorts) (n hostplan.ServiceNode, err error) {
	n.Link = p.Link
	for _, f := range []struct {
		list *[]netip.Prefix
		text string
	}{{&n.Ranges, p.Ranges}, {&n.Own, p.Own}, {&n.Pods, p.Pods}} {
		for _, part := range strings.FieldsFunc(f.text, func(r rune) bool { return r == ',' }) {
			prefix, err := netip.ParsePrefix(part)
			if err != nil {
				return n, fmt.Errorf("service ports: %w", err)
			}
			*f.list = append(*f.list, prefix)
		}
	}
	return n, nil
}
