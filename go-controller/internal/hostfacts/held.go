package hostfacts

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Held is what a node knows of addresses that no Service may have as external ones.
type Held struct {
	Databases, API []netip.Addr // at which the node reaches them
	Tunnels        []netip.Addr // of other nodes
	Own            []netip.Addr // by which the cluster knows the node
}

// Holders says who has each of the addresses; node is the node's name. Of several holders of one, the last in the order
// of Held counts.
func (h Held) Holders(node string) map[netip.Addr]cluster.Holder {
	out := map[netip.Addr]cluster.Holder{}
	for _, of := range []struct {
		addrs  []netip.Addr
		holder cluster.Holder
	}{
		{h.Databases, cluster.Holder{As: cluster.HolderDatabases}}, {h.API, cluster.Holder{As: cluster.HolderAPI}},
		{h.Tunnels, cluster.Holder{As: cluster.HolderTunnel}},
		{h.Own, cluster.Holder{As: cluster.HolderNode, Name: cluster.Name{Name: node}}},
	} {
		for _, a := range of.addrs {
			out[a.Unmap()] = of.holder
		}
	}
	return out
}
