package allocate

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Use is how much of the cluster's own network is in use.
type Use struct {
	Nodes  []NodeUse  // addresses for pods, an entry for each subnet of a node
	Ranges []RangeUse // node subnets, an entry for each cluster subnet
	Join   Share      // addresses of gateway routers; a router has one number in all join subnets
}

// Share is how many are used, and how many more could be. What was freed lately counts as available.
type Share struct{ Used, Available float64 }

// NodeUse is about the addresses in a node's subnet.
type NodeUse struct {
	Share
	Node   string
	Subnet netip.Prefix
}

// RangeUse is about the node subnets in a cluster subnet.
type RangeUse struct {
	Share
	Subnet netip.Prefix
}

// share makes a Share of what is used and of how many there are.
func share(used, all uint64) Share {
	return Share{float64(used), float64(max(all, used) - used)}
}

// Use measures the cluster's own network.
func (l *Ledger) Use() (u Use) {
	for name, lease := range l.nodes {
		for _, p := range lease.pools {
			all := uint64(0)
			if p.last >= firstPod {
				all = p.last - firstPod + 1
			}
			u.Nodes = append(u.Nodes, NodeUse{share(uint64(len(p.used)), all), name, p.subnet})
		}
	}
	used := make([]uint64, len(l.subnets.ranges))
	for s := range l.subnets.held {
		if i := l.subnets.rangeOf(s); i >= 0 {
			used[i] += max(ipnet.Subnets(s, l.subnets.ranges[i].NodeLength), 1)
		}
	}
	for i, r := range l.subnets.ranges {
		u.Ranges = append(u.Ranges, RangeUse{share(used[i], ipnet.Subnets(r.CIDR, r.NodeLength)), r.CIDR})
	}
	if last := l.join.last(); len(l.join.subnets) > 0 && last >= firstJoin {
		u.Join = share(uint64(len(l.join.holder)), last-firstJoin+1)
	}
	return u
}
