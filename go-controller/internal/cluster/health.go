package cluster

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// firstPodAddr is the number of the first address of pods in a node subnet:
// before it are the router's and the management port's.
const firstPodAddr = 3

// HealthSource is the address of a node subnet from which OVN checks the
// endpoints there: the last one, or of IPv4 the last before the broadcast
// address. It is to be nobody's (but see SourceHolder): a pod with it would not
// be reached while there are checks, and neither would the router, whose address
// works here until it is asked for its MAC. ok is false for a subnet without room
// for it.
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
