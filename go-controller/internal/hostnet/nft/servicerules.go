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
	for _, r := range n.Ranges {
		out = append(out, rule{serviceMasqChain, r.String() + ifname + link, masqueradeService(r, link, nil)})
	}
	for _, own := range n.Own {
		for _, all := range n.Pods {
			if own.Addr().Is4() == all.Addr().Is4() {
				source := toRange(all, familyOf(all.Addr()).source)
				out = append(out, rule{serviceMasqChain, own.String() + fromPods + all.String() + ifname + link,
					masqueradeService(own, link, source)})
			}
		}
	}
	return out
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
	for _, p := range own {
		if familyOf(p.Addr()).nfproto == f.nfproto {
			out = append(out, notTo(p, f.source)...)
		}
	}
	if out == nil {
		return nil
	}
	return append(iif(expr.CmpOpEq, link), out...)
}

// ifname stands for nft's "iifname" or "oifname" in what a rule is about, before the
// interface.
const ifname = " through "

// statusDNAT is IPS_DST_NAT (linux/netfilter/nf_conntrack_common.h).
const statusDNAT = 1 << 5

// masqueradeService is "ip daddr RANGE oifname LINK ct status dnat masquerade"
// (nft(8)): only connections that a rule sent to a ClusterIP match both. further is
// what else must match.
func masqueradeService(r netip.Prefix, link string, further []expr.Any) []expr.Any {
	f := familyOf(r.Addr())
	mask := binaryutil.NativeEndian.PutUint32(statusDNAT)
	out := slices.Concat(f.match(), toRange(r, f.offset), further, oif(expr.CmpOpEq, link))
	return append(out,
		&expr.Ct{Key: expr.CtKeySTATUS, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)}, &expr.Masq{})
}

func serviceChains() []*nftables.Chain {
	nat := nftables.ChainTypeNAT
	return []*nftables.Chain{
		ourChain(serviceInChain, nat, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest),
		ourChain(serviceOutChain, nat, nftables.ChainHookOutput, nftables.ChainPriorityNATDest),
		ourChain(serviceMasqChain, nat, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource),
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
