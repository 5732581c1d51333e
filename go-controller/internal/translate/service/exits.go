package service

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// The scopes of a service of a primary network that everybody reaches.
const (
	byExits = "by-exits" // in the cluster's own network: its VIPs lead to the network's exits, at the node ports
	atExits = "at-exits" // the exits: from there they lead to the pods
)

// byExits is the load balancers by which others than the pods of a primary network reach the service, and the policies
// for replies. exits stand for its endpoints in the cluster's own network: there an exit is as one pod. A client of the
// cluster's own network has the exit's address on the join switch as its source in the network, so that answers come
// back to this exit.
func (r serviceRows) byExits(exits, eps []*cluster.EndpointSlice) (rows []nb.Row, err error) {
	own := r.state.Networks[names.Own]
	for _, proto := range cluster.Protocols() {
		if vips := vipsFor(r.choices(proto, exits), "", ""); len(vips) > 0 {
			rows = append(rows, r.unchecked(proto, placement{byExits, vips,
				[]nb.Slot{inGroup(own.LBGroupRow(nbdb.LoadBalancerGroupTable))}}))
		}
		if vips := vipsAtExits(proto, r.svc, exits, eps); len(vips) > 0 {
			rows = append(rows, r.unchecked(proto, placement{atExits, vips,
				[]nb.Slot{inGroup(r.network.ExitsLBGroupRow(nbdb.LoadBalancerGroupTable))}}))
		}
	}
	replies, err := r.replies(exits)
	return append(rows, replies...), err
}

// vipsAtExits maps the node ports at the addresses of exits to the pods of a service. All exits have the VIPs of all:
// nobody else's come to an exit. With externalTrafficPolicy Local, an exit leads to the pods of its node: a client from
// outside keeps its address, and only this node's exit knows the connection.
func vipsAtExits(p cluster.Protocol, svc *cluster.Service, exits, eps []*cluster.EndpointSlice) map[string]string {
	out := map[string]string{}
	for _, port := range svc.Ports {
		if port.Protocol != p {
			continue
		}
		for _, is4 := range []bool{true, false} {
			for exit, backends := range backendsOfExits(port, is4, svc.ExternalLocal, exits, eps) {
				out[exit.String()] = joined(backends, ",")
			}
		}
	}
	return out
}

// backendsOfExits is the pods of a port to which each exit leads, at its node port.
func backendsOfExits(
	port cluster.ServicePort, is4, local bool, exits, eps []*cluster.EndpointSlice,
) map[netip.AddrPort][]netip.AddrPort {
	out := map[netip.AddrPort][]netip.AddrPort{}
	if !local {
		backends := cluster.Choose(port, is4, eps).Backends
		for _, exit := range cluster.Choose(port, is4, exits).Backends {
			out[exit] = backends
		}
		return out
	}
	near, at := cluster.ChooseLocal(port, is4, eps), cluster.ChooseLocal(port, is4, exits)
	for node, exits := range at.Nodes {
		for _, exit := range exits {
			out[exit] = near.Nodes[node]
		}
	}
	return out
}

// unchecked is a load balancer without health checks.
func (r serviceRows) unchecked(proto cluster.Protocol, p placement) nb.Row {
	role, lb := r.balancer(proto, p)
	return r.Row(role, lb, p.slots...)
}

// ofExits lists the services of a primary network that lead to its exits, if a change gave a node an exit, or took one.
func ofExits(s *cluster.State, c cluster.Change) (out []cluster.Name) {
	if c.Ref.Kind != cluster.KindNode || !c.Granted || !c.Network.Further() {
		return nil
	}
	for _, namespace := range index.PrimariesOf(s).In(c.Network) {
		for _, svc := range s.ServicesIn(namespace) {
			if s.Services[svc].ByExits(s.Config.Services) {
				out = append(out, svc)
			}
		}
	}
	return out
}
