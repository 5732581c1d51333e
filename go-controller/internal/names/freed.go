package names

import (
	"net/netip"
	"strings"
)

// FreedAddressSet is the address set whose external_ids record addresses and subnets that were freed lately. It has no
// addresses, no owner and no mark.
const FreedAddressSet = "northbound_freed"

// Range is a part of a network's addresses: one address, which is a prefix of full length, or a subnet.
type Range struct {
	Network Network
	netip.Prefix
}

// FreedKey is the key of a Range in the record: "10.128.1.7" or "10.128.1.0/24" in the cluster's own network, and
// "10.77.0.7@NETWORK" in another.
func (r Range) FreedKey() string {
	text := r.String()
	if r.IsSingleIP() {
		text = r.Addr().String()
	}
	if r.Network.Further() {
		text += "@" + string(r.Network)
	}
	return text
}

// FreedRange is the inverse of FreedKey; ok is false for another key.
func FreedRange(key string) (r Range, ok bool) {
	r.Network = Own
	text, network, further := strings.Cut(key, "@")
	if further {
		r.Network = Network(network)
	}
	p, err := netip.ParsePrefix(text)
	if a, notSubnet := netip.ParseAddr(text); notSubnet == nil {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	r.Prefix = p
	return r, err == nil && r.Network != "" && r.Network.Further() == further
}
