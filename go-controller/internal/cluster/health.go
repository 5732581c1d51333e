package cluster

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// HealthSource is the address of a node subnet from which OVN checks the endpoints there: the last one, in IPv4 the
// last before the broadcast address. Nobody else may have it (but see index.HealthChecks.SourceHolder): OVN answers ARP
// and ND for it, so that a pod with the address would be cut off while there are checks. It can't be the router's
// address for the same reason. ok is false for a subnet without room for it.
func HealthSource(s netip.Prefix) (a netip.Addr, ok bool) {
	n, ok := subnet.LastHost(s)
	if !ok {
		return netip.Addr{}, false
	}
	return ipnet.Nth(s, n)
}
