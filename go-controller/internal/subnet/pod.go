package subnet

import (
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// LastHost is the number of the last address that a pod may have; ok is false for a subnet without room for pods. It is
// also where health checks come from, so that pods get only those before it. A pod that has it already keeps it.
func LastHost(s netip.Prefix) (n uint64, ok bool) {
	n = min(ipnet.Size(s)-1, ipnet.MaxNumber)
	if s.Addr().Is4() && n > 0 {
		n-- // the broadcast address
	}
	return n, n >= FirstPodHost
}

// PodHost is the number of a pod's address in a node's subnet. The error says why no pod there can have the address.
func PodHost(s, ip netip.Prefix) (uint64, error) {
	n, ok := ipnet.Index(s, ip.Addr())
	if !ok || ip.Bits() != s.Bits() {
		return 0, fmt.Errorf("%s is not in the node's subnet %s", ip, s)
	}
	if last, room := LastHost(s); !room || n < FirstPodHost || n > last {
		return 0, fmt.Errorf("%s is not one for pods in the node's subnet %s: want number %d to %d of it",
			ip, s, FirstPodHost, last-1)
	}
	return n, nil
}

// Attachment is the attachment of a pod that has the given number in each of its node's subnets. Only the interface
// that Kubernetes itself asks for, "", has the pod's default routes.
func Attachment(subnets []netip.Prefix, numbers []uint64, iface string) annotation.PodNetwork {
	var net annotation.PodNetwork
	for i, p := range subnets {
		a, _ := ipnet.Nth(p, numbers[i])
		router, _ := Router(p)
		net.IPs = append(net.IPs, netip.PrefixFrom(a, p.Bits()))
		if iface == "" {
			net.Gateways = append(net.Gateways, router)
		}
	}
	net.MAC = ipnet.MACFor(ipnet.Addrs(net.IPs))
	return net
}
