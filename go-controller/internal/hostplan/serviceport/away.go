package serviceport

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Away names the other nodes to which this one may lead what it sends to its own
// node ports, sorted: the plan takes those of them whose addresses Facts has.
func Away(services []*cluster.Service, endpoints Slices, node string) []string {
	prefers := preferences{node, map[string]uint64{}}
	all := map[string]bool{}
	for _, s := range services {
		for _, port := range s.Ports {
			for _, to := range s.ClusterIPs {
				names, _ := prefers.nodes(s, port, to.Is4(), endpoints[s.Name])
				for _, name := range names {
					all[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// preferences tell which nodes a node prefers: others than other nodes do, but
// for all services alike, so that it needs few nodes' addresses.
type preferences struct {
	node string
	memo map[string]uint64
}

// of is low for nodes that are preferred.
func (p preferences) of(other string) uint64 {
	v, ok := p.memo[other]
	if !ok {
		sum := sha256.Sum256([]byte(p.node + "\x00" + other))
		v = binary.BigEndian.Uint64(sum[:])
		p.memo[other] = v
	}
	return v
}

// nodes is where endpoints of a node port serve in one family, those preferred
// first and as many as there are buckets at most, and how many endpoints each
// has. There are none for services which are served otherwise: those of policy
// Cluster, and those with endpoints here.
func (p preferences) nodes(s *cluster.Service, port cluster.ServicePort, is4 bool, eps []*cluster.EndpointSlice) (names []string, endpoints map[string]int) {
	if !s.ExternalLocal || port.NodePort == 0 || len(cluster.OnNode(p.node, port, is4, eps)) > 0 {
		return nil, nil
	}
	endpoints = cluster.ServingNodes(port, is4, eps)
	names = slices.SortedFunc(maps.Keys(endpoints), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.of(a), p.of(b)), cmp.Compare(a, b))
	})
	return names[:min(len(names), hostplan.AwayBuckets)], endpoints
}

// away leads what this node sends to its own node port, with its own address,
// to the same port of nodes that have endpoints: a node as often as it has. There
// it comes from outside and is seen from its own address.
func (p *planner) away(s *cluster.Service, port cluster.ServicePort, w way) {
	is4 := w.clusterIP.Addr().Is4()
	names, endpoints := p.prefers.nodes(s, port, is4, p.facts.Endpoints[s.Name])
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
	e := hostplan.ServiceEntry{Kind: hostplan.AwayEntry, Protocol: w.protocol, At: nodePortAt(is4, port.NodePort), From: netip.PrefixFrom(from, from.BitLen())}
	switch {
	case len(nodes) == 1:
		e.To = nodes[0]
		p.entries = append(p.entries, e)
	case len(nodes) > 1:
		e.Kind = hostplan.AwayShareEntry
		if w.sticky {
			e.Kind = hostplan.AwayStickEntry
		}
		for e.Bucket, e.To = range spread(inTurns(nodes, times), hostplan.AwayBuckets) {
			p.entries = append(p.entries, e)
		}
	}
}

// inTurns lists nodes each so many times, and all of them once before any comes
// twice; no more than there are buckets.
func inTurns(nodes []netip.AddrPort, times map[netip.AddrPort]int) (out []netip.AddrPort) {
	slices.SortFunc(nodes, netip.AddrPort.Compare)
	for turn := range hostplan.AwayBuckets {
		for _, n := range nodes {
			if times[n] > turn && len(out) < hostplan.AwayBuckets {
				out = append(out, n)
			}
		}
	}
	return out
}
