package nft

import (
	"net/netip"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// databaseDropChain drops what hostplan.DatabaseDrop says. It comes after NAT, so that no service leads to a database.
const databaseDropChain = "database-drop"

func databaseDropChains() []*nftables.Chain {
	afterNAT := nftables.ChainPriorityRef(*nftables.ChainPriorityNATDest + 1)
	return []*nftables.Chain{
		ourChain(databaseDropChain, nftables.ChainTypeFilter, nftables.ChainHookPrerouting, afterNAT),
	}
}

// What a rule is about: ports, toServer, a server or thisNode, fromLink, and the interface.
const (
	toServer = " of "
	fromLink = " from "
	thisNode = "this node"
)

// databaseDropRules are one for each server and range of ports, after those for this node.
func databaseDropRules(d hostplan.DatabaseDrop) (out []rule) {
	servers, ports := d.To()
	add := func(to string, match []expr.Any) {
		for _, r := range ports {
			exprs := append(iif(expr.CmpOpEq, d.Link), match...)
			exprs = append(append(exprs, toTCPPorts(r)...), &expr.Verdict{Kind: expr.VerdictDrop})
			out = append(out, rule{databaseDropChain, r.String() + toServer + to + fromLink + d.Link, exprs})
		}
	}
	add(thisNode, toThisNode())
	for _, a := range servers {
		f := familyOf(a)
		add(a.String(), append(f.match(), toRange(netip.PrefixFrom(a, a.BitLen()), f.offset)...))
	}
	return out
}

// toTCPPorts is "tcp dport FIRST-LAST".
func toTCPPorts(r hostplan.PortRange) []expr.Any {
	const destination, size = 2, 2 // RFC 9293 section 3.1
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: destination, Len: size},
		&expr.Cmp{Op: expr.CmpOpGte, Register: 1, Data: binaryutil.BigEndian.PutUint16(r.First)},
		&expr.Cmp{Op: expr.CmpOpLte, Register: 1, Data: binaryutil.BigEndian.PutUint16(r.Last)},
	}
}

// readDatabaseDrop reads the chain. When it is not as this version writes it, the link is "", so that all is made anew.
func readDatabaseDrop() ([]hostplan.Item, error) {
	have, ok, err := readRules(databaseDropChains())
	if !ok || err != nil {
		return nil, err
	}
	var d hostplan.DatabaseDrop
	var servers, ports []string
	for _, about := range have.abouts() {
		what, link, _ := strings.Cut(about, fromLink)
		r, server, is := strings.Cut(what, toServer)
		if !is {
			continue
		}
		d.Link = link
		if server == thisNode {
			ports = append(ports, r)
		} else if len(servers) == 0 || servers[len(servers)-1] != server {
			servers = append(servers, server)
		}
	}
	d.Servers, d.Ports = strings.Join(servers, ","), strings.Join(ports, ",")
	if !have.exactly(databaseDropRules(d)) {
		return []hostplan.Item{hostplan.DatabaseDrop{}}, nil
	}
	return []hostplan.Item{d}, nil
}
