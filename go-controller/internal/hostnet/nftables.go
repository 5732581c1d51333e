package hostnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
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

// unless stands between subnet and interface in a rule's comment.
const unless = " unless through "

// readMasquerade reads our table. Each rule carries what it is for as its
// comment; a table that has anything else in it is read as an unknown one, so
// that it is made anew.
func readMasquerade() ([]hostplan.Item, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("opening nftables: %w", err)
	}
	table := &nftables.Table{Family: nftables.TableFamilyINet, Name: names.NFTable}
	chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, fmt.Errorf("reading nftables chains: %w", err)
	}
	var ours []*nftables.Chain
	for _, ch := range chains {
		if ch.Table.Name == names.NFTable {
			ours = append(ours, ch)
		}
	}
	if len(ours) == 0 {
		return nil, nil
	}
	unknown := []hostplan.Item{hostplan.Masquerade{Except: "what somebody has put there"}}
	if len(ours) != 1 || ours[0].Name != natChain || ours[0].Type != nftables.ChainTypeNAT {
		return unknown, nil
	}
	rules, err := c.GetRules(table, ours[0])
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading nftables rules: %w", err)
	}
	var m hostplan.Masquerade
	for _, r := range rules {
		comment, _ := userdata.GetString(r.UserData, userdata.TypeComment)
		subnet, except, _ := strings.Cut(comment, unless)
		p, err := netip.ParsePrefix(subnet)
		switch {
		case err != nil || len(r.Exprs) != ruleLength:
			return unknown, nil
		case p.Addr().Is4():
			m.V4 = p
		default:
			m.V6 = p
		}
		m.Except = except
	}
	return []hostplan.Item{m}, nil
}

// applyMasquerade makes our table anew, or removes it, in one transaction.
func applyMasquerade(m hostplan.Masquerade, remove bool) error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening nftables: %w", err)
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: names.NFTable})
	c.DelTable(table) // an absent one was just added, so that this can't fail
	if !remove {
		table = c.AddTable(table)
		chain := c.AddChain(&nftables.Chain{
			Name: natChain, Table: table, Type: nftables.ChainTypeNAT,
			Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
		})
		for _, p := range []netip.Prefix{m.V4, m.V6} {
			if p.IsValid() {
				c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: masquerade(p, m.Except), UserData: userdata.AppendString(nil, userdata.TypeComment, p.String()+unless+m.Except)})
			}
		}
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("writing nftables: %w", err)
	}
	return nil
}

// ruleLength is the number of expressions in masquerade's rule.
const ruleLength = 8

// masquerade is "meta nfproto ipv4 ip saddr SUBNET oifname != EXCEPT
// masquerade" (nft(8)), or its like for IPv6.
func masquerade(subnet netip.Prefix, except string) []expr.Any {
	family, offset := byte(unix.NFPROTO_IPV4), uint32(12) // RFC 791 section 3.1
	if subnet.Addr().Is6() {
		family, offset = unix.NFPROTO_IPV6, 8 // RFC 8200 section 3
	}
	size := uint32(subnet.Addr().BitLen() / 8)
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, except)
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{family}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: net.CIDRMask(subnet.Bits(), subnet.Addr().BitLen()), Xor: make([]byte, size)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: subnet.Masked().Addr().AsSlice()},
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: name},
		&expr.Masq{},
	}
}

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
