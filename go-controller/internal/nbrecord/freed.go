package nbrecord

import (
	"math"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// Freed is what an earlier master freed lately, as it recorded that, and what the rows of objects have that are gone by
// now: the time at which each may be given again.
func (Records) Freed(s *cluster.State, session *ovsdb.Session) map[names.Range]int64 {
	out := session.Freed()
	for _, r := range (Records{}).Unclaimed(s, session, session.Owners()) {
		out[r] = math.MaxInt64
	}
	return out
}

// Unclaimed is the addresses and subnets in the rows of owners whose objects do not claim them, or are gone. Pods wait
// for it when a master starts, so all processors look at many owners.
func (Records) Unclaimed(s *cluster.State, session *ovsdb.Session, owners []nb.Owner) []names.Range {
	shares := slices.Collect(slices.Chunk(owners, max(fewOwners, len(owners)/runtime.GOMAXPROCS(0)+1)))
	out := make([][]names.Range, len(shares))
	var looking sync.WaitGroup
	for i, some := range shares {
		looking.Go(func() { out[i] = unclaimed(s, session, some) })
	}
	looking.Wait()
	return slices.Concat(out...)
}

// fewOwners is how many owners are not worth a goroutine of their own.
const fewOwners = 1000

func unclaimed(s *cluster.State, session *ovsdb.Session, owners []nb.Owner) (out []names.Range) {
	view, read := session.Glance(), annotation.NewNodeRead()
	for _, o := range owners {
		if !granted(o) {
			continue
		}
		claimed := claims(s, o, read)
		for _, ref := range view.Owned(o) {
			for _, r := range given(view, o, ref) {
				if !slices.Contains(claimed, r) {
					out = append(out, r)
				}
			}
		}
	}
	return out
}

// granted tells whether an owner is one that is granted addresses or subnets.
func granted(o nb.Owner) bool {
	return o.Kind == names.KindNode || o.Kind == names.KindPod || o.Kind == names.KindGateway || o.Kind == names.KindExit
}

// given is the addresses or subnets that an object was granted, in one of its rows.
func given(view nb.View, o nb.Owner, ref nb.Ref) []names.Range {
	network, _ := names.NetworkOf(o.Name)
	switch m := view.Row(ref).(type) {
	case *nbdb.LogicalSwitch:
		return ranges(network, SwitchSubnets(m))
	case *nbdb.LogicalSwitchPort:
		if network, _, ok := names.PortOf(m.ExternalIDs[names.RoleKey]); ok {
			return single(network, strings.Fields(strings.Join(m.Addresses, " ")))
		}
	case *nbdb.LogicalRouterPort:
		switch m.ExternalIDs[names.RoleKey] {
		case names.RoleRouterToJoin:
			return addresses(network, ipnet.Prefixes(m.Networks))
		case names.RoleRouterToPods: // of an exit, in the node's own subnet
			return addresses(names.Own, ipnet.Prefixes(m.Networks))
		}
	}
	return nil
}

// ranges is parts of a network.
func ranges(network names.Network, prefixes []netip.Prefix) (out []names.Range) {
	for _, p := range prefixes {
		out = append(out, names.Range{Network: network, Prefix: p})
	}
	return out
}

// single is the addresses in a network among texts.
func single(network names.Network, texts []string) (out []names.Range) {
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			out = append(out, names.Range{Network: network, Prefix: ipnet.Single(a)})
		}
	}
	return out
}

// claims is what the object of an owner claims: nothing if it is gone. What is malformed claims nothing.
func claims(s *cluster.State, o nb.Owner, read annotation.NodeRead) (out []names.Range) {
	if o.Kind == names.KindPod {
		pod := s.Pods[cluster.ParseName(o.Name)]
		if pod == nil || !pod.WantsNetwork() || s.Nodes[pod.Node] == nil { // without its Node it is granted nothing
			return nil
		}
		for key, n := range annotation.PodNetworksOf(pod.Annotated) {
			network, _ := s.NetworkOf(pod, key)
			out = append(out, addresses(network, n.IPs)...)
		}
		return out
	}
	network, node := names.NetworkOf(o.Name)
	n := s.Nodes[node]
	if n == nil {
		return nil
	}
	of := read.Joins(n.JoinAnnotated)
	subnets, _, _ := read.Subnets(n.Annotated, network)
	join, _, _ := of.In(network)
	out = append(ranges(network, subnets), addresses(network, join)...)
	if o.Kind == names.KindExit {
		exit, _, _ := of.In(network.ExitEntry())
		out = append(out, addresses(names.Own, exit)...)
	}
	return out
}

// addresses is the addresses of prefixes, in a network.
func addresses(network names.Network, prefixes []netip.Prefix) (out []names.Range) {
	for _, p := range prefixes {
		out = append(out, names.Range{Network: network, Prefix: ipnet.Single(p.Addr())})
	}
	return out
}
