package cluster

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// firstPodAddr is the number of the first address of pods in a node subnet. The router and the management port have the
// two before it.
const firstPodAddr = 3

// HealthSource is the address of a node subnet from which OVN checks the endpoints there: the last one, in IPv4 the
// last before the broadcast address. Nobody else may have it (but see index.HealthChecks.SourceHolder): OVN answers ARP
// and ND for it, so that a pod with the address would be cut off while there are checks. It can't be the router's
// address for the same reason. ok is false for a subnet without room for it.
func HealthSource(subnet netip.Prefix) (a netip.Addr, ok bool) {
	n := min(ipnet.Size(subnet)-1, ipnet.MaxNumber)
	if subnet.Addr().Is4() && n > 0 {
		n--
	}
	if n < firstPodAddr {
		return netip.Addr{}, false
	}
	return ipnet.Nth(subnet, n)
}
