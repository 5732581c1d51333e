package nft

import (
	"fmt"
	"net"
	"net/netip"
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

// serviceFamily is what differs between IPv4 and IPv6 in a rule.
type serviceFamily struct {
	suffix   string // of set names
	nfproto  byte
	offset   uint32 // of the destination address in the IP header (RFC 791 section 3.1, RFC 8200 section 3)
	source   uint32 // of the source address
	size     uint32 // of an address, bytes
	addrType nftables.SetDatatype
	loopback netip.Prefix
}

func serviceFamilies() []serviceFamily {
	return []serviceFamily{
		{"4", unix.NFPROTO_IPV4, 16, 12, 4, nftables.TypeIPAddr, netip.MustParsePrefix("127.0.0.0/8")},
		{"6", unix.NFPROTO_IPV6, 24, 8, 16, nftables.TypeIP6Addr, netip.MustParsePrefix("::1/128")},
	}
}

func serviceFamilyOf(a netip.Addr) serviceFamily {
	if a.Is4() {
		return serviceFamilies()[0]
	}
	return serviceFamilies()[1]
}

// serviceSet is a set or map of entries of one kind and family. Its key is, in
// this order, without what is not in it: destination address, protocol, port,
// bucket, source address.
type serviceSet struct {
	kind   hostplan.ServiceEntryKind
	ports  bool // of node ports: no destination address
	family serviceFamily
}

func serviceSets() (out []serviceSet) {
	for _, f := range serviceFamilies() {
		for _, kind := range append(localKinds(), hostplan.ServeEntry, hostplan.InsideEntry) {
			out = append(out, serviceSet{kind, true, f}, serviceSet{kind, false, f})
		}
		for _, kind := range awayKinds() {
			out = append(out, serviceSet{kind, true, f})
		}
		out = append(out, serviceSet{hostplan.LimitEntry, false, f}, serviceSet{hostplan.AllowEntry, false, f})
	}
	return out
}

// localKinds are the kinds of entries that lead to endpoints of this node.
func localKinds() []hostplan.ServiceEntryKind {
	return []hostplan.ServiceEntryKind{hostplan.LocalEntry, hostplan.ShareEntry, hostplan.StickEntry}
}

// awayKinds are the kinds of entries that lead to other nodes.
func awayKinds() []hostplan.ServiceEntryKind {
	return []hostplan.ServiceEntryKind{hostplan.AwayEntry, hostplan.AwayShareEntry, hostplan.AwayStickEntry}
}

// serviceSetOf is the set that an entry is in.
func serviceSetOf(e hostplan.ServiceEntry) serviceSet {
	return serviceSet{e.Kind, e.At.Addr().IsUnspecified(), serviceFamilyOf(e.At.Addr())}
}

// name is such as "serve-ports4" or "allow-addrs6".
func (s serviceSet) name() string {
	if s.ports {
		return string(s.kind) + "-ports" + s.family.suffix
	}
	return string(s.kind) + "-addrs" + s.family.suffix
}

func (s serviceSet) set(table *nftables.Table) *nftables.Set {
	key := []nftables.SetDatatype{nftables.TypeInetProto, nftables.TypeInetService}
	if !s.ports {
		key = append([]nftables.SetDatatype{s.family.addrType}, key...)
	}
	out := &nftables.Set{Table: table, Name: s.name(), Concatenation: true}
	if s.kind.Leads() {
		out.IsMap, out.DataType = true, nftables.MustConcatSetType(s.family.addrType, nftables.TypeInetService)
	}
	if s.kind.HasBuckets() {
		key = append(key, nftables.TypeMark) // a number as the processor has it, like what numgen and hash make
	}
	if s.kind.HasFrom() {
		key = append(key, s.family.addrType)
	}
	out.Interval = s.kind == hostplan.AllowEntry // the others' are single addresses
	out.KeyType = nftables.MustConcatSetType(key...)
	return out
}

// Registers of 4 bytes each (linux/netfilter/nf_tables.h, NFT_REG32_00).
const firstRegister = unix.NFT_REG32_00

// key loads a packet's key.
func (s serviceSet) key() []expr.Any {
	reg := uint32(firstRegister)
	var out []expr.Any
	if !s.ports {
		out = append(out, &expr.Payload{DestRegister: reg, Base: expr.PayloadBaseNetworkHeader, Offset: s.family.offset, Len: s.family.size})
		reg += s.family.size / 4
	}
	out = append(out, &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg},
		&expr.Payload{DestRegister: reg + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})
	reg += 2
	source := func(reg uint32) expr.Any {
		return &expr.Payload{DestRegister: reg, Base: expr.PayloadBaseNetworkHeader, Offset: s.family.source, Len: s.family.size}
	}
	buckets := uint32(s.kind.Buckets())
	switch s.kind {
	case hostplan.AllowEntry, hostplan.AwayEntry:
		out = append(out, source(reg))
	case hostplan.ShareEntry, hostplan.AwayShareEntry:
		out = append(out, &expr.Numgen{Register: reg, Modulus: buckets, Type: unix.NFT_NG_RANDOM})
		if s.kind.HasFrom() {
			out = append(out, source(reg+1))
		}
	case hostplan.StickEntry, hostplan.AwayStickEntry:
		out = append(out, source(reg+1), &expr.Hash{
			SourceRegister: reg + 1, DestRegister: reg, Length: s.family.size, Modulus: buckets, Seed: bucketSeed, Type: expr.HashTypeJenkins,
		})
	}
	return out
}

// bucketSeed has every node and every rule put a client into the same bucket.
const bucketSeed = 1

// contains matches packets whose key is in the set, or is not.
func (s serviceSet) contains(yes bool) []expr.Any {
	return append(s.key(), &expr.Lookup{SourceRegister: firstRegister, SetName: s.name(), Invert: !yes})
}

// dnat sends packets where the map says.
func (s serviceSet) dnat() []expr.Any {
	return append(s.key(), &expr.Lookup{SourceRegister: firstRegister, DestRegister: firstRegister, IsDestRegSet: true, SetName: s.name()},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(s.family.nfproto), RegAddrMin: firstRegister, RegProtoMin: firstRegister + s.family.size/4})
}

// serviceRule is a rule of one of the chains; about is its comment.
type serviceRule struct {
	chain, about string
	exprs        []expr.Any
}

// serviceRules lists the rules, as many whatever the number of services. Pods of
// other nodes, which are not in own, come from outside like all that does not
// come through the link; but as they do, and as the answers of this node's pods
// would go straight to them, they get the link's address as their source. What
// this node sends to itself and is led to another node keeps its source.
func serviceRules(n hostplan.ServiceNode) (out []serviceRule) {
	link := n.Link
	for _, chain := range []string{serviceInChain, serviceOutChain} {
		for _, f := range serviceFamilies() {
			add := func(about string, parts ...[]expr.Any) {
				exprs := []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{f.nfproto}}}
				for _, p := range parts {
					exprs = append(exprs, p...)
				}
				out = append(out, serviceRule{chain, about + " ipv" + f.suffix + through + link, exprs})
			}
			drop := []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}
			in := func(kind hostplan.ServiceEntryKind, ports bool) serviceSet { return serviceSet{kind, ports, f} }
			add("other sources", in(hostplan.LimitEntry, false).contains(true), in(hostplan.AllowEntry, false).contains(false), drop)
			outside := from(link, expr.CmpOpNeq)
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
					add("from outside to node ports, "+string(kind), outside, notTo(f.loopback, f.offset), toThisNode(), in(kind, true).dnat())
					if foreign != nil {
						add("from other nodes' pods to node ports, "+string(kind), foreign, toThisNode(), in(kind, true).dnat())
					}
				}
				add("not from inside to node ports", outside, toThisNode(), in(hostplan.InsideEntry, true).contains(true), drop)
				if foreign != nil {
					add("not from other nodes' pods to node ports", foreign, toThisNode(), in(hostplan.InsideEntry, true).contains(true), drop)
				}
			}
			if chain == serviceOutChain {
				for _, kind := range awayKinds() {
					add("own node ports, "+string(kind), notTo(f.loopback, f.offset), toThisNode(), in(kind, true).dnat())
				}
			}
			add("node ports", notTo(f.loopback, f.offset), toThisNode(), in(hostplan.ServeEntry, true).dnat())
		}
	}
	for _, r := range n.Ranges {
		out = append(out, serviceRule{serviceMasqChain, r.String() + through + link, masqueradeService(r, link, nil)})
	}
	for _, own := range n.Own {
		for _, all := range n.Pods {
			if own.Addr().Is4() == all.Addr().Is4() {
				source := toRange(all, serviceFamilyOf(all.Addr()).source)
				out = append(out, serviceRule{serviceMasqChain, own.String() + fromPods + all.String() + through + link, masqueradeService(own, link, source)})
			}
		}
	}
	return out
}

// fromPods stands between the subnets in what a rule is about that masquerades
// what pods send to pods of this node.
const fromPods = " from pods of "

// betweenPods reads such a rule's subnets.
func betweenPods(about string) (pods, own netip.Prefix, ok bool) {
	to, from, _ := strings.Cut(about, fromPods)
	own, err1 := netip.ParsePrefix(to)
	pods, err2 := netip.ParsePrefix(from)
	return pods, own, err1 == nil && err2 == nil
}

// fromOtherPods matches what comes through the link and is in none of the
// subnets of a family; nil when there are none to tell by.
func fromOtherPods(link string, own []netip.Prefix, f serviceFamily) []expr.Any {
	var out []expr.Any
	for _, p := range own {
		if serviceFamilyOf(p.Addr()).nfproto == f.nfproto {
			out = append(out, notTo(p, f.source)...)
		}
	}
	if out == nil {
		return nil
	}
	return append(from(link, expr.CmpOpEq), out...)
}

// through stands between what a rule is about and the interface.
const through = " through "

// from matches packets that came in through an interface, or with CmpOpNeq
// through any other.
func from(link string, op expr.CmpOp) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: interfaceName(link)}}
}

// toThisNode is "fib daddr type local".
func toThisNode() []expr.Any {
	return []expr.Any{&expr.Fib{Register: 1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)}}
}

func notTo(p netip.Prefix, offset uint32) []expr.Any {
	exprs := toRange(p, offset)
	exprs[len(exprs)-1].(*expr.Cmp).Op = expr.CmpOpNeq
	return exprs
}

// toRange matches packets to an address, at offset of the IP header, in p.
func toRange(p netip.Prefix, offset uint32) []expr.Any {
	size := uint32(p.Addr().BitLen() / 8)
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()), Xor: make([]byte, size)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: p.Masked().Addr().AsSlice()},
	}
}

// statusDNAT is IPS_DST_NAT (linux/netfilter/nf_conntrack_common.h).
const statusDNAT = 1 << 5

// masqueradeService is "ip daddr RANGE oifname LINK ct status dnat masquerade":
// only what was sent to a ClusterIP by a rule, as nothing else has both. further
// is what else must match.
func masqueradeService(r netip.Prefix, link string, further []expr.Any) []expr.Any {
	f := serviceFamilyOf(r.Addr())
	mask := binaryutil.NativeEndian.PutUint32(statusDNAT)
	out := []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{f.nfproto}}}
	out = append(out, toRange(r, f.offset)...)
	out = append(out, further...)
	return append(out,
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: interfaceName(link)},
		&expr.Ct{Key: expr.CtKeySTATUS, Register: 1}, &expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)}, &expr.Masq{})
}

func interfaceName(link string) []byte {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, link)
	return name
}

// serviceChain is the chain of this name.
func serviceChain(table *nftables.Table, name string) *nftables.Chain {
	c := &nftables.Chain{Name: name, Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest}
	switch name {
	case serviceOutChain:
		c.Hooknum = nftables.ChainHookOutput
	case serviceMasqChain:
		c.Hooknum, c.Priority = nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource
	}
	return c
}

func serviceChains() []string { return []string{serviceInChain, serviceOutChain, serviceMasqChain} }

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
