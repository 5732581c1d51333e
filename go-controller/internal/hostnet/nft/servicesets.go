package nft

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// family is what differs between IPv4 and IPv6 in a rule.
type family struct {
	suffix   string // of set names
	nfproto  byte
	offset   uint32 // of the destination address in the IP header (RFC 791 section 3.1, RFC 8200 section 3)
	source   uint32 // of the source address
	size     uint32 // of an address, bytes
	addrType nftables.SetDatatype
	loopback netip.Prefix
}

func families() []family {
	return []family{
		{"4", unix.NFPROTO_IPV4, 16, 12, 4, nftables.TypeIPAddr, netip.MustParsePrefix("127.0.0.0/8")},
		{"6", unix.NFPROTO_IPV6, 24, 8, 16, nftables.TypeIP6Addr, netip.MustParsePrefix("::1/128")},
	}
}

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return families()[0]
	}
	return families()[1]
}

// serviceSet is a set or map of entries of one kind and family. Its key is, in
// this order, without what is not in it: destination address, protocol, port,
// bucket, source address.
type serviceSet struct {
	kind   hostplan.ServiceEntryKind
	ports  bool // of node ports: no destination address
	family family
}

func serviceSets() (out []serviceSet) {
	for _, f := range families() {
		for _, kind := range append(localKinds(), hostplan.ServeEntry, hostplan.InsideEntry) {
			out = append(out, serviceSet{kind, true, f}, serviceSet{kind, false, f})
		}
		for _, kind := range remoteKinds() {
			out = append(out, serviceSet{kind, true, f})
		}
		for _, kind := range []hostplan.ServiceEntryKind{hostplan.LimitEntry, hostplan.AllowEntry, hostplan.ExemptEntry} {
			out = append(out, serviceSet{kind, false, f})
		}
	}
	return out
}

// localKinds are the kinds of entries that lead to endpoints of this node.
func localKinds() []hostplan.ServiceEntryKind {
	return []hostplan.ServiceEntryKind{hostplan.LocalEntry, hostplan.ShareEntry, hostplan.StickEntry}
}

// remoteKinds are the kinds of entries that lead to other nodes.
func remoteKinds() []hostplan.ServiceEntryKind {
	return []hostplan.ServiceEntryKind{hostplan.RemoteEntry, hostplan.RemoteShareEntry, hostplan.RemoteStickEntry}
}

// serviceSetOf is the set that an entry is in.
func serviceSetOf(e hostplan.ServiceEntry) serviceSet {
	return serviceSet{e.Kind, e.At.Addr().IsUnspecified(), familyOf(e.At.Addr())}
}

// name is such as "serve-ports4" or "allow-addrs6".
func (s serviceSet) name() string {
	if s.ports {
		return string(s.kind) + "-ports" + s.family.suffix
	}
	return string(s.kind) + "-addrs" + s.family.suffix
}

// set is the set as it is made.
func (s serviceSet) set() *nftables.Set {
	key := []nftables.SetDatatype{nftables.TypeInetProto, nftables.TypeInetService}
	if !s.ports {
		key = append([]nftables.SetDatatype{s.family.addrType}, key...)
	}
	out := &nftables.Set{Table: ourTable(), Name: s.name(), Concatenation: true}
	if s.kind.HasTo() {
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
		out = append(out, &expr.Payload{DestRegister: reg, Base: expr.PayloadBaseNetworkHeader, Offset: s.family.offset,
			Len: s.family.size})
		reg += s.family.size / 4
	}
	out = append(out, &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg},
		&expr.Payload{DestRegister: reg + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})
	reg += 2
	source := func(reg uint32) expr.Any {
		return &expr.Payload{DestRegister: reg, Base: expr.PayloadBaseNetworkHeader, Offset: s.family.source,
			Len: s.family.size}
	}
	buckets := uint32(s.kind.Buckets())
	switch s.kind {
	case hostplan.AllowEntry, hostplan.RemoteEntry:
		out = append(out, source(reg))
	case hostplan.ShareEntry, hostplan.RemoteShareEntry:
		out = append(out, &expr.Numgen{Register: reg, Modulus: buckets, Type: unix.NFT_NG_RANDOM})
		if s.kind.HasFrom() {
			out = append(out, source(reg+1))
		}
	case hostplan.StickEntry, hostplan.RemoteStickEntry:
		out = append(out, source(reg+1), &expr.Hash{
			SourceRegister: reg + 1, DestRegister: reg, Length: s.family.size, Modulus: buckets, Seed: bucketSeed,
			Type: expr.HashTypeJenkins,
		})
	}
	return out
}

// bucketSeed makes every node and every rule put a client into the same bucket.
const bucketSeed = 1

// contains matches packets whose key is in the set, or is not.
func (s serviceSet) contains(yes bool) []expr.Any {
	return append(s.key(), &expr.Lookup{SourceRegister: firstRegister, SetName: s.name(), Invert: !yes})
}

// dnat sends packets where the map says.
func (s serviceSet) dnat() []expr.Any {
	return append(s.key(), &expr.Lookup{SourceRegister: firstRegister, DestRegister: firstRegister, IsDestRegSet: true,
		SetName: s.name()},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(s.family.nfproto), RegAddrMin: firstRegister,
			RegProtoMin: firstRegister + s.family.size/4})
}

// stays tells whether the kernel has the set as set makes it.
func (s serviceSet) stays(c *nftables.Conn) bool {
	have, err := c.GetSetByName(ourTable(), s.name())
	if err != nil {
		return false
	}
	want := s.set()
	same := func(a, b nftables.SetDatatype) bool { return a.GetNFTMagic() == b.GetNFTMagic() && a.Bytes == b.Bytes }
	return have.IsMap == want.IsMap && have.Interval == want.Interval &&
		same(have.KeyType, want.KeyType) && same(have.DataType, want.DataType)
}
