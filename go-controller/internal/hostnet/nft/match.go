package nft

import (
	"net"
	"net/netip"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// match matches packets of the family ("meta nfproto", nft(8)).
func (f family) match() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{f.nfproto}},
	}
}

// iif is "iifname", and oif is "oifname", with == or !=.
func iif(op expr.CmpOp, link string) []expr.Any { return atInterface(expr.MetaKeyIIFNAME, op, link) }
func oif(op expr.CmpOp, link string) []expr.Any { return atInterface(expr.MetaKeyOIFNAME, op, link) }

func atInterface(key expr.MetaKey, op expr.CmpOp, link string) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: interfaceName(link)}}
}

func interfaceName(link string) []byte {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, link)
	return name
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
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()),
			Xor: make([]byte, size)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: p.Masked().Addr().AsSlice()},
	}
}
