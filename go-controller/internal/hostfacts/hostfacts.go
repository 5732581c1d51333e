package hostfacts

import (
	"cmp"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Kernel is the host's network; *hostnet.Netlink is one.
type Kernel interface {
	Find(a netip.Addr) (hostnet.Place, bool, error)
	RALinks() ([]string, error)
}

// Switch is the Open_vSwitch row; *ovs.DB has one.
type Switch interface {
	ExternalID(key string) (string, error)
}

// ExternalIDs is a Switch that was read before: the external_ids of the row.
type ExternalIDs map[string]string

// ExternalID implements Switch.
func (m ExternalIDs) ExternalID(key string) (string, error) { return m[key], nil }

// Node is what the caller knows of the node.
type Node struct {
	Subnets  []netip.Prefix // of its pods; none until the master has written them
	EncapIPs []netip.Addr   // its tunnel addresses
	Own      []netip.Addr   // the addresses by which the cluster knows it, see OnHost
}

// Gather is all that a plan of this node depends on, but for its external bridge,
// which package extbridge finds. The second result is where on this host the tunnel
// addresses are.
func Gather(n Node, s Switch, k Kernel) (hostplan.Facts, []hostnet.Place, error) {
	f := hostplan.Facts{Subnets: n.Subnets, EncapIPs: n.EncapIPs, Own: n.Own}
	for key, to := range map[string]*string{names.OVSSystemID: &f.SystemID, names.OVSRemote: &f.Southbound,
		names.OVSNorthbound: &f.Northbound} {
		var err error
		if *to, err = s.ExternalID(key); err != nil {
			return f, nil, err
		}
	}
	var err error
	if f.RALinks, err = k.RALinks(); err != nil {
		return f, nil, err
	}
	places, err := Places(k, n.EncapIPs)
	for _, p := range places {
		if f.EncapMTU == 0 || p.MTU < f.EncapMTU {
			f.EncapMTU = p.MTU
		}
	}
	return f, places, err
}

// Places is where on this host the addresses are. Addresses of no interface are
// left out.
func Places(k Kernel, addrs []netip.Addr) (out []hostnet.Place, err error) {
	for _, a := range addrs {
		p, ok, err := k.Find(a)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// OnHost is the first address of each family that this host has.
func OnHost(k Kernel, addrs []netip.Addr) (out []netip.Addr, err error) {
	for _, a := range addrs {
		if _, seen := ipnet.FirstOf(out, a.Is4()); seen {
			continue
		}
		places, err := Places(k, []netip.Addr{a})
		if err != nil {
			return nil, err
		}
		if len(places) > 0 {
			out = append(out, a)
		}
	}
	return out, nil
}

// Addrs are those texts that are addresses, such as the InternalIPs of a Node.
func Addrs(texts []string) (out []netip.Addr) {
	for _, s := range texts {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// GatewayRecord is what Open vSwitch has of a gateway, now or from before.
func GatewayRecord(s Switch) (x hostplan.GatewayRecord, err error) {
	var errs [3]error
	x.Mappings, errs[0] = s.ExternalID(names.OVSBridgeMappings)
	x.Bridge, errs[1] = s.ExternalID(names.OVSGatewayBridge)
	x.Added, errs[2] = s.ExternalID(names.OVSGatewayMapping)
	return x, cmp.Or(errs[:]...)
}
