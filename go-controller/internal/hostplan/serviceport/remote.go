package serviceport

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// RemoteNodes names, sorted, the other nodes to which this node may send connections
// to its own node ports. The plan uses those whose addresses Facts has.
func RemoteNodes(services []*cluster.Service, f Facts, c config.Node) []string {
	prefers := preferences{c.Name, map[string]uint64{}}
	all := map[string]bool{}
	for _, s := range cluster.Share(services, c.Services) {
		if !s.ExternalLocal || !s.ServesNodePorts(c.Services) {
			continue
		}
		eps := f.served(s, c.Services)
		for _, port := range s.Ports {
			for _, to := range s.ClusterIPs {
				names, _ := prefers.nodes(s, port, to.Is4(), eps)
				for _, name := range names {
					all[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// preferences rank the nodes that a node sends connections to. Each node has a rank
// of its own, so that the load spreads; it is the same for all services, so that few
// nodes' addresses are needed.
type preferences struct {
	node string
	memo map[string]uint64
}

// of is the rank of a node: the lowest is preferred.
func (p preferences) of(other string) uint64 {
	v, ok := p.memo[other]
	if !ok {
		sum := sha256.Sum256([]byte(p.node + "\x00" + other))
		v = binary.BigEndian.Uint64(sum[:])
		p.memo[other] = v
	}
	return v
}

// nodes are the nodes with endpoints of a node port in one family, and how many
// endpoints each has. The preferred ones come first, at most one per bucket. There
// are none for services of policy Cluster, or with endpoints on this node.
func (p preferences) nodes(
	s *cluster.Service, port cluster.ServicePort, is4 bool, eps []*cluster.EndpointSlice,
) (names []string, endpoints map[string]int) {
	if !s.ExternalLocal || port.NodePort == 0 || len(cluster.OnNode(p.node, port, is4, eps)) > 0 {
		return nil, nil
	}
	endpoints = cluster.ServingNodes(port, is4, eps)
	names = slices.SortedFunc(maps.Keys(endpoints), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.of(a), p.of(b)), cmp.Compare(a, b))
	})
	return names[:min(len(names), hostplan.RemoteBuckets)], endpoints
}

// remoteBackends sends connections from this node's own address to its own node port
// on to the same port of nodes with endpoints, weighted by their endpoints. Those
// nodes see them come from outside, and from this node's address.
func (p *planner) remoteBackends(s serving, port cluster.ServicePort, w target) {
	is4 := w.clusterIP.Addr().Is4()
	names, endpoints := p.prefers.nodes(s.Service, port, is4, s.endpoints)
	from, ok := ipnet.FirstOf(p.facts.Addrs, is4)
	if !ok || len(names) == 0 {
		return
	}
	var nodes []netip.AddrPort
	times := map[netip.AddrPort]int{}
	for _, name := range names {
		if a, ok := ipnet.FirstOf(p.facts.Nodes[name], is4); ok && a != from {
			to := netip.AddrPortFrom(a, port.NodePort)
			nodes, times[to] = append(nodes, to), endpoints[name]
		}
	}
	if len(nodes) > 1 {
		nodes = assignBuckets(weighted(nodes, times), hostplan.RemoteBuckets)
	}
	p.choose(hostplan.ServiceEntry{
		Protocol: w.protocol, At: nodePortAt(is4, port.NodePort), From: ipnet.Single(from),
	}, nodes, kinds{hostplan.RemoteEntry, hostplan.RemoteShareEntry, hostplan.RemoteStickEntry}, w.sticky)
}

// weighted lists each node as often as it has endpoints, at most as many as there are
// buckets. Every node comes once before any comes twice.
func weighted(nodes []netip.AddrPort, times map[netip.AddrPort]int) (out []netip.AddrPort) {
	slices.SortFunc(nodes, netip.AddrPort.Compare)
	for turn := range hostplan.RemoteBuckets {
		for _, n := range nodes {
			if times[n] > turn && len(out) < hostplan.RemoteBuckets {
				out = append(out, n)
			}
		}
	}
	return out
}
