// Package subnet says which addresses of a node's subnet are whose. It is pure.
//
//	.1           the cluster router, the next hop of everything in the subnet
//	.2           the node's management port
//	.3 and up    pods
package subnet

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// The numbers of addresses in a node's subnet, counted from its network address as
// ipnet.Nth counts.
const (
	RouterHost     = 1 // the cluster router's
	ManagementHost = 2 // the management port's
	FirstPodHost   = 3 // the first that a pod may get
)

// Router is the cluster router's address in a node's subnet; ok is false when the
// subnet is too small.
func Router(s netip.Prefix) (a netip.Addr, ok bool) { return ipnet.Nth(s, RouterHost) }

// Management is the management port's address in a node's subnet; ok is false when
// the subnet is too small.
func Management(s netip.Prefix) (a netip.Addr, ok bool) { return ipnet.Nth(s, ManagementHost) }
